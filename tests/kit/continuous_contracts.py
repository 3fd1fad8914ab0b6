"""A continuous source that keeps its contract, and others with one planted fault each.

pytest runs this file in a process of its own, which `tests/integration/testing/test_conformance_continuous.py` starts;
it collects nothing here.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.connector import (
    ContinuousPartitionReader,
    ContinuousPartitionReaderFactory,
    ContinuousStream,
    InputPartition,
    Offset,
    PartitionOffset,
    Scan,
    ScanBuilder,
    SupportsRead,
    TableCapability,
)
from pyspark_kafka.testing.conformance import ContinuousSourceContract

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False)])
_ROWS_PER_BATCH = 3


@dataclass(frozen=True, eq=False)
class Lanes(Offset):
    """The number of the next line, of even and of odd lines."""

    even: int
    odd: int

    def json(self) -> str:
        return json.dumps({"even": self.even, "odd": self.odd})


@dataclass(frozen=True)
class Lane(InputPartition):
    """The even or the odd lines, from one of them on."""

    start: int


@dataclass(frozen=True)
class LanePosition(PartitionOffset):
    """The next even or odd line."""

    line: int

    def json(self) -> str:
        return str(self.line)


class LaneReader(ContinuousPartitionReader):
    """Follows every second line of a file that grows."""

    def __init__(self, path: str, start: int, fault: str) -> None:
        self._file = open(path)  # noqa: SIM115, PTH123 - closed in close()
        self._line, self._fault = start, fault
        self._start = start
        self._rows: list[int] = []
        self._waited = False

    def _read(self) -> list[int]:
        self._file.seek(0)
        lines = self._file.read().splitlines()
        return [int(line) for line in lines[self._line :: 2]][:_ROWS_PER_BATCH]

    def next(self) -> bool:
        if self._fault == "takes silence for the end" and self._waited:
            return False
        ends = time.monotonic() + 0.03
        while not (found := self._read()):
            if self._fault == "waits for ever":
                threading.Event().wait()
            if time.monotonic() > ends:
                self._waited = True
                return False
            threading.Event().wait(0.005)
        self._rows = found
        self._line += 2 * len(found)
        return True

    def get(self) -> pa.RecordBatch:
        if self._fault == "reads another type":
            return pa.record_batch({"n": pa.array(self._rows, pa.int32())})
        return pa.RecordBatch.from_arrays([pa.array(self._rows, pa.int64())], schema=SCHEMA)

    def getOffset(self) -> PartitionOffset:
        if self._fault == "has no position at first" and not self._rows:
            return None  # type: ignore[return-value]
        if self._fault == "stands still":
            return LanePosition(self._start)
        if self._fault == "is ahead of its rows" and self._rows:
            return LanePosition(self._line + 2)
        if self._fault == "is behind its rows" and self._rows and self._line > self._start + 2 * _ROWS_PER_BATCH:
            return LanePosition(self._line - 2)
        return LanePosition(self._line)

    def close(self) -> None:
        if self._fault == "leaks":
            KEPT.append(self._file)
        else:
            self._file.close()
        if self._fault == "closes never":
            threading.Event().wait()


KEPT: list[Any] = []


@dataclass(frozen=True)
class LaneReaders(ContinuousPartitionReaderFactory):
    """Makes readers of every second line."""

    path: str
    fault: str

    def createReader(self, partition: InputPartition) -> ContinuousPartitionReader:
        assert isinstance(partition, Lane)
        return LaneReader(self.path, partition.start, self.fault)


class LaneStream(ContinuousStream):
    """A file of lines as a continuous stream."""

    def __init__(self, path: str, fault: str) -> None:
        self._path, self._fault = path, fault

    def initialOffset(self) -> Offset:
        if self._fault == "starts where it is asked":
            with open(self._path) as file:  # noqa: PTH123
                return Lanes(2 * (sum(1 for _ in file) // 2), 1)
        return Lanes(0, 1)

    def deserializeOffset(self, text: str) -> Offset:
        parsed = json.loads(text)
        return Lanes(parsed["even"] + 2 * (self._fault == "reads another offset back"), parsed["odd"])

    def deserializePartitionOffset(self, text: str) -> PartitionOffset:
        return LanePosition(int(text) + 2 * (self._fault == "reads another position back"))

    def planInputPartitions(self, start: Any) -> Sequence[InputPartition]:
        if self._fault == "forgets a reader" and start.even > 0:
            return [Lane(start.even), Lane(start.odd + 2)]
        return [Lane(start.even), Lane(start.odd)]

    def createContinuousReaderFactory(self) -> ContinuousPartitionReaderFactory:
        if self._fault == "does not pickle":
            factory = LaneReaders(self._path, self._fault)
            object.__setattr__(factory, "fault", threading.Lock())
            return factory
        return LaneReaders(self._path, self._fault)

    def mergeOffsets(self, offsets: Sequence[Any]) -> Offset:
        lines = [each.line for each in offsets]
        if self._fault == "counts on an order":
            return Lanes(*lines)
        return Lanes(next(line for line in lines if line % 2 == 0), next(line for line in lines if line % 2))

    def commit(self, end: Offset) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class LaneScan(Scan):
    """One continuous read of a file of lines."""

    def __init__(self, path: str, fault: str) -> None:
        self._path, self._fault = path, fault

    def readSchema(self) -> pa.Schema:
        return SCHEMA

    def toContinuousStream(self, checkpointLocation: str | None) -> ContinuousStream:
        return LaneStream(self._path, self._fault)


@dataclass(frozen=True)
class LaneTable(SupportsRead):
    """A file of lines as a table that is read continuously."""

    path: str
    fault: str = ""

    def name(self) -> str:
        return "lanes"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        return SCHEMA

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset() if self.fault == "names nothing" else frozenset({TableCapability.CONTINUOUS_READ})

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        scan = LaneScan(self.path, self.fault)

        class Builder(ScanBuilder):
            def build(self) -> Scan:
                return scan

        return Builder()


class LaneContract(ContinuousSourceContract):
    """The cases over a file of lines."""

    fault = ""
    max_call_seconds = 5.0
    max_wait_seconds = 10.0

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self._path = tmp_path / "lines"
        self._path.touch()

    def table(self) -> SupportsRead:
        return LaneTable(str(self._path), self.fault)

    def add_rows(self, count: int) -> None:
        have = len(self._path.read_text().splitlines())
        with self._path.open("a") as file:
            file.write("".join(f"{number}\n" for number in range(have, have + count)))


class TestLanes(LaneContract):
    """Keeps its contract."""


# The case that fails, and what it says.
CONTINUOUS_FAULTS = {
    "names nothing": ("test_capability_is_implemented", "does not name CONTINUOUS_READ"),
    "reads another type": ("test_rows_have_the_schema_that_the_scan_tells", "column 'n' is int32, expected int64"),
    "does not pickle": ("test_plan_pickles", "cannot pickle"),
    "starts where it is asked": ("test_initial_offset_stays", "would be lost"),
    "has no position at first": (
        "test_answers_have_the_types_of_the_contract",
        "LaneReader.getOffset() must return a PartitionOffset, and returned None.",
    ),
    "stands still": ("test_positions_advance_with_the_rows", "rows were returned, and the offset stayed"),
    "reads another offset back": ("test_positions_advance_with_the_rows", "assert"),
    "reads another position back": (
        "test_offset_before_the_first_rows_is_the_start",
        "deserializePartitionOffset() returned a position that does not equal the position of the JSON",
    ),
    "counts on an order": ("test_positions_advance_with_the_rows", "assert"),
    "is ahead of its rows": ("test_each_epoch_continues_with_no_row_lost_or_doubled", "and rows are left"),
    "is behind its rows": ("test_each_epoch_continues_with_no_row_lost_or_doubled", "rows were read, and there are"),
    "forgets a reader": ("test_kill_between_any_two_calls_loses_and_doubles_nothing", "killed before step"),
    "waits for ever": ("test_next_returns_when_nothing_comes_and_continues", "next() did not return within"),
    "takes silence for the end": ("test_next_returns_when_nothing_comes_and_continues", "nothing came in"),
    "leaks": ("test_reader_that_waits_is_closed_and_leaks_nothing", "stay open"),
    "closes never": ("test_reader_that_waits_is_closed_and_leaks_nothing", "close() did not return within"),
}
for _fault in CONTINUOUS_FAULTS:
    _name = "Test" + "".join(word.title() for word in _fault.split())
    _times = {"max_call_seconds": 2.0, "max_wait_seconds": 2.0}
    globals()[_name] = type(_name, (LaneContract,), {"fault": _fault, "__doc__": _fault, **_times})
del _fault, _name, _times
