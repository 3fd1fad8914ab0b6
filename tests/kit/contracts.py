"""A source and a sink that keep their contracts, and others with one planted fault each.

pytest runs this file in a process of its own, which `tests/integration/testing/test_conformance_faults.py` starts; it
collects nothing here.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.connector import (
    Batch,
    DataWriter,
    InputPartition,
    LogicalWriteInfo,
    MicroBatchStream,
    Offset,
    PartitionReader,
    PartitionReaderFactory,
    PhysicalWriteInfo,
    ReadLimit,
    ReadMaxRows,
    RowPartitionReader,
    Scan,
    ScanBuilder,
    StreamingDataWriterFactory,
    StreamingWrite,
    SupportsPushDownFilters,
    SupportsRead,
    SupportsTriggerAvailableNow,
    SupportsWrite,
    TableCapability,
    Write,
    WriteBuilder,
    WriterCommitMessage,
)
from pyspark_kafka.connector.filters import EqualTo, Filter, GreaterThan, In, Not
from pyspark_kafka.testing.conformance import SinkContract, SourceContract
from pyspark_kafka.toolkit import CommitState, EpochRecord, FileEpochLog, IdempotentStreamingWrite

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False)])


# A file of lines, one a row, as a source


@dataclass(frozen=True, eq=False)
class Line(Offset):
    """The number of the next line."""

    number: int

    def json(self) -> str:
        return json.dumps({"line": self.number})


@dataclass(frozen=True)
class Lines(InputPartition):
    """Lines `[start, end)`."""

    start: int
    end: int


class LineReader(RowPartitionReader):
    """Reads lines of a file."""

    def __init__(self, path: str, lines: Lines, *, leaks: bool = False) -> None:
        super().__init__(SCHEMA, rows_per_batch=4)
        self._file = open(path)  # noqa: SIM115, PTH123 - closed in close()
        self._lines = lines
        self._leaks = leaks

    def rows(self) -> Iterator[Any]:
        for number, line in enumerate(self._file):
            if self._lines.start <= number < self._lines.end:
                yield {"n": int(line)}

    def close(self) -> None:
        super().close()
        if self._leaks:
            KEPT.append(self._file)
        else:
            self._file.close()


KEPT: list[Any] = []


@dataclass(frozen=True)
class LineReaders(PartitionReaderFactory):
    """Makes readers of lines."""

    path: str
    fault: str

    def createReader(self, partition: InputPartition) -> PartitionReader:
        assert isinstance(partition, Lines)
        return LineReader(self.path, partition, leaks=self.fault == "leaks")


class LineStream(MicroBatchStream, SupportsTriggerAvailableNow):
    """A file of lines as a stream."""

    def __init__(self, path: str, fault: str) -> None:
        self._path, self._fault = path, fault
        self._last: int | None = None

    def _end(self) -> int:
        with open(self._path) as file:  # noqa: PTH123
            return sum(1 for _ in file)

    def initialOffset(self) -> Offset:
        return Line(self._end() if self._fault == "starts where it is asked" else 0)

    def deserializeOffset(self, text: str) -> Offset:
        return Line(json.loads(text)["line"] + (self._fault == "reads another offset back"))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(10)

    def latestOffset(self, start: Any, limit: ReadLimit) -> Offset:
        if self._fault == "moves on without rows":
            return Line(start.number + 1)
        end = self._last if self._last is not None else self._end()
        if isinstance(limit, ReadMaxRows) and self._fault != "ignores limits":
            rows = limit.max_rows
            if self._fault == "stalls" and rows < 3:
                rows = 0
            from_the_beginning = self._fault == "counts its limits from the beginning"
            end = min(end, rows if from_the_beginning else start.number + rows)
        return Line(end - (self._fault == "goes backwards" and end == start.number))

    def prepareForTriggerAvailableNow(self) -> None:
        if self._fault != "has no end":
            self._last = self._end()

    def planInputPartitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        stop = self._end() if self._fault == "reads what came meanwhile" else end.number
        middle = (start.number + stop) // 2
        if self._fault == "leaves a line out":
            return [Lines(start.number, middle), Lines(middle + 1, stop)]
        return [Lines(start.number, middle), Lines(middle, stop)]

    def createReaderFactory(self) -> PartitionReaderFactory:
        if self._fault == "does not pickle":
            factory = LineReaders(self._path, self._fault)
            object.__setattr__(factory, "fault", threading.Lock())
            return factory
        return LineReaders(self._path, self._fault)

    def commit(self, end: Offset) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class LineBatch(Batch):
    """A file of lines as a batch."""

    def __init__(self, stream: LineStream, first: int) -> None:
        self._stream, self._first = stream, first

    def planInputPartitions(self) -> Sequence[InputPartition]:
        return self._stream.planInputPartitions(Line(self._first), Line(self._stream._end()))

    def createReaderFactory(self) -> PartitionReaderFactory:
        return self._stream.createReaderFactory()


class LineScan(Scan):
    """One read of a file of lines."""

    def __init__(self, path: str, fault: str, first: int) -> None:
        self._path, self._fault, self._first = path, fault, first

    def readSchema(self) -> pa.Schema:
        return pa.schema([pa.field("n", pa.int32())]) if self._fault == "tells another schema" else SCHEMA

    def toBatch(self) -> Batch:
        return LineBatch(LineStream(self._path, self._fault), self._first)

    def toMicroBatchStream(self, checkpointLocation: str | None) -> MicroBatchStream:
        return LineStream(self._path, self._fault)


class LineScanBuilder(SupportsPushDownFilters):
    """Begins a batch at the line that a filter `n > …` asks for, and leaves other filters to the engine."""

    def __init__(self, path: str, fault: str) -> None:
        self._path, self._fault = path, fault
        self._first = 0

    def pushFilters(self, wanted: Sequence[Filter]) -> Sequence[Filter]:
        kept = [each for each in wanted if isinstance(each, GreaterThan)]
        for each in kept:
            self._first = max(self._first, each.value + (2 if self._fault == "filters too much" else 1))
        if self._fault == "keeps filters it does not know":
            return []
        return [each for each in wanted if each not in kept]

    def build(self) -> Scan:
        return LineScan(self._path, self._fault, self._first)


@dataclass(frozen=True)
class LineTable(SupportsRead):
    """A file of lines as a table."""

    path: str
    fault: str = ""

    def name(self) -> str:
        return "lines"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        return SCHEMA

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset({TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ})

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        return LineScanBuilder(self.path, self.fault)


class LineContract(SourceContract):
    """The cases over a file of lines."""

    fault = ""

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self._path = tmp_path / "lines"
        self._path.touch()

    def table(self) -> SupportsRead:
        return LineTable(str(self._path), self.fault)

    def filters(self) -> Sequence[Filter]:
        return [GreaterThan(("n",), 4), GreaterThan(("n",), 2), In(("n",), (3, 7, 9)), Not(EqualTo(("n",), 7))]

    def add_rows(self, count: int) -> None:
        have = len(self._path.read_text().splitlines())
        with self._path.open("a") as file:
            file.writelines(f"{number}\n" for number in range(have, have + count))


# A directory of files as a sink: staged by tasks, put in place by the commit


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """A file that waits for its commit."""

    epoch: int
    partition: int
    name: str


class FileWriter(DataWriter):
    """Writes the rows of a task into a staged file."""

    def __init__(self, place: str, fault: str, message: Staged) -> None:
        self._place, self._fault, self._message = place, fault, message
        self._rows: list[int] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.column("n").to_pylist()
        if self._fault == "shows rows before the commit":
            _put(self._place, f"visible/{self._message.name}-early", self._rows)

    def commit(self) -> WriterCommitMessage:
        if self._fault == "trusts a half file":
            half = os.path.join(self._place, f"staged/{self._message.name}")  # noqa: PTH118
            if not os.path.exists(half):  # noqa: PTH110
                with open(half, "w") as file:  # noqa: PTH123
                    json.dump(self._rows, file)
            return self._message
        _put(self._place, f"staged/{self._message.name}", self._rows)
        if self._fault == "notes the commit in its tasks":
            noted = EpochRecord(self._message.epoch, "", CommitState.COMMITTED)
            FileEpochLog.at(f"{self._place}/log").write(noted)
        return self._message if self._fault != "returns no message" else None  # type: ignore[return-value]

    def abort(self) -> None:
        self._rows = []

    def close(self) -> None:
        """Do nothing."""


def _put(place: str, name: str, rows: list[int]) -> None:
    path = os.path.join(place, name)  # noqa: PTH118
    with open(path + ".tmp", "w") as file:  # noqa: PTH123
        json.dump(rows, file)
    os.replace(path + ".tmp", path)  # noqa: PTH105


@dataclass(frozen=True)
class FileWriters(StreamingDataWriterFactory):
    """Makes writers of staged files."""

    place: str
    fault: str

    def createWriter(self, partition_id: int, task_id: int, epoch_id: int) -> DataWriter:
        name = f"{epoch_id}-{partition_id}" + ("" if self.fault == "trusts a half file" else f"-{task_id}")
        return FileWriter(self.place, self.fault, Staged(epoch_id, partition_id, name))


class FileWrite(IdempotentStreamingWrite):
    """Puts staged files in place, named by epoch and task, so that the same rows have the same name."""

    def __init__(self, place: str, fault: str) -> None:
        super().__init__(FileEpochLog.at(f"{place}/log"))
        self._place, self._fault = place, fault

    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StreamingDataWriterFactory:
        return FileWriters(self._place, self._fault)

    def commit_id(self, epoch_id: int, messages: Sequence[Any]) -> str:
        by_attempt = self._fault == "knows commits by attempts"
        return f"{epoch_id}: {sorted(message.name if by_attempt else message.partition for message in messages)}"

    def commit_once(self, epoch_id: int, commit_id: str, messages: Sequence[Any], *, in_doubt: bool) -> None:
        if self._fault == "takes in doubt for done" and in_doubt:
            return
        for message in messages:
            source = f"{self._place}/staged/{message.name}"
            again = f"-{message.name}" if self._fault == "adds its rows again in doubt" else ""
            os.replace(source, f"{self._place}/visible/{epoch_id}-{message.partition}{again}")  # noqa: PTH105

    def commit(self, epoch_id: int, messages: Sequence[Any]) -> None:
        if self._fault == "commits whatever it is asked":
            self.commit_once(epoch_id, "", messages, in_doubt=False)
            return
        if self._fault == "notes the commit in its tasks" and self._log.find(epoch_id) is not None:
            return
        super().commit(epoch_id, messages)

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Leave staged files: nobody sees them."""


