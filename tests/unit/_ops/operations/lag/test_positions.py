"""LagPositions of a checkpoint: the end of the last batch that is finished, and how fast the last ones went."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kit.checkpoint_files import PLANNED_MS, STEP_MS, offsets_text, write_checkpoint
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._ops.operations.checkpoints.batches import MOVED
from pyspark_kafka._ops.operations.lag import positions
from pyspark_kafka._ops.operations.lag.positions import LagPositions, checkpoint_positions, without_old_rates
from pyspark_kafka.checkpoint.continuous_files import WaitingStep
from pyspark_kafka.errors import CheckpointError

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def ends(count: int, step: int = 100) -> list[dict[str, dict[str, int]]]:
    return [{"t": {"0": number * step, "1": 7}} for number in range(count)]


def test_position_is_the_end_of_the_last_finished_batch(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ends(4), finished=3)
    found = checkpoint_positions(str(tmp_path))
    assert found.partitions == {A: 200, B: 7}
    assert found.origin == f"checkpoint {tmp_path}"


def test_rate_is_that_of_the_last_ten_batches(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [*ends(5, step=1), *[{"t": {"0": 1_000 * number, "1": 7}} for number in range(5, 20)]])
    found = checkpoint_positions(str(tmp_path))
    assert found.consumed_per_s == {A: pytest.approx(1_000 / (STEP_MS / 1000)), B: 0.0}


def test_records_that_a_rewind_skipped_are_in_no_rate(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [*ends(3), {"t": {"0": 900_000, "1": 7}}, {"t": {"0": 900_050, "1": 7}}])
    (tmp_path / "offsets" / "3").write_text(offsets_text(3, [{"t": {"0": 900_000, "1": 7}}], conf={MOVED: "true"}))
    assert checkpoint_positions(str(tmp_path)).consumed_per_s == {A: pytest.approx(5.0), B: 0.0}


def test_rate_says_something_for_three_batches_or_a_minute(tmp_path: Path) -> None:
    for count, holds_ms in ((2, 60_000), (4, 300_000)):
        write_checkpoint(tmp_path, ends(2))
        for number in range(2):
            planned = PLANNED_MS + number * 25_000 * count
            text = offsets_text(number, [ends(2)[number]])
            (tmp_path / "offsets" / str(number)).write_text(
                text.replace(str(PLANNED_MS + number * STEP_MS), str(planned))
            )
            os.utime(tmp_path / "commits" / str(number), (1.0, 1.0))
        found = checkpoint_positions(str(tmp_path))
        assert found.consumed_until_ms is not None
        assert found.reached_at_ms is not None
        assert found.consumed_until_ms - found.reached_at_ms == max(60_000, holds_ms if count == 4 else 150_000)


def test_steps_that_wait_are_those_after_the_last_finished_epoch(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ends(4), finished=3)
    versions = tmp_path / "continuous" / "versions"
    versions.mkdir(parents=True)
    for epoch in range(4):
        waiting = [[0, "mapWithState", "t-0", epoch, 9]]
        (versions / str(epoch)).write_text(json.dumps({"v": 1, "heads": {}, "waiting": waiting}))
    found = checkpoint_positions(str(tmp_path))
    assert found.waiting == (WaitingStep(0, "mapWithState", "t-0", 2, 9),)
    # Of an earlier version of this package.
    (versions / "2").write_text(json.dumps({"v": 1, "heads": {}}))
    assert checkpoint_positions(str(tmp_path)).waiting == ()


@pytest.mark.parametrize("text", ["", "[]", '{"waiting":7}', '{"waiting":[7]}', '{"waiting":[["0","a","b",1,2]]}'])
def test_steps_that_cannot_be_read_are_missing_and_the_lag_is_not(tmp_path: Path, text: str) -> None:
    write_checkpoint(tmp_path, ends(2))
    versions = tmp_path / "continuous" / "versions"
    versions.mkdir(parents=True)
    (versions / "1").write_text(text)
    found = checkpoint_positions(str(tmp_path))
    assert found.waiting == ()
    (reason,) = found.missing
    assert reason.startswith("the topic-partitions that hold windows open: continuous/versions/1 of checkpoint")
    assert found.partitions == {A: 100, B: 7}


def test_query_that_has_ended_reads_at_no_rate() -> None:
    known = LagPositions("q", {A: 5}, reached_at_ms=1_000, consumed_per_s={A: 374.0}, consumed_until_ms=61_000)
    assert without_old_rates(known, 61_000, is_behind=True) is known
    late = without_old_rates(known, 301_000, is_behind=True)
    assert late.consumed_per_s == {}
    assert late.missing == ("the rate of reading: the last batch ended 5 m ago, so the query pauses or has ended",)
    assert without_old_rates(known, 301_000, is_behind=False).missing == ()


def test_rate_is_not_known_of_one_batch_or_of_a_new_partition(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "one", ends(1))
    assert checkpoint_positions(str(tmp_path / "one")).consumed_per_s == {}
    write_checkpoint(tmp_path / "two", [{"t": {"0": 1}}, {"t": {"0": 11, "1": 5}}])
    assert checkpoint_positions(str(tmp_path / "two")).consumed_per_s == {A: pytest.approx(1.0)}


def test_time_of_the_positions_is_that_of_the_commit_or_in_a_copy_of_the_plan(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ends(2))
    commit = tmp_path / "commits" / "1"
    written_s = PLANNED_MS / 1000 + 60
    os.utime(commit, (written_s, written_s))
    assert checkpoint_positions(str(tmp_path)).reached_at_ms == PLANNED_MS + 60_000
    os.utime(commit, (1.0, 1.0))
    assert checkpoint_positions(str(tmp_path)).reached_at_ms == PLANNED_MS + STEP_MS


def test_checkpoint_without_a_finished_batch_is_refused_unless_it_keeps_where_it_begins(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "none", ends(1), finished=0)
    with pytest.raises(CheckpointError, match="has no position of a Kafka source") as caught:
        checkpoint_positions(str(tmp_path / "none"))
    assert caught.value.condition == "CHECKPOINT_WITHOUT_POSITIONS"
    write_checkpoint(tmp_path / "kept", ends(1), finished=0, initial={"t": {"0": 3}})
    assert checkpoint_positions(str(tmp_path / "kept")).partitions == {A: 3}


def test_checkpoint_of_another_source_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ['{"logOffset":3}'])
    with pytest.raises(CheckpointError, match="or the query does not read Kafka"):
        checkpoint_positions(str(tmp_path))


def test_source_that_is_further_behind_counts_where_two_read_a_partition() -> None:
    offsets = [KafkaSourceOffset({A: 5, B: 1}), KafkaSourceOffset({A: 3})]
    assert positions.merge_positions(offsets) == {A: 3, B: 1}
    assert positions.merge_positions(reversed(offsets)) == {A: 3, B: 1}
