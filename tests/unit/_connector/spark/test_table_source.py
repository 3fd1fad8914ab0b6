"""A table as a PySpark data source: what it gets, what it is asked for, and what is logged."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, DataSource
from pyspark.sql.types import CalendarIntervalType, LongType, StringType, StructField, StructType

from kit.texts import said
from pyspark_kafka import as_data_source
from pyspark_kafka._connector.spark import stream_readers, table_source
from pyspark_kafka._connector.spark.compat import schema_to_write
from pyspark_kafka._connector.spark.data_source import KafkaDataSource
from pyspark_kafka.connector import (
    BatchWrite,
    DataWriterFactory,
    LogicalWriteInfo,
    StreamingDataWriterFactory,
    StreamingWrite,
    SupportsTruncate,
    SupportsWrite,
    TableCapability,
    Write,
    WriteBuilder,
)
from pyspark_kafka.connector.columns import type_name
from pyspark_kafka.errors import CapabilityError, OptionError

ROWS = StructType([StructField("value", StringType())])
SINK = {"kafka.bootstrap.servers": "b:9092", "topic": "t"}
BOTH = frozenset({TableCapability.BATCH_WRITE, TableCapability.STREAMING_WRITE})


class NoFactory(DataWriterFactory, StreamingDataWriterFactory):
    def createWriter(self, *_: Any) -> Any:  # noqa: N802 - Spark's contract
        raise NotImplementedError


class NoJob(BatchWrite, StreamingWrite):
    """A job that can be planned."""

    def createBatchWriterFactory(self, *_: Any) -> DataWriterFactory:  # noqa: N802 - Spark's contract
        return NoFactory()

    def createStreamingWriterFactory(self, *_: Any) -> StreamingDataWriterFactory:  # noqa: N802 - Spark's contract
        return NoFactory()

    def commit(self, *_: Any) -> None:
        raise NotImplementedError

    def abort(self, *_: Any) -> None:
        raise NotImplementedError


class Told(Write):
    def __init__(self, table: Target) -> None:
        self.table = table

    def notes(self) -> tuple[str, ...]:
        return self.table.said

    def toBatch(self) -> BatchWrite:  # noqa: N802 - Spark's contract
        return NoJob()

    def toStreaming(self) -> StreamingWrite:  # noqa: N802 - Spark's contract
        return NoJob()


class PlainBuilder(WriteBuilder):
    def __init__(self, table: Target) -> None:
        self.table = table

    def build(self) -> Write:
        return Told(self.table)


class TruncatingBuilder(PlainBuilder, SupportsTruncate):
    def truncate(self) -> WriteBuilder:
        self.table.truncated += 1
        return self


class Target(SupportsWrite):
    """A table that keeps what it was told."""

    def __init__(
        self, builder: type[PlainBuilder] = PlainBuilder, *named: TableCapability, said: tuple[str, ...] = ()
    ) -> None:
        self.builder, self.named, self.said = builder, BOTH | set(named), said
        self.truncated = 0
        self.infos: list[LogicalWriteInfo] = []

    def name(self) -> str:
        return "target"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:  # noqa: ARG002
        return pa.schema([])

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset(self.named)

    def newWriteBuilder(self, info: LogicalWriteInfo) -> WriteBuilder:  # noqa: N802 - Spark's contract
        self.infos.append(info)
        return self.builder(self)


def source_of(table: Target) -> DataSource:
    return as_data_source(table)({})


def test_columns_without_an_arrow_form_have_the_type_null_and_their_name() -> None:
    rows = StructType(
        [
            StructField("since", CalendarIntervalType()),
            StructField("n", LongType(), nullable=False),
        ]
    )
    found = schema_to_write(rows)
    assert found == pa.schema([pa.field("since", pa.null()), pa.field("n", pa.int64(), nullable=False)])
    assert [type_name(field) for field in found] == ["interval", "bigint"]
    table = Target()
    source_of(table).writer(rows, False)
    assert table.infos[0].schema == found


def test_batch_write_asks_only_a_table_that_names_truncate_to_be_emptied() -> None:
    for builder in (PlainBuilder, TruncatingBuilder):
        table = Target(builder)
        with pytest.raises(CapabilityError, match=r"CAPABILITY_MISSING.*'target' cannot be emptied"):
            source_of(table).writer(ROWS, True)
        assert table.truncated == 0
    able = Target(TruncatingBuilder, TableCapability.TRUNCATE)
    source_of(able).writer(ROWS, True)
    assert able.truncated == 1


def test_complete_mode_asks_the_builder_to_truncate_whatever_the_table_names() -> None:
    table = Target(TruncatingBuilder)
    source_of(table).streamWriter(ROWS, True)
    assert table.truncated == 1
    with pytest.raises(CapabilityError, match="CAPABILITY_MISSING"):
        source_of(Target(PlainBuilder)).streamWriter(ROWS, True)


@pytest.mark.parametrize("kind", ["writer", "streamWriter"])
def test_capability_that_the_builder_lacks_is_named(kind: str) -> None:
    table = Target(PlainBuilder, TableCapability.TRUNCATE)
    with pytest.raises(CapabilityError, match=r"CAPABILITY_NOT_IMPLEMENTED.*PlainBuilder has no method truncate\(\)"):
        getattr(source_of(table), kind)(ROWS, True)


def test_notes_of_a_table_are_logged_once_for_a_process(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_source, "_LOGGED_NOTES", set())
    table = Target(PlainBuilder, said=("An option has no effect.",))
    with caplog.at_level(logging.WARNING, "pyspark_kafka"):
        for _ in range(2):
            source_of(table).streamWriter(ROWS, False)
    assert [record.message for record in caplog.records] == ["An option has no effect."]


def test_notes_of_a_stream_are_logged_at_its_first_planning_call(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark builds a second reader in another process, only to pickle it."""
    monkeypatch.setattr(table_source, "_LOGGED_NOTES", set())
    # This process plans no query: it would end by a SIGTERM that a later test raises.
    stopped_by: list[object] = []
    monkeypatch.setattr(stream_readers, "stop_at_sigterm", stopped_by.append)
    options = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t", "maxTriggerDelay": "5m"}
    source = KafkaDataSource(options)
    with caplog.at_level(logging.WARNING, "pyspark_kafka"):
        reader = source.streamReader(source.schema())
        told = [record.message for record in caplog.records if "maxTriggerDelay" in record.message]
        assert (told, stopped_by) == ([], [])
        reader.commit({"t": {"0": 1}})
        reader.commit({"t": {"0": 2}})
    assert stopped_by == [reader.stop]
    told = [record.message for record in caplog.records if "maxTriggerDelay" in record.message]
    assert told == ["Option 'maxTriggerDelay' has no effect: 'minOffsetsPerTrigger' is not given."]


