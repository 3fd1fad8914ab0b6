"""Checkpoints that Spark 4.2.0 and its JVM connector wrote; tools/make_checkpoint_fixtures.py makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import CheckpointKind, StateOperator, read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.summary import read_summary
from pyspark_kafka._ops.operations.checkpoints.verify.file_checks import check_files
from pyspark_kafka._ops.operations.checkpoints.verify.findings import Findings

STORED = Path(__file__).parents[4] / "golden" / "checkpoints"
NAMES = sorted(path.name for path in STORED.iterdir())
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.mark.parametrize("name", NAMES)
def test_checkpoint_of_spark_is_read_without_a_problem(name: str) -> None:
    account = read_summary(read_checkpoint(str(STORED / name)), max_batches=None)
    assert account.problems == ()
    assert account.query_id is not None


@pytest.mark.parametrize("name", NAMES)
def test_checkpoint_of_spark_has_nothing_wrong_and_its_checksums_match(name: str) -> None:
    findings = Findings()
    check_files(read_checkpoint(str(STORED / name)), findings)
    assert findings.unknown == []
    assert [each.code for each in findings] == (["gap"] if "asynchronous" in name else [])
    assert list(STORED.joinpath(name, "offsets").glob(".*.crc"))


@pytest.mark.parametrize(("name", "begins"), [("append", 0), ("append-v2", 40)])
def test_query_of_the_jvm_connector_is_understood(name: str, begins: int) -> None:
    """Both versions of the offset log; four batches of ten records, the last one unfinished."""
    read = read_checkpoint(str(STORED / f"spark-4.2.0-{name}"))
    assert read.kind() is CheckpointKind.MICRO_BATCH
    assert (read.history.begun, read.history.finished) == ((0, 1, 2, 3), (0, 1, 2))
    position = read.position()["0"].partitions
    unfinished = read.unfinished()
    assert unfinished is not None
    assert sum(unfinished.offsets["0"].partitions.values()) - sum(position.values()) == 10
    assert read.beginnings()["0"].partitions == {P0: 0, P1: 0}
    assert sum(position.values()) == begins + 30
    (source,) = read_summary(read).sources
    assert source.spaced is False


def test_aggregation_has_a_state_and_a_watermark() -> None:
    read = read_checkpoint(str(STORED / "spark-4.2.0-aggregation"))
    assert read.state_operators() == (StateOperator("state/0", "stateStoreSave", 1),)
    last = read.last_begun()
    assert last is not None
    assert last.watermark_ms is not None


def test_asynchronous_progress_skips_batches_in_both_logs() -> None:
    history = read_checkpoint(str(STORED / "spark-4.2.0-asynchronous")).history
    assert history.begun == history.finished == (0, 3, 7, 11, 15)
    assert history.last_finished == 15


def test_sources_that_are_not_kafkas_are_told_apart() -> None:
    files = read_checkpoint(str(STORED / "spark-4.2.0-files"))
    assert files.position() == {}
    assert files.beginnings() == {}
    both = read_checkpoint(str(STORED / "spark-4.2.0-two-sources"))
    assert list(both.position()) == ["0"]
    last = both.last_begun()
    assert last is not None
    assert last.ends["1"].is_other


def test_byte_that_is_changed_is_noticed_by_sparks_checksum(tmp_path: Path) -> None:
    source = STORED / "spark-4.2.0-append"
    for path in source.rglob("*"):
        if path.is_file():
            target = tmp_path / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    offsets = tmp_path / "offsets" / "3"
    offsets.write_bytes(offsets.read_bytes().replace(b'"batchWatermarkMs":0', b'"batchWatermarkMs":1'))
    findings = Findings()
    check_files(read_checkpoint(str(tmp_path)), findings)
    assert [(each.severity.value, each.code, each.where) for each in findings] == [("fault", "checksum", "offsets/3")]
