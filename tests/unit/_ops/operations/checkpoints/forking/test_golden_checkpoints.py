"""Checkpoints that Spark's own connector wrote: what a fork of them changes, and what it leaves as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import SpecificOffsets
from pyspark_kafka._ops.operations.checkpoints.batches import MOVED
from pyspark_kafka._ops.operations.checkpoints.forking.apply import apply_fork
from pyspark_kafka._ops.operations.checkpoints.forking.places import AfterBatch, AtOffsets, Place
from pyspark_kafka._ops.operations.checkpoints.forking.plan import ForkRequest, plan_fork
from pyspark_kafka._ops.operations.checkpoints.forking.snapshot import read_snapshot
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import QueryCheckpoint, read_checkpoint
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

GOLDEN = Path(__file__).parents[5] / "golden" / "checkpoints"
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
NEW_ID = "11111111-2222-3333-4444-555555555555"


def fork(name: str, target: Path, place: Place, *, drop_state: bool = False) -> QueryCheckpoint:
    source = CheckpointFiles(str(GOLDEN / f"spark-4.2.0-{name}"))
    snapshot = read_snapshot(read_checkpoint(source), place.batch_id if isinstance(place, AfterBatch) else None)
    plan = plan_fork(snapshot, ForkRequest(place, False, drop_state, NEW_ID, 5), None)
    apply_fork(plan, source, CheckpointFiles(str(target)))
    return read_checkpoint(str(target))


def ends(checkpoint: QueryCheckpoint, source: str = "0") -> dict[TopicPartition, int]:
    return dict(checkpoint.position()[source].partitions)


def lines(location: Path, batch_id: int) -> list[str]:
    return (location / "offsets" / str(batch_id)).read_text().split("\n")


@pytest.mark.parametrize("name", ["append", "append-v2", "two-sources"])
def test_fork_of_a_batch_keeps_versions_settings_and_other_sources(tmp_path: Path, name: str) -> None:
    golden = GOLDEN / f"spark-4.2.0-{name}"
    made = fork(name, tmp_path, AfterBatch(1))
    assert made.query_id() == NEW_ID
    assert made.history.finished == (3, 4)
    was, now = lines(golden, 1), lines(tmp_path, 4)
    assert now[0] == was[0]
    assert json.loads(now[1])["conf"] == {**json.loads(was[1])["conf"], MOVED: "true"}
    assert [line.replace(" ", "") for line in now[2:]] == [line.replace(" ", "") for line in was[2:]]
    others = [path for path in (golden / "sources").rglob("*") if path.is_file() and path.parent.name != "0"]
    for path in others:
        copied = tmp_path / path.relative_to(golden)
        assert path.name.startswith(".") or copied.read_bytes() == path.read_bytes()
    assert bool(others) is (name == "two-sources")


def test_asynchronous_log_has_gaps_and_its_fork_has_none_at_the_end(tmp_path: Path) -> None:
    made = fork("asynchronous", tmp_path, AfterBatch(7))
    assert made.history.finished == (15, 16)
    with pytest.raises(CheckpointError, match=r"These batches are there: 15, 11, 7, 3, 0\."):
        fork("asynchronous", tmp_path / "other", AfterBatch(5))


def test_continuous_query_of_spark_keeps_its_empty_metadata(tmp_path: Path) -> None:
    fork("continuous", tmp_path, AfterBatch(2))
    assert lines(tmp_path, 9)[:2] == ["v1", ""]


def test_query_without_kafka_is_forked_by_its_batches_only(tmp_path: Path) -> None:
    made = fork("files", tmp_path, AfterBatch(0))
    assert made.history.finished == (0, 1)
    offsets: Any = AtOffsets(SpecificOffsets({P0: 1}))
    with pytest.raises(CheckpointError, match=r"\[CHECKPOINT_OTHER_SOURCES\]"):
        fork("files", tmp_path / "other", offsets)


def test_aggregation_is_copied_with_the_state_watermark_and_number_of_its_batch(tmp_path: Path) -> None:
    golden = GOLDEN / "spark-4.2.0-aggregation"
    made = fork("aggregation", tmp_path, AfterBatch(1))
    assert made.history.begun == made.history.finished == (0, 1)
    for log in ("offsets", "commits"):
        assert (tmp_path / log / "1").read_bytes() == (golden / log / "1").read_bytes()
    versions = {path.name for path in (tmp_path / "state").rglob("*.delta")}
    assert versions == {"1.delta", "2.delta"}
    for path in (tmp_path / "state").rglob("*"):
        assert path.is_dir() or path.read_bytes() == (golden / path.relative_to(tmp_path)).read_bytes()


def test_aggregation_whose_state_is_dropped_begins_with_a_batch_that_reads_nothing(tmp_path: Path) -> None:
    made = fork("aggregation", tmp_path, AtOffsets(SpecificOffsets({P0: 41})), drop_state=True)
    assert (made.history.begun, made.history.finished) == ((0,), ())
    unfinished = made.unfinished()
    assert unfinished is not None
    assert unfinished.watermark_ms is None
    assert dict(unfinished.offsets["0"].partitions) == dict(unfinished.offsets["0"].starts or {}) == {P0: 41, P1: 50}
    assert not (tmp_path / "state").exists()
    assert ends(made) == {P0: 41, P1: 50}
