"""One write to Kafka as a plan: which job it is, and which columns it takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.driver.at_least_once import (
    KafkaBatchWrite,
    KafkaDataWriterFactory,
    KafkaStreamingWrite,
)
from pyspark_kafka._connector.sink.driver.exactly_once import KafkaExactlyOnceBatchWrite, KafkaExactlyOnceStreamingWrite
from pyspark_kafka._connector.table.write import KafkaWrite, KafkaWriteBuilder
from pyspark_kafka.connector import LogicalWriteInfo, PhysicalWriteInfo
from pyspark_kafka.connector.columns import with_type_name
from pyspark_kafka.errors import OptionError, SchemaError

TO = {"kafka.bootstrap.servers": "b:9092", "topic": "t"}
VALUE = pa.field("value", pa.binary())


def write_of(options: Mapping[str, str], *columns: pa.Field) -> KafkaWrite:
    return KafkaWriteBuilder(LogicalWriteInfo(options, pa.schema(list(columns)))).build()


def test_jobs_are_those_of_the_guarantee(tmp_path: Path) -> None:
    assert isinstance(write_of(TO, VALUE).toBatch(), KafkaBatchWrite)
    assert isinstance(write_of(TO, VALUE).toStreaming(), KafkaStreamingWrite)
    once = {**TO, "deliveryGuarantee": "exactly_once", "checkpointLocation": str(tmp_path)}
    assert isinstance(write_of(once, VALUE).toStreaming(), KafkaExactlyOnceStreamingWrite)
    del once["checkpointLocation"]
    assert isinstance(write_of(once, VALUE).toBatch(), KafkaExactlyOnceBatchWrite)


def test_columns_are_found_among_others_that_have_no_arrow_form() -> None:
    factory: Any = (
        write_of(TO, pa.field("since", pa.null()), VALUE).toBatch().createBatchWriterFactory(PhysicalWriteInfo())
    )
    assert isinstance(factory, KafkaDataWriterFactory)
    assert factory.columns == SinkColumns(value=1)


def test_error_calls_types_as_the_engine_does() -> None:
    columns = [
        with_type_name(pa.field("key", pa.int64()), "bigint"),
        with_type_name(pa.field("value", pa.null()), "interval"),
        pa.field("partition", pa.int64()),
    ]
    for run in (KafkaWrite.toBatch, KafkaWrite.toStreaming):
        with pytest.raises(SchemaError) as caught:
            run(write_of(TO, *columns))
        assert str(caught.value).startswith(
            "[SCHEMA_MISMATCH.SINK] The DataFrame cannot be written to Kafka: column 'key' is bigint and must be "
            "string or binary; column 'value' is interval and must be string or binary; column 'partition' is int64 "
            "and must be int. Its columns: key bigint, value interval, partition int64. Nothing was written."
        )


def test_options_are_those_of_the_kind_of_write() -> None:
    once = {**TO, "deliveryGuarantee": "exactly_once"}
    with pytest.raises(OptionError, match="checkpointLocation"):
        write_of(once, VALUE).toStreaming()
    assert write_of(once, VALUE).toBatch() is not None


def test_identity_headers_are_refused_where_epochs_run_again_with_other_rows() -> None:
    stream: Any = None
    write = write_of({**TO, "identityHeaders": "true"}, VALUE)
    with pytest.raises(OptionError, match="'identityHeaders' has no meaning in a continuous query"):
        write.toContinuous(stream, 1_000)
    assert isinstance(write_of(TO, VALUE).toContinuous(stream, 1_000), KafkaStreamingWrite)


def test_complete_mode_appends_to_the_topic() -> None:
    builder = KafkaWriteBuilder(LogicalWriteInfo(TO, pa.schema([VALUE])))
    assert builder.truncate() is builder


def test_notes_are_there_when_the_job_is() -> None:
    write = write_of({**TO, "spoolLocation": "/tmp/spool"}, VALUE)  # noqa: S108 - not opened
    write.toBatch()
    assert "'spoolLocation' has no effect" in write.notes()[0]