def test_kafka_refuses_save_mode_overwrite_and_takes_complete_mode() -> None:
    source = KafkaDataSource(SINK)
    with pytest.raises(OptionError) as caught:
        source.writer(ROWS, True)
    assert said(caught.value) == (
        "[SAVE_MODE_NOT_SUPPORTED] Save mode 'overwrite' is not possible: Kafka topics are appended to. Nothing was "
        'written. Hint: Use .mode("append").'
    )
    source.streamWriter(ROWS, True)


def test_kafka_refuses_a_table_of_sql_when_it_is_created() -> None:
    # As Spark 4.3 hands them over for CREATE TABLE … USING pyspark_kafka OPTIONS (subscribe 't').
    options = {"provider": "pyspark_kafka", "owner": "root", "subscribe": "t", "option.subscribe": "t"}
    with pytest.raises(OptionError) as caught:
        KafkaDataSource(options).schema()
    assert str(caught.value).startswith(
        "[SQL_TABLE_NOT_SUPPORTED] A table of SQL over a topic cannot be created: Spark"
    )
    assert "Hint: Create a view: CREATE TEMPORARY VIEW" in str(caught.value)


def test_table_gets_the_checkpoint_as_spark_reads_its_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = "<configuration><property><name>fs.defaultFS</name><value>hdfs://nn</value></property></configuration>"
    (tmp_path / "core-site.xml").write_text(settings)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    table = Target()
    options = CaseInsensitiveDict({"checkpointLocation": "/cp", "topic": "t"})
    as_data_source(table)(options).streamWriter(ROWS, overwrite=False)
    assert dict(table.infos[0].options) == {"checkpointlocation": "hdfs://nn/cp", "topic": "t"}
