"""Python data sources without Kafka, which show what Spark itself allows.

One hands on a prepared batch again and again, the other throws away what it is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NAME = "prepared"
SINK_NAME = "thrown_away"
_ROWS = 10_000


def register(spark: SparkSession, columns: StructType, partitions: int) -> None:
    """Register the source with the columns of another one.

    Option `records` sets how many rows it yields, `rows` how many of them a batch has.
    """

    # Local classes, so that they are pickled whole: workers cannot import this folder.
    class Reader(DataSourceReader):
        def __init__(self, schema: StructType, records: int, rows: int) -> None:
            self._schema = schema
            self._rows, self._batches = rows, records // partitions // rows

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(number) for number in range(partitions)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - all are alike
            import pyarrow as pa  # noqa: PLC0415 - in the worker

            from pyspark_kafka._connector.spark.compat import arrow_schema  # noqa: PLC0415 - as above

            schema = arrow_schema(self._schema)
            values: dict[str, Any] = {
                "key": b"k000000000",
                "value": b"v" * 90,
                "topic": "records-lz4",
                "partition": 1,
                "offset": 1_000_000,
                "timestamp": 1_700_000_000_000_000,
                "timestampType": 0,
            }
            columns = [pa.repeat(pa.scalar(values[field.name], field.type), self._rows) for field in schema]
            batch = pa.RecordBatch.from_arrays(columns, schema=schema)
            for _ in range(self._batches):
                yield batch

    class Prepared(DataSource):
        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> StructType:
            return columns

        def reader(self, schema: StructType) -> DataSourceReader:
            return Reader(schema, int(self.options["records"]), int(self.options.get("rows", _ROWS)))

    spark.dataSource.register(Prepared)


def register_sink(spark: SparkSession) -> None:
    """Register a sink that takes its rows and drops them."""

    # Local classes for the same reason.
    class Writer(DataSourceArrowWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class ThrownAway(DataSource):
        @classmethod
        def name(cls) -> str:
            return SINK_NAME

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002 - Spark's contract
            return Writer()

    spark.dataSource.register(ThrownAway)
