"""Batches over time, from a checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

from kit.checkpoint_files import PLANNED_MS, STEP_MS, offsets_text, write_checkpoint
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.operations.checkpoints.batches import MOVED
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.reports.history import read_history


def finished_at(location: Path, number: int, at_ms: int) -> None:
    os.utime(location / "commits" / str(number), ns=(at_ms * 1_000_000, at_ms * 1_000_000))


def test_batches_have_rows_and_times(tmp_path: Path) -> None:
    ends = [{"t": {"0": 10, "1": 5}}, {"t": {"0": 30, "1": 5}}, {"t": {"0": 31, "1": 6}}]
    write_checkpoint(tmp_path, ends, finished=2, initial={"t": {"0": 4, "1": 5}})
    for number in range(2):
        finished_at(tmp_path, number, PLANNED_MS + number * STEP_MS + 700)
    found = read_history(read_checkpoint(str(tmp_path)), 100)
    assert [(each.batch_id, each.rows, each.is_finished) for each in found.batches] == [
        (0, 6, True),
        (1, 20, True),
        (2, 2, False),
    ]
    assert [each.duration_ms for each in found.batches] == [700, 700, None]
    assert found.rows == {TopicPartition("t", 0): 27, TopicPartition("t", 1): 1}
    assert found.positions["0"].partitions == {TopicPartition("t", 0): 30, TopicPartition("t", 1): 5}
    assert (found.older, found.has_end_times, list(found.other_sources)) == (0, True, [])


def test_records_that_a_rewind_skipped_are_no_rows(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 10}}, {"t": {"0": 5_010}}], finished=1, initial={"t": {"0": 0}})
    end = {"t": {"0": 5_010}}
    (tmp_path / "offsets" / "2").write_text(offsets_text(2, [end], conf={MOVED: "true"}))
    (tmp_path / "offsets" / "3").write_text(offsets_text(3, [{"t": {"0": 5_017}}]))
    for number in (2, 3):
        (tmp_path / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    found = read_history(read_checkpoint(str(tmp_path)), 100)
    assert [(each.batch_id, each.rows, each.is_passed_over) for each in found.batches] == [
        (0, 10, False),
        (1, None, True),
        (3, 7, False),
    ]
    assert found.rows == {TopicPartition("t", 0): 17}
    assert list(found.moved) == [2]


def test_only_the_last_batches_are_read(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 10 * number}} for number in range(50)])
    read = []
    found = read_history(read_checkpoint(str(tmp_path)), 5, lambda done, every: read.append((done, every)))
    assert [each.batch_id for each in found.batches] == [45, 46, 47, 48, 49]
    # The one before the first says where it begins.
    assert [each.rows for each in found.batches] == [10] * 5
    assert found.older == 45
    assert read == [(number, 5) for number in range(1, 6)]


def test_rows_of_a_batch_without_a_known_start_are_unknown(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 10}}, {"t": {"0": 12}}], first=7)
    found = read_history(read_checkpoint(str(tmp_path)), 100)
    assert [each.rows for each in found.batches] == [None, 2]


def test_copied_files_do_not_tell_when_batches_were_finished(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": number}} for number in range(10)])
    found = read_history(read_checkpoint(str(tmp_path)), 100)
    assert not found.has_end_times
    assert {each.finished_ms for each in found.batches} == {None}
    assert all(each.is_finished for each in found.batches)


def test_sources_of_others_are_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ['{"logOffset":3}', '{"logOffset":4}'])
    found = read_history(read_checkpoint(str(tmp_path)), 100)
    assert list(found.other_sources) == ["0"]
    assert [each.rows for each in found.batches] == [None, None]
