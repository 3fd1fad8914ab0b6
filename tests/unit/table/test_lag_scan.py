"""The view `lag` as a plan: its columns, its one task, and what it refuses."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from pyspark_kafka.connector import SupportsPushDownRequiredColumns
from pyspark_kafka.errors import CapabilityError, CheckpointError, OptionError
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.operations.lag.columns import LAG_SCHEMA
from pyspark_kafka.operations.lag.positions import LagPositions
from pyspark_kafka.table.kafka_table import KafkaTable
from pyspark_kafka.table.lag_scan import LagInputPartition, LagScan

LAG = {"kafka.bootstrap.servers": "b:9092", "view": "lag"}


def scan(**options: str) -> LagScan:
    built = KafkaTable().newScanBuilder({**LAG, **options}).build()
    assert isinstance(built, LagScan)
    return built


def test_view_has_fixed_columns_and_is_no_read_of_records() -> None:
    assert KafkaTable().schema({**LAG, "lagGroup": "g"}) == LAG_SCHEMA
    assert scan(lagGroup="g").readSchema() == LAG_SCHEMA
    assert not isinstance(KafkaTable().newScanBuilder({**LAG, "lagGroup": "g"}), SupportsPushDownRequiredColumns)
    with pytest.raises(OptionError, match="must be set"):
        KafkaTable().schema(LAG)


def test_view_of_a_group_is_one_task_that_asks_for_the_positions() -> None:
    batch = scan(lagGroup="g").toBatch()
    (task,) = batch.planInputPartitions()
    assert task == LagInputPartition("g")
    assert pickle.dumps((task, batch.createReaderFactory()))
    assert scan(lagGroup="g").description() == "Lag[g]"


def test_view_of_a_checkpoint_has_its_positions_read_by_the_driver(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": 5}}])
    (task,) = scan(lagCheckpoint=str(tmp_path)).toBatch().planInputPartitions()
    assert isinstance(task, LagInputPartition)
    assert isinstance(task.positions, LagPositions)
    assert task.positions.partitions == {TopicPartition("t", 0): 5}
    with pytest.raises(CheckpointError, match="There is no checkpoint"):
        scan(lagCheckpoint=str(tmp_path / "none")).toBatch().planInputPartitions()


def test_view_cannot_be_streamed() -> None:
    for stream in (LagScan.toMicroBatchStream, LagScan.toContinuousStream):
        with pytest.raises(CapabilityError, match="View 'lag' can be read in a batch query only") as caught:
            stream(scan(lagGroup="g"), None)
        assert caught.value.condition == "VIEW_NOT_STREAMING"


def test_view_notes_options_without_effect() -> None:
    assert scan(lagGroup="g", startingOffsets="earliest").notes() == (
        "Option 'startingOffsets' has no effect: a view reads no records.",
    )
