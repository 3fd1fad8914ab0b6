"""The view `lag`: how far a query or a consumer group is behind, a row for each partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.connector import (
    Batch,
    InputPartition,
    PartitionReader,
    PartitionReaderFactory,
    Scan,
    ScanBuilder,
)
from pyspark_kafka.errors import CapabilityError
from pyspark_kafka.operations.lag.columns import LAG_SCHEMA
from pyspark_kafka.options import parse_lag_view_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.connector import ContinuousStream, MicroBatchStream
    from pyspark_kafka.operations.lag.positions import LagPositions
    from pyspark_kafka.options import LagViewOptions


class LagScanBuilder(ScanBuilder):
    """Builds the read of the view; its columns are fixed.

    Runs on: driver; used once.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def build(self) -> LagScan:
        """Return the read.

        Raises:
            OptionError: options are missing, unknown, malformed or in conflict.
        """
        return LagScan(parse_lag_view_options(self._options))


class LagScan(Scan):
    """The view as a plan of a batch query.

    Runs on: driver; no method opens a connection to a broker.
    """

    def __init__(self, options: LagViewOptions) -> None:
        self._options = options

    def readSchema(self) -> pa.Schema:
        """Return the columns of lag."""
        return LAG_SCHEMA

    def description(self) -> str:
        """Return whose positions are compared."""
        options = self._options
        return f"Lag[{options.lag_group if options.lag_checkpoint is None else options.lag_checkpoint}]"

    def notes(self) -> Sequence[str]:
        """Return the options without effect."""
        return self._options.notes

    def toBatch(self) -> Batch:
        """Return this read for a batch query."""
        return LagViewBatch(self._options)

    def toMicroBatchStream(self, checkpointLocation: str | None) -> MicroBatchStream:  # noqa: ARG002 - of the contract
        """Refuse: lag has no offsets to continue from."""
        raise _no_stream()

    def toContinuousStream(self, checkpointLocation: str | None) -> ContinuousStream:  # noqa: ARG002 - of the contract
        """Refuse: lag has no offsets to continue from."""
        raise _no_stream()


def _no_stream() -> CapabilityError:
    return CapabilityError(
        "View 'lag' can be read in a batch query only: it has no offsets that a stream could continue from.",
        condition="VIEW_NOT_STREAMING",
        hint="Read it with spark.read, as often as you like.",
        parameters={"view": "lag"},
    )


class LagViewBatch(Batch):
    """One look, in one task: executors reach the brokers, and the driver is not held up.

    Runs on: driver; reads the checkpoint, which may be a path that only the driver has.
    """

    def __init__(self, options: LagViewOptions) -> None:
        self._options = options

    def planInputPartitions(self) -> Sequence[InputPartition]:
        """Return one task, with the positions of the checkpoint.

        Raises:
            CheckpointError: the checkpoint cannot be read, or has no position of a Kafka source.
        """
        from pyspark_kafka.operations.lag.positions import checkpoint_positions  # noqa: PLC0415 - tasks need it not

        location = self._options.lag_checkpoint
        positions = str(self._options.lag_group) if location is None else checkpoint_positions(location)
        return [LagInputPartition(positions)]

    def createReaderFactory(self) -> PartitionReaderFactory:
        """Return the factory that the task reads with."""
        return LagReaderFactory(self._options)


@dataclass(frozen=True, slots=True)
class LagInputPartition(InputPartition):
    """What the task compares with the logs.

    Attributes:
        positions: of a checkpoint, or the name of the consumer group.
    """

    positions: LagPositions | str


@dataclass(frozen=True, slots=True)
class LagReaderFactory(PartitionReaderFactory):
    """Builds the reader of the view. Plain data.

    Attributes:
        options: of the view.
    """

    options: LagViewOptions

    def createReader(self, partition: InputPartition) -> PartitionReader:
        """Build the reader of the one input partition; it connects at the first `next()`."""
        if not isinstance(partition, LagInputPartition):
            raise TypeError(f"expected a LagInputPartition, got {type(partition).__name__}")
        return LagReader(self.options, partition.positions)


class LagReader(PartitionReader):
    """Looks once, and returns all rows as one Arrow batch.

    Runs on: executor; `next` blocks, for about `kafka.default.api.timeout.ms` at most.
    """

    def __init__(self, options: LagViewOptions, positions: LagPositions | str) -> None:
        self._options = options
        self._positions = positions
        self._batch: pa.RecordBatch | None = None

    def next(self) -> bool:
        """Look at the logs, once.

        Raises:
            OptionError, BrokerError, AccessError, TransportError, DeadlineError: as `pyspark_kafka.lag`.
        """
        from pyspark_kafka.operations.lag.api import look  # noqa: PLC0415 - the driver needs no client

        if self._batch is not None:
            return False
        options = self._options
        report = look(
            options.connection,
            self._positions,
            options.topics or None,
            timeout_s=options.connection.api_timeout_ms / 1000,
            isolation_level=options.isolation_level,
        )
        # There is a row at least: without a position it raises.
        (self._batch,) = report.to_arrow().to_batches()
        return True

    def get(self) -> pa.RecordBatch:
        """Return the rows."""
        if self._batch is None:
            raise RuntimeError("get() was called before next()")
        return self._batch

    def close(self) -> None:
        """Do nothing: the client is back in its pool."""