class FileWriteOnce(Write):
    """One write into a directory."""

    def __init__(self, place: str, fault: str) -> None:
        self._place, self._fault = place, fault

    def toStreaming(self) -> StreamingWrite:
        return FileWrite(self._place, self._fault)


@dataclass(frozen=True)
class FileTable(SupportsWrite):
    """A directory of files as a table."""

    place: str
    fault: str = ""

    def name(self) -> str:
        return "files"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        return SCHEMA

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset({TableCapability.STREAMING_WRITE})

    def newWriteBuilder(self, info: LogicalWriteInfo) -> WriteBuilder:
        write = FileWriteOnce(self.place, self.fault)

        class Builder(WriteBuilder):
            def build(self) -> Write:
                return write

        return Builder()


class FileContract(SinkContract):
    """The cases over a directory of files."""

    fault = ""

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self._directory = tmp_path / "target"
        for name in ("staged", "visible"):
            (self._directory / name).mkdir(parents=True)

    def table(self) -> SupportsWrite:
        return FileTable(str(self._directory), self.fault)

    def schema(self) -> pa.Schema:
        return SCHEMA

    def row(self, number: int) -> Mapping[str, Any]:
        return {"n": number}

    def visible(self) -> Sequence[int]:
        files = sorted((self._directory / "visible").iterdir())
        return [row for path in files for row in json.loads(path.read_text())]


