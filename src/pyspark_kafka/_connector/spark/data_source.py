"""The data source that Spark finds by the name `pyspark_kafka`: `KafkaTable`, as any other table.

What is here is what the first processes of a query need without Arrow and without the table's module, and what only
PySpark's users know: save modes.
"""
# ruff: noqa: PLC0415 - each method imports what its step needs, as in `table_source`

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._connector.spark.table_source import TableDataSource

# What Spark's catalog adds to the options of a table.
_TABLE_PROPERTIES = frozenset({"provider", "owner"})

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceWriter
    from pyspark.sql.types import StructType

    from pyspark_kafka._connector.table.kafka_table import KafkaTable


class KafkaDataSource(TableDataSource):
    """Apache Kafka as `format("pyspark_kafka")`: batch and micro-batch source, batch and streaming sink.

    Programs do not use this class. Spark finds it by the format's name:

    ```python
    read = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", "localhost:9092")
    read.option("subscribe", "events").load().show()
    ```

    All options: <https://pyspark-kafka.github.io/pyspark-kafka/options/>.

    Runs on: driver. `schema` at `load()`; `reader` and `writer` when a batch query is planned; `streamReader` when a
    streaming query starts; `streamWriter` once per micro-batch.

    Raises:
        OptionError: options are missing, unknown, malformed or in conflict.
        SchemaError: the requested columns, or the columns to write, do not fit.

    Source: Spark `KafkaSourceProvider`.
    """

    has_checks = False

    @classmethod
    def table(cls) -> KafkaTable:
        """Return Kafka as a table."""
        from pyspark_kafka._connector.table.kafka_table import KafkaTable

        return KafkaTable()

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "pyspark_kafka"

    def schema(self) -> StructType:
        """Return the source's columns, after checking the options, so that mistakes show at `load()`.

        The table's own `schema` is made of Arrow's types, whose import takes longer than the rest of this process. It
        is asked only where keys or values have a format.
        """
        from pyspark_kafka._client.options import parse_read_options
        from pyspark_kafka._connector.spark.processes.process_log import log_as_spark
        from pyspark_kafka._connector.spark.source_schema import spark_source_schema

        log_as_spark("load()")
        if set(self.options) >= _TABLE_PROPERTIES:
            from pyspark_kafka.errors import OptionError

            # Only here does the source see what it is made for; the queries of the table get no options at all.
            raise OptionError(
                "A table of SQL over a topic cannot be created: Spark does not pass the options of a table to its "
                "queries, so the table could be neither read nor written. Nothing was created.",
                condition="SQL_TABLE_NOT_SUPPORTED",
                hint="Create a view: CREATE TEMPORARY VIEW … USING pyspark_kafka OPTIONS (…). To write, use df.write.",
            )
        # Spark does not say whether this is a batch read or a stream. An option that is wrong in only one of them is
        # refused when the query is planned or started.
        options = parse_read_options(self.options)
        if options.typed is not None:
            from pyspark_kafka._connector.spark.compat import spark_schema

            return spark_schema(self._schema())
        return spark_source_schema(include_headers=options.include_headers)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query."""
        if overwrite:
            from pyspark_kafka.errors import OptionError

            raise OptionError(
                "Save mode 'overwrite' is not possible: Kafka topics are appended to. Nothing was written.",
                condition="SAVE_MODE_NOT_SUPPORTED",
                hint='Use .mode("append").',
            )
        return super().writer(schema, overwrite)
