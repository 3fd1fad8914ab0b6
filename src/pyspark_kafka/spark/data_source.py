"""The data source that Spark finds by the name `pyspark_kafka`.

Each method imports what it needs. Spark starts a Python process for each step of a query, one after the other: to find
the source, to create it, to plan a read, to create a writer. The first needs this class only, most of the others need
the options and little more, and to import the rest takes longer than the step itself.
"""
# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from pyspark_kafka.options import BatchReadOptions, StreamReadOptions, WriteOptions
    from pyspark_kafka.sink.columns import SinkColumns

_LOG = logging.getLogger(__name__)

_LOGGED_NOTES: set[str] = set()


class KafkaDataSource(DataSource):
    """Apache Kafka as `format("pyspark_kafka")`: batch and micro-batch source, batch and streaming sink.

    Programs do not use this class. Spark finds it by the format's name:

    ```python
    read = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", "localhost:9092")
    read.option("subscribe", "events").load().show()
    ```

    docs/options.md has all options.

    Runs on: driver. `schema` at `load()`; `reader` and `writer` when a batch query is planned; `streamReader` when a
    streaming query starts; `streamWriter` once per micro-batch.

    Raises:
        OptionError: options are missing, unknown, malformed or in conflict.
        SchemaError: the columns asked for, or to be written, do not fit.

    Source: Spark `KafkaSourceProvider`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "pyspark_kafka"

    def schema(self) -> StructType:
        """Return the source's columns, after checking the options, so that mistakes show at `load()`."""
        from pyspark_kafka.options import parse_read_options
        from pyspark_kafka.spark.processes.process_log import log_as_spark
        from pyspark_kafka.spark.source_schema import spark_source_schema

        log_as_spark("load()")
        # Spark does not say whether this is a batch read or a stream. An option that is wrong in one of them alone is
        # refused when the query is planned or started.
        options = parse_read_options(self.options)
        return spark_source_schema(include_headers=options.include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Build the reader of a batch query."""
        from pyspark_kafka.options import parse_batch_read_options
        from pyspark_kafka.source.driver.batch import KafkaBatch
        from pyspark_kafka.spark.processes.process_log import log_as_spark
        from pyspark_kafka.spark.readers import BatchReaderAdapter, FilteringBatchReaderAdapter

        log_as_spark("planning a batch read")
        options = parse_batch_read_options(self.options)
        log_as_spark(f"planning a batch read of {options.subscription.describe()}")
        _log_notes(options.notes)
        batch = KafkaBatch(options, _checked(schema, options))
        return FilteringBatchReaderAdapter(batch) if options.push_down_predicate else BatchReaderAdapter(batch)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Build the reader of a streaming query; if that fails, one whose first call raises the error."""
        from pyspark_kafka.errors import ConnectorError
        from pyspark_kafka.options import parse_stream_read_options
        from pyspark_kafka.source.driver.micro_batch import KafkaMicroBatchStream
        from pyspark_kafka.spark.processes.process_log import log_as_spark
        from pyspark_kafka.spark.readers import RefusedStreamReader, StreamReaderAdapter

        log_as_spark("starting a streaming read")
        try:
            options = parse_stream_read_options(self.options)
            log_as_spark(f"planning a streaming read of {options.subscription.describe()}")
            # Spark builds a second one, only to pickle it.
            say_notes = partial(_log_notes, options.notes)
            return StreamReaderAdapter(KafkaMicroBatchStream(options, _checked(schema, options)), say_notes)
        except ConnectorError as error:
            return RefusedStreamReader(error.with_traceback(None))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Build the writer of a batch query."""
        from pyspark_kafka.errors import OptionError
        from pyspark_kafka.options import parse_write_options
        from pyspark_kafka.spark.processes.process_log import log_as_spark
        from pyspark_kafka.spark.writers import BatchWriterAdapter

        log_as_spark("planning a batch write")
        options = parse_write_options(self.options, streaming=False)
        _log_notes(options.notes)
        if overwrite:
            raise OptionError(
                "Save mode 'overwrite' is not possible: Kafka topics are appended to. Nothing was written.",
                condition="SAVE_MODE_NOT_SUPPORTED",
                hint='Use .mode("append").',
            )
        columns = _found(schema, options)
        if options.exactly_once is not None:
            from pyspark_kafka.sink.driver.exactly_once import KafkaExactlyOnceBatchWrite

            return BatchWriterAdapter(KafkaExactlyOnceBatchWrite(options, options.exactly_once, columns))
        from pyspark_kafka.sink.driver.at_least_once import KafkaBatchWrite

        return BatchWriterAdapter(KafkaBatchWrite(options, columns))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: ARG002 - Spark's contract
        """Build the writer of one micro-batch. Complete mode sends the whole result again at each trigger."""
        from pyspark_kafka.options import parse_write_options
        from pyspark_kafka.spark.processes.process_log import log_as_spark
        from pyspark_kafka.spark.writers import StreamWriterAdapter

        log_as_spark("planning a streaming write")
        options = parse_write_options(self.options, streaming=True)
        _log_notes(options.notes)
        columns = _found(schema, options)
        if options.exactly_once is not None:
            from pyspark_kafka.sink.driver.exactly_once import KafkaExactlyOnceStreamingWrite

            return StreamWriterAdapter(KafkaExactlyOnceStreamingWrite(options, options.exactly_once, columns))
        from pyspark_kafka.sink.driver.at_least_once import KafkaStreamingWrite

        return StreamWriterAdapter(KafkaStreamingWrite(options, columns))


def _log_notes(notes: tuple[str, ...]) -> None:
    """Log the options without effect, and a slow codec, once a process.

    A stream writer is built for every micro-batch.
    """
    from pyspark_kafka.records import codec_info

    codec = codec_info()
    slow = () if codec.compiled else (codec.hint,)
    for note in (*notes, *slow):
        if note not in _LOGGED_NOTES:
            _LOGGED_NOTES.add(note)
            _LOG.warning(note)


def _checked(schema: StructType, options: BatchReadOptions | StreamReadOptions) -> pa.Schema:
    from pyspark_kafka.source.executor.columns import check_asked_columns
    from pyspark_kafka.spark.compat import arrow_schema

    asked = arrow_schema(schema)
    check_asked_columns([(field.name, field.type) for field in asked], include_headers=options.include_headers)
    return asked


def _found(schema: StructType, options: WriteOptions) -> SinkColumns:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pyspark_kafka.sink.columns import SINK_COLUMN_NAMES, Column, find_sink_columns
    from pyspark_kafka.spark.compat import arrow_schema

    # The sink ignores columns that it does not know, so their types need no Arrow form.
    columns = [
        Column(
            field.name,
            arrow_schema(StructType([field])).field(0).type if field.name in SINK_COLUMN_NAMES else pa.null(),
            field.dataType.simpleString(),
        )
        for field in schema.fields
    ]
    return find_sink_columns(columns, topic_option=options.topic)
