"""A source in one class, for simple needs: five short methods, rows as dictionaries."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyspark_kafka.connector.limits import ReadAllAvailable, ReadLimit
from pyspark_kafka.connector.offsets import Offset
from pyspark_kafka.connector.read import (
    ROWS_DROPPED,
    Batch,
    InputPartition,
    MicroBatchStream,
    PartitionReader,
    PartitionReaderFactory,
    SupportsAdmissionControl,
)
from pyspark_kafka.connector.rows import batch_of_rows
from pyspark_kafka.connector.table import Scan, ScanBuilder, SupportsRead, TableCapability
from pyspark_kafka.errors import CallError, CheckpointError, ConnectorError, ContractError, described

_ROWS_PER_BATCH = 1_000


class SimpleSource(SupportsRead):
    """A source whose position is one value: a number, a time, a page token, a dictionary of them.

    Implement `name`, `schema`, `initial`, `latest` and `read`. It can be read in batch and in streaming queries: a
    batch read has the rows from `initial` to `latest`. Positions are values with a JSON form, and a read of
    `[start, end)` returns the same rows whenever it runs, or a restart loses or doubles rows.

    Options arrive as text, by name without regard to case. Must pickle; methods say where they run.
    """

    @abstractmethod
    def initial(self, options: Mapping[str, str]) -> Any:
        """Return the position where a new query starts. Driver; once for a query; may block."""

    @abstractmethod
    def latest(self, options: Mapping[str, str], start: Any) -> Any:
        """Return the position behind the newest row, or `start` if there is nothing new. Driver; at each trigger."""

    @abstractmethod
    def read(self, options: Mapping[str, str], start: Any, end: Any) -> Iterable[Any]:
        """Return the rows of `[start, end)`: dictionaries, tuples, or whole Arrow batches. Executor; may block."""

    def split(self, options: Mapping[str, str], start: Any, end: Any) -> Sequence[tuple[Any, Any]]:  # noqa: ARG002 - for others
        """Return what each task reads: parts of `[start, end)`, which together are the whole. Driver."""
        return [(start, end)]

    def capabilities(self) -> frozenset[TableCapability]:
        """Return that it can be read in batch and in micro-batches."""
        return frozenset({TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ})

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        """Return the builder of one read."""
        return _Builder(self, options)


@dataclass(frozen=True, eq=False)
class SimpleOffset(Offset):
    """A position of a `SimpleSource`, as `{"at": position}` in the checkpoint."""

    at: Any

    def json(self) -> str:
        """Return the text that goes into the checkpoint."""
        return json.dumps({"at": self.at}, sort_keys=True, separators=(",", ":"))

    def __lt__(self, other: object) -> bool:
        # The order of tokens, and of dictionaries, is known to their source alone.
        if not isinstance(other, SimpleOffset) or not _is_number(self.at) or not _is_number(other.at):
            return NotImplemented
        return bool(self.at < other.at)


@dataclass(frozen=True)
class SimplePartition(InputPartition):
    """The range of one task: `[start, end)`."""

    start: Any
    end: Any


class _Builder(ScanBuilder):
    def __init__(self, source: SimpleSource, options: Mapping[str, str]) -> None:
        self._source, self._options = source, options

    def build(self) -> Scan:
        return _SimpleScan(self._source, self._options)


class _SimpleScan(Scan):
    def __init__(self, source: SimpleSource, options: Mapping[str, str]) -> None:
        self._source, self._options = source, options

    def readSchema(self) -> pa.Schema:
        return self._source.schema(self._options)

    def description(self) -> str:
        return self._source.name()

    def toBatch(self) -> Batch:
        return _SimpleBatch(self._source, self._options)

    def toMicroBatchStream(self, checkpointLocation: str | None) -> MicroBatchStream:  # noqa: ARG002 - it keeps nothing
        return _SimpleStream(self._source, self._options)


class _Planning:
    """The common part of batch and stream."""

    def __init__(self, source: SimpleSource, options: Mapping[str, str]) -> None:
        self._source, self._options = source, options

    def createReaderFactory(self) -> PartitionReaderFactory:
        return _Readers(self._source, self._options)

    def _position(self, method: str, *arguments: Any) -> SimpleOffset:
        try:
            value = getattr(self._source, method)(self._options, *arguments)
        except ConnectorError:
            raise
        except Exception as error:
            raise CallError.raised(self._source, method, error, "Nothing was read.") from error
        if value is None:
            raise ContractError.violated(self._source, method, "must return a position, and returned None.")
        offset = SimpleOffset(value)
        try:
            same = json.loads(offset.json())["at"] == value
        except (TypeError, ValueError):
            same = False
        if not same:
            raise ContractError.violated(
                self._source,
                method,
                f"returned {described(value)} that is another value after a way through JSON.",
                hint="Use numbers, text, lists and dictionaries with text as keys.",
            )
        return offset

    def _split(self, start: Any, end: Any) -> list[InputPartition]:
        parts = self._source.split(self._options, start, end)
        try:
            return [SimplePartition(begin, stop) for begin, stop in parts]
        except (TypeError, ValueError):
            raise ContractError.violated(self._source, "split", "must return pairs (start, end).") from None


class _SimpleBatch(_Planning, Batch):
    def planInputPartitions(self) -> Sequence[InputPartition]:
        start = self._position("initial")
        return self._split(start.at, self._position("latest", start.at).at)


class _SimpleStream(_Planning, MicroBatchStream, SupportsAdmissionControl):
    def initialOffset(self) -> Offset:
        return self._position("initial")

    def deserializeOffset(self, json: str) -> Offset:
        return _parse(json, self._source)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: ARG002 - positions are not counted
        return self._position("latest", _parse(start.json(), self._source).at)

    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        begin, stop = _parse(start.json(), self._source), _parse(end.json(), self._source)
        return [] if begin == stop else self._split(begin.at, stop.at)

    def commit(self, end: Offset) -> None:
        """Do nothing: positions are in the engine's checkpoint."""

    def stop(self) -> None:
        """Do nothing."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _parse(text: str, source: SimpleSource) -> SimpleOffset:
    try:
        return SimpleOffset(json.loads(text)["at"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"{text[:200]!r} is not an offset of source {source.name()!r}. Nothing was read.",
            condition="OFFSET_UNREADABLE",
            hint="Use the checkpoint with the source that wrote it, or a new checkpoint.",
        ) from error


@dataclass(frozen=True)
class _Readers(PartitionReaderFactory):
    source: SimpleSource
    options: Mapping[str, str]

    def createReader(self, partition: InputPartition) -> PartitionReader:
        assert isinstance(partition, SimplePartition)  # noqa: S101 - planned above
        return _SimpleReader(self.source, self.options, partition)


class _SimpleReader(PartitionReader):
    def __init__(self, source: SimpleSource, options: Mapping[str, str], partition: SimplePartition) -> None:
        self._source = source
        self._schema = source.schema(options)
        try:
            found = source.read(options, partition.start, partition.end)
        except ConnectorError:
            raise
        except Exception as error:
            raise CallError.raised(source, "read", error, ROWS_DROPPED) from error
        try:
            self._rows: Iterator[Any] = iter(found)
        except TypeError:
            raise ContractError.violated(
                source,
                "read",
                f"must return rows (a list or a generator), and returned {described(found)}.",
            ) from None
        self._batch: pa.RecordBatch | None = None
        self._ahead: pa.RecordBatch | None = None

    def next(self) -> bool:
        if self._ahead is not None:
            self._batch, self._ahead = self._ahead, None
            return True
        taken: list[Any] = []
        try:
            for row in self._rows:
                if isinstance(row, pa.RecordBatch):
                    self._ahead = row
                    break
                taken.append(row)
                if len(taken) == _ROWS_PER_BATCH:
                    break
        except ConnectorError:
            raise
        except Exception as error:
            raise CallError.raised(self._source, "read", error, ROWS_DROPPED) from error
        if taken:
            self._batch = batch_of_rows(taken, self._schema, self._source, "read")
            return True
        self._batch, self._ahead = self._ahead, None
        return self._batch is not None

    def get(self) -> pa.RecordBatch:
        if self._batch is None:
            raise RuntimeError("get() was called without a next() that returned True")
        return self._batch

    def close(self) -> None:
        close = getattr(self._rows, "close", None)
        if close is not None:
            close()
