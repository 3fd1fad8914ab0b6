"""Kafka as a table: its columns, what it can do, and the builders of reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.options import (
    parse_batch_read_options,
    parse_read_options,
)
from pyspark_kafka.connector import (
    LogicalWriteInfo,
    ScanBuilder,
    SupportsRead,
    SupportsWrite,
    TableCapability,
    WriteBuilder,
)
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


class KafkaTable(SupportsRead, SupportsWrite):
    """The topics of a cluster: batch, micro-batch and continuous source, batch and streaming sink.

    The options say which topics: <https://pyspark-kafka.github.io/pyspark-kafka/options/>. The modules of a read or of
    a write are imported when one is built: an engine may use a process for each step, as PySpark does.

    Runs on: driver; plain, pickles; no method opens a connection to a broker.

    Source: Spark `org.apache.spark.sql.kafka010.KafkaSourceProvider.KafkaTable`.
    """

    def name(self) -> str:
        """Return the format's name."""
        return "pyspark_kafka"

    def capabilities(self) -> frozenset[TableCapability]:
        """Return the capabilities of Kafka. It cannot be emptied: topics are appended to."""
        return frozenset(
            {
                TableCapability.BATCH_READ,
                TableCapability.MICRO_BATCH_READ,
                TableCapability.CONTINUOUS_READ,
                TableCapability.BATCH_WRITE,
                TableCapability.STREAMING_WRITE,
            }
        )

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        """Return the source's columns; `headers` is one of them with option `includeHeaders`.

        Blocks on the schema registry, if keys or values have a format whose schema is there.

        Raises:
            OptionError: the options are invalid in a batch read and in a streaming read.
            SchemaError, RegistryError, CheckpointError, MissingDependencyError: see `plan_columns`.
        """
        from pyspark_kafka._connector.source.read_columns import plan_columns  # noqa: PLC0415 - see above

        return plan_columns(parse_read_options(options)).schema

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        """Return the builder of one read. Options are checked when it is known which kind of read it is.

        Raises:
            OptionError: see `KafkaScan`, whose methods raise it.
        """
        if _asks_for_filters(options):
            from pyspark_kafka._connector.table.filtering_scan import FilteringKafkaScanBuilder  # noqa: PLC0415 - see above

            return FilteringKafkaScanBuilder(options)
        from pyspark_kafka._connector.table.scan import KafkaScanBuilder  # noqa: PLC0415 - see above

        return KafkaScanBuilder(options)

    def newWriteBuilder(self, info: LogicalWriteInfo) -> WriteBuilder:
        """Return the builder of one write. Options and columns are checked when it is known which kind of write it is.

        Raises:
            OptionError: see `KafkaWrite`, whose methods raise it.
        """
        from pyspark_kafka._connector.table.write import KafkaWriteBuilder  # noqa: PLC0415 - see above

        return KafkaWriteBuilder(info)


def _asks_for_filters(options: Mapping[str, str]) -> bool:
    try:
        parsed = parse_batch_read_options(options)
    except OptionError:
        # Raised again when the read is built; a stream has other options.
        return False
    return parsed.push_down_predicate
