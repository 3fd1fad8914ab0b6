"""A source and a sink for continuous queries: files of lines that grow, one a lane; one file for each epoch."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_kafka.connector import (
    ContinuousPartitionReader,
    ContinuousPartitionReaderFactory,
    ContinuousStream,
    DataWriter,
    InputPartition,
    LogicalWriteInfo,
    Offset,
    PartitionOffset,
    PhysicalWriteInfo,
    Scan,
    ScanBuilder,
    StreamingDataWriterFactory,
    StreamingWrite,
    SupportsRead,
    SupportsWrite,
    TableCapability,
    Write,
    WriteBuilder,
    WriterCommitMessage,
)

SCHEMA = pa.schema([pa.field("file", pa.string(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
_POLL_SECONDS = 0.02


@dataclass(frozen=True, eq=False)
class LinesOffset(Offset):
    """The number of lines that were read, by file."""

    lines: Mapping[str, int]

    def json(self) -> str:
        return json.dumps(self.lines, sort_keys=True)


@dataclass(frozen=True)
class FilePosition(PartitionOffset):
    """The number of lines that were read of one file."""

    file: str
    lines: int

    def json(self) -> str:
        return json.dumps([self.file, self.lines])


@dataclass(frozen=True)
class FilePartition(InputPartition):
    """One file, from a line on."""

    path: str
    start: int


class FileReader(ContinuousPartitionReader):
    """Reads the lines of a file as they are appended."""

    def __init__(self, partition: FilePartition) -> None:
        self._path = Path(partition.path)
        self._position = partition.start
        self._batch: pa.RecordBatch | None = None

    def next(self) -> bool:
        whole = self._path.read_text().rpartition("\n")[0]
        lines = whole.split("\n")[self._position :] if whole else []
        if not lines:
            time.sleep(_POLL_SECONDS)
            return False
        self._position += len(lines)
        name = self._path.name
        self._batch = pa.RecordBatch.from_pylist([{"file": name, "n": int(line)} for line in lines], SCHEMA)
        return True

    def get(self) -> pa.RecordBatch:
        assert self._batch is not None
        return self._batch

    def getOffset(self) -> PartitionOffset:
        return FilePosition(self._path.name, self._position)

    def close(self) -> None:
        """Nothing is open."""


class FileReaders(ContinuousPartitionReaderFactory):
    """Makes readers of files."""

    def createReader(self, partition: InputPartition) -> ContinuousPartitionReader:
        assert isinstance(partition, FilePartition)
        return FileReader(partition)


class FilesStream(ContinuousStream):
    """Every file of a directory, one a lane; a file that is new is read from its first line."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._known: list[str] = []

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._directory.iterdir())

    def initialOffset(self) -> Offset:
        return LinesOffset({})

    def deserializeOffset(self, text: str) -> Offset:
        return LinesOffset(json.loads(text))

    def deserializePartitionOffset(self, text: str) -> PartitionOffset:
        return FilePosition(*json.loads(text))

    def planInputPartitions(self, start: Offset) -> Sequence[InputPartition]:
        assert isinstance(start, LinesOffset)
        self._known = self._names()
        return [FilePartition(str(self._directory / name), start.lines.get(name, 0)) for name in self._known]

    def keyGroups(self, partition: InputPartition) -> Sequence[str]:
        assert isinstance(partition, FilePartition)
        return [Path(partition.path).name]

    def createContinuousReaderFactory(self) -> ContinuousPartitionReaderFactory:
        return FileReaders()

    def mergeOffsets(self, offsets: Sequence[PartitionOffset]) -> Offset:
        return LinesOffset({each.file: each.lines for each in offsets if isinstance(each, FilePosition)})

    def needsReconfiguration(self) -> bool:
        return self._names() != self._known

    def commit(self, end: Offset) -> None:
        """Lines stay."""

    def stop(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class FilesTable(SupportsRead):
    """The directory of option `path` as a table."""

    def name(self) -> str:
        return "files"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        return SCHEMA

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset({TableCapability.CONTINUOUS_READ})

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        return _Scan(options)


class _Scan(ScanBuilder, Scan):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._path = options["path"]

    def build(self) -> Scan:
        return self

    def readSchema(self) -> pa.Schema:
        return SCHEMA

    def toContinuousStream(self, checkpointLocation: str | None) -> ContinuousStream:
        return FilesStream(self._path)


@dataclass(frozen=True)
class StagedRows(WriterCommitMessage):
    """The name of the file that a lane has staged."""

    name: str


class StagingWriter(DataWriter):
    """Stages the rows of one lane and epoch in a file of its own."""

    def __init__(self, directory: Path, name: str) -> None:
        self._path = directory / "staged" / name
        self._rows: list[Any] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.to_pylist()

    def commit(self) -> WriterCommitMessage:
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text(json.dumps(self._rows))
        return StagedRows(self._path.name)

    def abort(self) -> None:
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class StagingWriters(StreamingDataWriterFactory):
    """Makes writers that stage."""

    directory: str

    def createWriter(self, partition_id: int, task_id: int, epoch_id: int) -> DataWriter:
        return StagingWriter(Path(self.directory), f"{epoch_id}-{partition_id}-{task_id}")


class StagedWrite(StreamingWrite):
    """Exactly once: an epoch is one file, renamed into its place; a commit that is repeated finds it there."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)

    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StreamingDataWriterFactory:
        return StagingWriters(str(self._directory))

    def deserializeMessage(self, text: str) -> WriterCommitMessage:
        return StagedRows(**json.loads(text))

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        done = self._directory / f"epoch-{epoch_id:06}"
        if done.exists():
            return
        rows = [
            row
            for message in messages
            if isinstance(message, StagedRows)
            for row in json.loads((self._directory / "staged" / message.name).read_text())
        ]
        beside = self._directory / f".epoch-{epoch_id}"
        beside.write_text(json.dumps(rows))
        beside.rename(done)

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Staged files are of no use to anyone."""


@dataclass(frozen=True)
class StagedTable(SupportsWrite):
    """The directory of option `path` as a table that is written exactly once."""

    def name(self) -> str:
        return "staged"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        return SCHEMA

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset({TableCapability.STREAMING_WRITE})

    def newWriteBuilder(self, info: LogicalWriteInfo) -> WriteBuilder:
        return _Writes(info.options["path"])


class _Writes(WriteBuilder, Write):
    def __init__(self, path: str) -> None:
        self._path = path

    def build(self) -> Write:
        return self

    def toStreaming(self) -> StreamingWrite:
        return StagedWrite(self._path)


def committed_rows(directory: Path) -> list[Any]:
    """Return the rows of every epoch, in order."""
    return [row for path in sorted(directory.glob("epoch-*")) for row in json.loads(path.read_text())]
