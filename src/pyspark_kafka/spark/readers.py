"""Adapters of sources: a `Batch` as PySpark's batch reader, a `MicroBatchStream` as its stream reader."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.datasource import InputPartition as SparkInputPartition
from pyspark.sql.streaming.datasource import ReadLimit as SparkReadLimit
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as SparkSupportsTriggerAvailableNow

from pyspark_kafka.connector.engine.available_now import admission_control_of
from pyspark_kafka.connector.engine.checks import check_not_backwards
from pyspark_kafka.counters import COUNTERS
from pyspark_kafka.spark.compat import from_spark_limit, to_spark_limit
from pyspark_kafka.spark.processes.gc_freeze import freeze_gc
from pyspark_kafka.spark.processes.process_log import log_as_spark
from pyspark_kafka.spark.processes.stop_signal import stop_at_sigterm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from pyspark_kafka.connector import (
        Batch,
        MicroBatchStream,
        Offset,
        PartitionReaderFactory,
        SupportsPushDownFilters,
        SupportsTriggerAvailableNow,
    )

_T = TypeVar("_T")


class SparkPartition(SparkInputPartition):
    """Carries one of our input partitions through Spark; `value` is None where Spark planned an empty read."""


def read_partition(factory: PartitionReaderFactory, partition: SparkInputPartition) -> Iterator[pa.RecordBatch]:
    """Drive a partition reader to its end.

    Runs on: executor, in a Python worker that is reused; a generator, so that the reader is closed when Spark stops
    asking (a limit, a killed task) as well as at the end.
    """
    if partition.value is None:
        # What Spark plans itself when a batch read has no partitions.
        return
    log_as_spark()
    freeze_gc()
    reader = factory.createReader(partition.value)
    try:
        while reader.next():
            yield reader.get()
    finally:
        reader.close()
        COUNTERS.publish()


class BatchReaderAdapter(DataSourceReader):
    """Runs a `Batch` as a PySpark batch reader.

    Runs on: driver for `partitions`; pickled with the reader factory for `read` on executors.

    Args:
        batch: the read.
        schema: of its rows, with which they are compared; None: they are not.
    """

    def __init__(self, batch: Batch, schema: pa.Schema | None = None) -> None:
        self._batch: Batch | None = batch
        self._factory = _checked(batch.createReaderFactory(), schema)

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
    names the setting that is missing.

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
        from pyspark_kafka.connector.engine.checks import check_filters  # noqa: PLC0415
        from pyspark_kafka.spark.filters import connector_filter  # noqa: PLC0415

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


class StreamReaderAdapter(DataSourceStreamReader, SparkSupportsTriggerAvailableNow):
    """Runs a `MicroBatchStream` as a PySpark stream reader, with admission control, its own or an engine's.

    PySpark hands offsets over as dictionaries, which are the parsed JSON of ours.

    Runs on: driver, in one long-lived process, for the planning; pickled with the reader factory alone for `read` on
    executors.

    Args:
        stream: what is read.
        schema: of its rows, with which they are compared; None: they are not.
        at_first_call: called before the first planning call, so in the planning process only, and once.
    """

    def __init__(
        self,
        stream: MicroBatchStream,
        schema: pa.Schema | None = None,
        at_first_call: Callable[[], None] | None = None,
    ) -> None:
        self._planned: MicroBatchStream | None = stream
        self._admission: SupportsTriggerAvailableNow | None = admission_control_of(stream)
        self._factory = _checked(stream.createReaderFactory(), schema)
        self._at_first_call = at_first_call

    def __getstate__(self) -> dict[str, Any]:
        # Executors need the factory alone.
        return {"_planned": None, "_admission": None, "_factory": self._factory, "_at_first_call": None}

    @property
    def _stream(self) -> MicroBatchStream:
        return self._of_driver(self._planned)

    @property
    def _control(self) -> SupportsTriggerAvailableNow:
        return self._of_driver(self._admission)

    def _of_driver(self, part: _T | None) -> _T:
        if part is None:
            raise RuntimeError("a planning method was called on an executor's copy of the reader")
        announce, self._at_first_call = self._at_first_call, None
        if announce is not None:
            stop_at_sigterm(self.stop)
            announce()
        return part

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset a new query starts from."""
        return _to_dict(self._stream.initialOffset())

    def latestOffset(self, start: dict[str, Any], limit: SparkReadLimit) -> dict[str, Any]:
        """Return the end of the next batch."""
        control, first = self._control, self._offset(start)
        limits = from_spark_limit(limit, control.getDefaultReadLimit())
        try:
            end = control.latestOffset(first, limits)
            check_not_backwards(end, first, self._stream, "latestOffset", "Nothing was read.")
            return _to_dict(end)
        finally:
            COUNTERS.publish()

    def getDefaultReadLimit(self) -> SparkReadLimit:
        """Return the limit that the options ask for."""
        return to_spark_limit(self._control.getDefaultReadLimit())

    def prepareForTriggerAvailableNow(self) -> None:
        """End this run at what is available now."""
        self._control.prepareForTriggerAvailableNow()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the newest offset known, for progress reports."""
        offset = self._control.reportLatestOffset()
        return None if offset is None else _to_dict(offset)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[SparkInputPartition]:
        """Plan one batch."""
        planned = self._stream.planInputPartitions(self._offset(start), self._offset(end))
        return [SparkPartition(partition) for partition in planned]

    def read(self, partition: SparkInputPartition) -> Iterator[pa.RecordBatch]:
        """Read one planned partition."""
        return read_partition(self._factory, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Pass on that everything below `end` is processed."""
        self._stream.commit(self._offset(end))

    def stop(self) -> None:
        """Stop the stream, in the planning process only: at the signal by which Spark ends it, or at an error."""
        if self._planned is not None:
            self._planned.stop()

    def _offset(self, nested: dict[str, Any]) -> Offset:
        return self._stream.deserializeOffset(json.dumps(nested))


class RefusedStreamReader(StreamReaderAdapter):
    """Stands for a stream reader that could not be built: the first thing that Spark asks of it raises the reason.

    PySpark (4.2, 4.3) answers an error of `streamReader()` with an `UnboundLocalError` of its own, which would be the
    last line that the user reads.

    Runs on: driver; never travels to executors.
    """

    def __init__(self, reason: Exception) -> None:
        self._reason = reason
        self._planned = self._admission = None

    def read(self, partition: SparkInputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - Spark's contract
        """Raise the reason."""
        raise self._reason

    def _of_driver(self, part: _T | None) -> _T:  # noqa: ARG002 - there is none
        raise self._reason


def _checked(factory: PartitionReaderFactory, schema: pa.Schema | None) -> PartitionReaderFactory:
    if schema is None:
        return factory
    # Reads of Kafka need none.
    from pyspark_kafka.connector.engine.checked_reader import CheckedReaderFactory  # noqa: PLC0415

    return CheckedReaderFactory(factory, schema)


def _to_dict(offset: Offset) -> dict[str, Any]:
    nested: dict[str, Any] = json.loads(offset.json())
    return nested
