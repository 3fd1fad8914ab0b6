"""Adapters of micro-batch reads: a `MicroBatchStream` as PySpark's stream reader.

Spark asks for the end of a batch in two ways, so there are two adapters; `stream_reader` chooses by `compat`.

- From PySpark 4.2 on, with the start of the batch and a read limit: `StreamReaderAdapter`.
- Before, with neither: `StartlessStreamReader`, which keeps the end of the batch before.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader

from pyspark_kafka._connector.spark.compat import ADMISSION_BASES, from_spark_limit, has_read_limits, to_spark_limit
from pyspark_kafka._connector.spark.processes.stop_signal import stop_at_sigterm
from pyspark_kafka._connector.spark.readers import SparkPartition, checked, read_partition
from pyspark_kafka.connector.engine.available_now import admission_control_of
from pyspark_kafka.connector.engine.checks import check_not_backwards
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition as SparkInputPartition

    from pyspark_kafka.connector import MicroBatchStream, Offset, ReadLimit, SupportsTriggerAvailableNow

_T = TypeVar("_T")


def stream_reader(
    stream: MicroBatchStream,
    schema: pa.Schema | None = None,
    at_first_call: Callable[[], None] | None = None,
) -> StreamReaderAdapter:
    """Return the adapter of a stream that fits this version of PySpark.

    Args:
        stream: what is read.
        schema: of its rows, with which they are compared; None: they are not.
        at_first_call: called before the first planning call, so in the planning process only, and once.
    """
    adapter = StreamReaderAdapter if has_read_limits() else StartlessStreamReader
    return adapter(stream, schema, at_first_call)


class StreamReaderAdapter(DataSourceStreamReader, *ADMISSION_BASES):  # type: ignore[misc]
    """Runs a `MicroBatchStream` as a PySpark stream reader, with admission control, its own or an engine's.

    PySpark hands offsets over as dictionaries, which are the parsed JSON of ours.

    Runs on: driver, in one long-lived process, for the planning; pickled with the reader factory alone for `read` on
    executors.
    """

    def __init__(
        self,
        stream: MicroBatchStream,
        schema: pa.Schema | None = None,
        at_first_call: Callable[[], None] | None = None,
    ) -> None:
        self._planned: MicroBatchStream | None = stream
        self._admission: SupportsTriggerAvailableNow | None = admission_control_of(stream)
        self._factory = checked(stream.createReaderFactory(), schema)
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

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Return the end of the next batch."""
        control, first = self._control, self._offset(start)
        return _to_dict(self._end_after(first, from_spark_limit(limit, control.getDefaultReadLimit())))

    def getDefaultReadLimit(self) -> Any:
        """Return the limit of the options."""
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

    def _end_after(self, start: Offset, limit: ReadLimit) -> Offset:
        end = self._control.latestOffset(start, limit)
        check_not_backwards(end, start, self._stream, "latestOffset", "Nothing was read.")
        return end

    def _offset(self, nested: dict[str, Any]) -> Offset:
        return self._stream.deserializeOffset(json.dumps(nested))


class StartlessStreamReader(StreamReaderAdapter):
    """A stream reader that Spark calls for an end alone: PySpark 4.0 and 4.1.

    The next batch starts at the newest end. Spark passes the newest end of a checkpoint first, as an empty batch, so a
    query without one is new. Spark runs an available-now query as one batch, and has no report of the latest offset.

    Source: Spark 4.0 `PythonMicroBatchStream.latestOffset`, `AcceptsLatestSeenOffset`.
    """

    _newest: Offset | None = None
    # The start of a new query, until Spark plans the first batch from it.
    _initial: Offset | None = None

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """Return the end of the next batch, within the limit that the options set."""
        stream, control = self._stream, self._control
        if self._newest is None:
            self._newest = self._initial = stream.initialOffset()
        self._newest = self._end_after(self._newest, control.getDefaultReadLimit())
        return _to_dict(self._newest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[SparkInputPartition]:
        """Plan one batch.

        Raises:
            CheckpointError: Spark has started the query again, and did not pass where it was.
        """
        initial, self._initial = self._initial, None
        if initial is not None and self._offset(start) != initial:
            raise CheckpointError(
                f"This query begins at {json.dumps(start)}, and Spark did not pass this position before it asked for "
                "an end, as all known versions do. Nothing was read.",
                condition="BATCH_START_UNKNOWN",
                hint="Report the version of this platform's Spark; PySpark 4.2 and newer pass each start.",
            )
        planned = super().partitions(start, end)
        self._newest = self._offset(end)
        return planned


class RefusedStreamReader(StreamReaderAdapter):
    """The substitute for a stream reader that could not be built: Spark's first call raises the reason.

    PySpark replaces an error of `streamReader()` by its own `UnboundLocalError`, which would be the last line
    that the user reads.

    Runs on: driver; never travels to executors.
    """

    def __init__(self, reason: Exception) -> None:
        self._reason = reason
        self._planned = self._admission = None

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: ARG002 - as above
        """Raise the reason. PySpark 4.2 counts the arguments, older versions pass none."""
        raise self._reason

    def read(self, partition: SparkInputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - Spark's contract
        """Raise the reason."""
        raise self._reason

    def _of_driver(self, part: _T | None) -> _T:  # noqa: ARG002 - there is none
        raise self._reason


def _to_dict(offset: Offset) -> dict[str, Any]:
    nested: dict[str, Any] = json.loads(offset.json())
    return nested
