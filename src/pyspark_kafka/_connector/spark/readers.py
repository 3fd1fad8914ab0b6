"""Adapters of batch reads: a `Batch` as PySpark's batch reader, and the loop of a task that reads."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.datasource import InputPartition as SparkInputPartition

from pyspark_kafka._connector.spark.processes.process_log import spark_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from pyspark_kafka.connector import (
        Batch,
        PartitionReaderFactory,
        SupportsPushDownFilters,
    )


class SparkPartition(SparkInputPartition):
    """Carries one of our input partitions through Spark; `value` is None where Spark planned an empty read."""


def read_partition(factory: PartitionReaderFactory, partition: SparkInputPartition | None) -> Iterator[pa.RecordBatch]:
    """Drive a partition reader to its end.

    Runs on: executor, in a reused Python worker; a generator, so that the reader is closed when Spark stops
    asking (a limit, a killed task) as well as at the end.
    """
    # What Spark plans itself when a batch read has no partitions; before PySpark 4.2 it is no partition at all.
    if partition is None or partition.value is None:
        return
    with spark_step(freeze=True), closing(factory.createReader(partition.value)) as reader:
        while reader.next():
            yield reader.get()


class BatchReaderAdapter(DataSourceReader):
    """Runs a `Batch` as a PySpark batch reader.

    Runs on: driver for `partitions`; pickled with the reader factory for `read` on executors.

    Args:
        batch: the read.
        schema: of its rows, with which they are compared; None: they are not.
    """

    def __init__(self, batch: Batch, schema: pa.Schema | None = None) -> None:
        self._batch: Batch | None = batch
        self._factory = checked(batch.createReaderFactory(), schema)

    def __getstate__(self) -> dict[str, Any]:
        # Executors need the factory alone.
        return {"_batch": None, "_factory": self._factory}

    def partitions(self) -> list[SparkInputPartition]:
        """Plan the read."""
        if self._batch is None:
            raise RuntimeError("partitions() was called on an executor's copy of the reader")
        return [SparkPartition(partition) for partition in self._batch.planInputPartitions()]

    def read(self, partition: SparkInputPartition) -> Iterator[pa.RecordBatch]:
        """Read one planned partition."""
        return read_partition(self._factory, partition)


class FilteringBatchReaderAdapter(DataSourceReader):
    """Runs a batch read with Spark's filters pushed down to its builder.

    A class of its own: Spark refuses any reader with a `pushFilters` where `spark.sql.python.filterPushdown.enabled`
    is off, as it is by default. So a reader has one only where the builder takes filters, and Spark's refusal then
    names the missing setting.

    Runs on: driver for `pushFilters` and `partitions`; pickled with the reader factory for `read` on executors.

    Args:
        builder: takes the filters, once.
        build: builds the reader; called after the filters were taken.
    """

    def __init__(self, builder: SupportsPushDownFilters, build: Callable[[], BatchReaderAdapter]) -> None:
        self._builder: SupportsPushDownFilters | None = builder
        self._build: Callable[[], BatchReaderAdapter] | None = build
        self._built: BatchReaderAdapter | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_builder": None, "_build": None, "_built": self._reader}

    @property
    def _reader(self) -> BatchReaderAdapter:
        if self._built is None:
            if self._build is None:
                raise RuntimeError("a reader without a read was copied")
            self._built = self._build()
        return self._built

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Pass the filters to the builder, and return the filters that Spark must evaluate as well."""
        # Most reads have no filters to push.
        from pyspark_kafka._connector.spark.filters import connector_filter  # noqa: PLC0415
        from pyspark_kafka.connector.engine.checks import check_filters  # noqa: PLC0415

        if self._builder is None:
            raise RuntimeError("pushFilters() was called on an executor's copy of the reader")
        translated = [(pushed, connector_filter(pushed)) for pushed in filters]
        wanted = [found for _, found in translated if found is not None]
        left = check_filters(self._builder.pushFilters(wanted), wanted, self._builder)
        return [pushed for pushed, found in translated if found is None or found in left]

    def partitions(self) -> list[SparkInputPartition]:
        """Plan the read."""
        return self._reader.partitions()

    def read(self, partition: SparkInputPartition) -> Iterator[pa.RecordBatch]:
        """Read one planned partition."""
        return self._reader.read(partition)


def checked(factory: PartitionReaderFactory, schema: pa.Schema | None) -> PartitionReaderFactory:
    """Return a factory whose readers are compared with a schema; the factory itself without one."""
    if schema is None:
        return factory
    # Reads of Kafka need none.
    from pyspark_kafka.connector.engine.checked_reader import CheckedReaderFactory  # noqa: PLC0415

    return CheckedReaderFactory(factory, schema)
