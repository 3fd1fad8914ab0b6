"""That reused workers leave what was imported out of PySpark's collections of garbage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from pyspark_kafka._connector.spark.data_source import KafkaDataSource
from pyspark_kafka._connector.spark.readers import BatchReaderAdapter
from pyspark_kafka._connector.spark.writers import BatchWriterAdapter

# Fewer than any process has that has imported pyarrow.
_MANY = 10_000


def source_that_counts() -> type[KafkaDataSource]:
    """Return our source with another name, whose values are how many objects are frozen in their worker."""

    class CountingReader(BatchReaderAdapter):
        def read(self, partition: Any) -> Any:
            import gc  # noqa: PLC0415 - pickled by value

            import pyarrow as pa  # noqa: PLC0415

            for batch in super().read(partition):
                frozen = pa.array([str(gc.get_freeze_count()).encode()] * batch.num_rows, pa.binary())
                yield pa.RecordBatch.from_arrays([frozen], schema=batch.schema)

    class CountingSource(KafkaDataSource):
        @classmethod
        def name(cls) -> str:
            return "kafka_with_frozen_objects"

        def reader(self, schema: StructType) -> DataSourceReader:
            plain = KafkaDataSource.reader(self, schema)
            return CountingReader(plain._batch)  # type: ignore[attr-defined]

    return CountingSource


def sink_that_counts(counts: Path) -> type[KafkaDataSource]:
    """Return our sink with another name, whose tasks note how many objects are frozen in their worker."""

    class CountingWriter(BatchWriterAdapter):
        def write(self, iterator: Any) -> Any:
            import gc  # noqa: PLC0415 - pickled by value

            message = super().write(iterator)
            with counts.open("a") as out:
                out.write(f"{gc.get_freeze_count()}\n")
            return message

    class CountingSink(KafkaDataSource):
        @classmethod
        def name(cls) -> str:
            return "kafka_counting_frozen_objects"

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
            plain = KafkaDataSource.writer(self, schema, overwrite)
            return CountingWriter(plain._job)  # type: ignore[attr-defined]

    return CountingSink


def test_a_reused_worker_that_only_reads_has_frozen_what_it_imported(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    spark.dataSource.register(source_that_counts())
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)])
    reader = spark.read.format("kafka_with_frozen_objects").option("kafka.bootstrap.servers", bootstrap_servers)
    rows = reader.option("subscribe", topic).schema("value binary").load()
    for _ in range(5):
        (row,) = rows.collect()
        if int(row.value) > _MANY:
            break
    assert int(row.value) > _MANY


def test_a_reused_worker_that_writes_has_frozen_what_it_imported(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    counts = tmp_path / "counts"
    spark.dataSource.register(sink_that_counts(counts))
    rows = spark.range(0, 1, numPartitions=1).selectExpr("cast(id as string) as value")
    writer = rows.write.format("kafka_counting_frozen_objects").option("kafka.bootstrap.servers", bootstrap_servers)
    writer = writer.option("topic", make_topic()).mode("append")
    # One task at a time: the second finds the worker of the first, unless Spark has ended it.
    for _ in range(5):
        writer.save()
        found = [int(line) for line in counts.read_text().split()]
        if found[-1] > _MANY:
            break
    assert found[-1] > _MANY
