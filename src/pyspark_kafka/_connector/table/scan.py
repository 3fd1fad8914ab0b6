"""One read of Kafka, as a plan: its columns, and how it runs in each kind of query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.options import parse_batch_read_options, parse_read_options, parse_stream_read_options
from pyspark_kafka._connector.source.read_columns import plan_columns
from pyspark_kafka.connector import (
    Batch,
    ContinuousStream,
    MicroBatchStream,
    Scan,
    SupportsPushDownRequiredColumns,
)
from pyspark_kafka.records import codec_info

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from pyspark_kafka._client.options import BatchReadOptions, StreamReadOptions
    from pyspark_kafka._connector.planning.record_filter import RecordFilter
    from pyspark_kafka._connector.source.read_columns import ReadColumns


class KafkaScanBuilder(SupportsPushDownRequiredColumns):
    """The scan builder of a query's columns; all columns, if it names none.

    Runs on: driver; used once.

    Source: Spark `org.apache.spark.sql.kafka010.KafkaSourceProvider.KafkaTable.newScanBuilder`.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._asked: pa.Schema | None = None

    def pruneColumns(self, requiredSchema: pa.Schema) -> None:
        """Set the query's columns; `KafkaScan` checks them, because it has the options of its kind."""
        self._asked = requiredSchema

    def build(self) -> KafkaScan:
        """Return the read."""
        return KafkaScan(self._options, self._asked)


class KafkaScan(Scan):
    """A read of the topics that the options subscribe to.

    Which options are valid depends on the kind of query, so they are checked when a batch or a stream is requested.

    Runs on: driver; no method opens a connection to a broker. If keys or values have a format, the methods that begin
    with `to`, and `readSchema` where the query names no columns, block on the schema registry.

    Args:
        options: as the user set them.
        asked: the columns that the query reads, in its order; None: all.
        record_filter: what a batch read may leave unread; a stream reads all records.

    Raises:
        OptionError: from every method that begins with `to`: options are missing, unknown, malformed or in conflict.
        SchemaError: from the same: a column does not exist, is requested twice, or has another type.
        RegistryError, CheckpointError, MissingDependencyError: from the same; see `plan_columns`.

    Source: Spark `org.apache.spark.sql.kafka010.KafkaSourceProvider.KafkaScan`.
    """

    def __init__(
        self, options: Mapping[str, str], asked: pa.Schema | None = None, record_filter: RecordFilter | None = None
    ) -> None:
        self._raw = options
        self._asked = asked
        self._filter = record_filter
        self._parsed: BatchReadOptions | StreamReadOptions | None = None
        self._planned: ReadColumns | None = None

    def readSchema(self) -> pa.Schema:
        """Return the columns of every Arrow batch."""
        if self._asked is not None:
            return self._asked
        if self._planned is None:
            self._planned = plan_columns(self._options)
        return self._planned.schema

    def description(self) -> str:
        """Return the subscription, as `Subscribe[orders]`."""
        return self._options.subscription.describe()

    def notes(self) -> tuple[str, ...]:
        """Return the options without effect, and a slow codec."""
        return (*self._options.notes, *codec_info().notes)

    def toBatch(self) -> Batch:
        """Return this read for a batch query."""
        from pyspark_kafka._connector.source.driver.batch import KafkaBatch  # noqa: PLC0415 - a stream needs another module

        options = parse_batch_read_options(self._raw)
        self._parsed = options
        columns = self._columns(options)
        if options.trace is None:
            batch = KafkaBatch(options, columns.schema, columns.formats)
        else:
            from pyspark_kafka._connector.table.traced_reads import TracedBatch  # noqa: PLC0415 - few reads have spans

            batch = TracedBatch(options, columns.schema, columns.formats)
        if self._filter is not None:
            batch.narrow(self._filter)
        return batch

    def toMicroBatchStream(self, checkpointLocation: str | None) -> MicroBatchStream:
        """Return this read for a streaming query.

        Args:
            checkpointLocation: where it keeps its start and the ids of its topics. The option of this name takes
                precedence: it is the checkpoint of the query, with a directory for each source.
        """
        from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream  # noqa: PLC0415 - as above

        options = parse_stream_read_options(self._raw)
        self._parsed = options
        columns = self._columns(options)
        kind = KafkaMicroBatchStream
        if options.trace is not None:
            from pyspark_kafka._connector.table.traced_reads import TracedMicroBatchStream  # noqa: PLC0415 - as above

            kind = TracedMicroBatchStream
        return kind(options, columns.schema, columns.formats, location=checkpointLocation, versions=columns.versions)

    def toContinuousStream(self, checkpointLocation: str | None) -> ContinuousStream:
        """Return this read for a continuous query.

        Args:
            checkpointLocation: as in `toMicroBatchStream`.
        """
        from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream  # noqa: PLC0415 - as above

        options = parse_stream_read_options(self._raw)
        self._parsed = options
        columns = self._columns(options)
        return KafkaContinuousStream(
            options, columns.schema, columns.formats, location=checkpointLocation, versions=columns.versions
        )

    @property
    def _options(self) -> BatchReadOptions | StreamReadOptions:
        if self._parsed is None:
            self._parsed = parse_read_options(self._raw)
        return self._parsed

    def _columns(self, options: BatchReadOptions | StreamReadOptions) -> ReadColumns:
        # The returned columns are the columns of this read, whatever the registry has by now.
        asked = self._asked if self._planned is None else self._planned.schema
        self._planned = plan_columns(options, asked, starts=True)
        return self._planned
