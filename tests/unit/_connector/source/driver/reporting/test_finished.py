"""Which batches count as finished: what an engine's calls say, and the logs of a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._connector.source.driver.reporting.finished import FinishedBatches, finished_end
from pyspark_kafka.checkpoint.files import CheckpointFiles

A = TopicPartition("t", 0)


class Group:
    """Stands for the group; notes what it is given."""

    def __init__(self) -> None:
        self.noted: list[dict[TopicPartition, int]] = []
        self.flushes = 0

    def note(self, ends: Mapping[TopicPartition, int]) -> None:
        self.noted.append(dict(ends))

    def flush(self, *, once_more: bool) -> bool:
        assert once_more
        self.flushes += 1
        return True


@pytest.fixture
def group() -> Any:
    return Group()


def write_logs(place: Path, ends: list[int], committed: int) -> CheckpointFiles:
    """Write the logs of a query with these ends, of which some batches are committed."""
    for log in ("offsets", "commits"):
        (place / log).mkdir()
    for batch_id, end in enumerate(ends):
        text = KafkaSourceOffset({A: end}).json()
        (place / "offsets" / str(batch_id)).write_text(f"v1\n{json.dumps({})}\n-\n{text}")
    for batch_id in range(committed):
        (place / "commits" / str(batch_id)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return CheckpointFiles(str(place))


def test_start_of_a_batch_is_the_end_of_a_finished_one_unless_the_query_begins_there(group: Any) -> None:
    finished = FinishedBatches(group)
    for start in (5, 5, 7, 5):
        finished.note_start({A: start}, {A: 5})
    # Once it was elsewhere, it is there as the end of a batch.
    assert group.noted == [{A: 7}, {A: 5}]


def test_start_of_a_query_that_continues_is_the_end_of_a_finished_batch(group: Any) -> None:
    FinishedBatches(group).note_start({A: 5}, None)
    assert group.noted == [{A: 5}]


def test_stream_without_a_group_does_nothing(tmp_path: Path) -> None:
    finished = FinishedBatches(None, CheckpointFiles(str(tmp_path / "missing")))
    finished.note_start({A: 1}, None)
    finished.note({A: 1})
    finished.flush()
    finished.stop()


def test_stop_notes_what_the_checkpoint_says_is_finished_once(group: Any, tmp_path: Path) -> None:
    finished = FinishedBatches(group, write_logs(tmp_path, [3, 6, 9], committed=2), source_index="1")
    finished.stop()
    finished.stop()
    assert group.noted == [{A: 6}]
    assert group.flushes == 1


@pytest.mark.parametrize(("ends", "committed", "expected"), [([3], 0, None), ([3], 1, 3), ([3, 6], 1, 3)])
def test_end_is_that_of_the_newest_batch_in_both_logs(
    tmp_path: Path, ends: list[int], committed: int, expected: int | None
) -> None:
    found = finished_end(write_logs(tmp_path, ends, committed), "1")
    assert (None if found is None else found.partitions[A]) == expected


def test_source_without_an_offset_has_no_end(tmp_path: Path) -> None:
    assert finished_end(write_logs(tmp_path, [3], 1), "0") is None


def test_checkpoint_that_cannot_be_read_is_a_warning_and_the_rest_is_flushed(
    group: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = write_logs(tmp_path, [3], committed=1)
    (tmp_path / "offsets" / "0").write_text("no log")
    FinishedBatches(group, files).stop()
    assert group.noted == []
    assert group.flushes == 1
    assert "Which batch is the last finished one is not known" in caplog.text