class TestLines(LineContract):
    """Keeps its contract."""


class TestFiles(FileContract):
    """Keeps its contract."""


SOURCE_FAULTS = {
    "starts where it is asked": "test_initial_offset_stays",
    "reads another offset back": "test_offsets_go_through_json_and_back",
    "ignores limits": "test_limits_are_respected_and_never_stall",
    "stalls": "test_limits_are_respected_and_never_stall",
    "goes backwards": "test_nothing_new_is_the_same_offset",
    "counts its limits from the beginning": "test_latest_offset_is_never_behind_its_start",
    "has no end": "test_available_now_ends",
    "moves on without rows": "test_kill_between_any_two_calls_loses_and_doubles_nothing",
    "reads what came meanwhile": "test_replay_returns_the_same_rows",
    "leaves a line out": "test_parts_of_a_range_are_the_whole",
    "leaks": "test_reader_closed_early_leaks_nothing",
    "does not pickle": "test_plan_pickles",
    "tells another schema": "test_rows_have_the_schema_that_the_scan_tells",
    "filters too much": "test_pushed_filters_leave_out_no_row_that_passes",
    "keeps filters it does not know": "test_pushed_filters_leave_out_no_row_that_passes",
}
SINK_FAULTS = {
    "shows rows before the commit": "test_abort_leaves_nothing_visible",
    "returns no message": "test_committed_rows_are_visible",
    "knows commits by attempts": "test_epoch_that_runs_again_shows_nothing_more",
    "commits whatever it is asked": "test_same_commit_again_shows_nothing_more",
    "takes in doubt for done": "test_kill_inside_of_a_commit_loses_and_doubles_nothing",
    "adds its rows again in doubt": "test_kill_inside_of_a_commit_loses_and_doubles_nothing",
    "trusts a half file": "test_kill_inside_of_a_commit_loses_and_doubles_nothing",
    "notes the commit in its tasks": "test_kill_between_any_two_calls_loses_and_doubles_nothing",
}
for _faults, _base in ((SOURCE_FAULTS, LineContract), (SINK_FAULTS, FileContract)):
    for _fault in _faults:
        _name = "Test" + "".join(word.title() for word in _fault.split())
        globals()[_name] = type(_name, (_base,), {"fault": _fault, "__doc__": _fault})
del _faults, _base, _fault, _name
