"""A source of numbers that keeps what it was asked: for adapters of engines."""
# ruff: noqa: N802 - Spark's contract

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyspark_kafka.connector import (
    Batch,
    InputPartition,
    MicroBatchStream,
    Offset,
    PartitionReader,
    PartitionReaderFactory,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)


@dataclass(frozen=True)
class Numbers(InputPartition):
    """A task that yields `count` batches of one row, and fails after them if it `fails`."""

    count: int
    fails: bool = False


# What readers did, by name: the factory is copied, so it cannot keep it itself.
EVENTS: list[str] = []


class NumberReader(PartitionReader):
    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.at = 0

    def next(self) -> bool:
        EVENTS.append("next")
        self.at += 1
        if self.at > self.numbers.count and self.numbers.fails:
            raise ValueError("the reader failed")
        return self.at <= self.numbers.count

    def get(self) -> pa.RecordBatch:
        return pa.record_batch({"n": pa.array([self.at])})

    def close(self) -> None:
        EVENTS.append("close")


@dataclass(frozen=True)
class NumberReaderFactory(PartitionReaderFactory):
    def createReader(self, partition: InputPartition) -> PartitionReader:
        assert isinstance(partition, Numbers)
        EVENTS.append("create")
        return NumberReader(partition)


@dataclass(frozen=True, order=True)
class Position(Offset):
    at: int

    def json(self) -> str:
        return json.dumps({"t": {"0": self.at}})


class NumberStream(MicroBatchStream, SupportsTriggerAvailableNow):
    """Keeps what it was asked."""

    def __init__(self, limit: ReadLimit | None = None) -> None:
        self.asked: list[Any] = []
        self.limit = limit or ReadMaxRows(5)
        self.never_pickled = lambda: None

    def initialOffset(self) -> Offset:
        return Position(3)

    def deserializeOffset(self, json: str) -> Offset:
        return Position(_parse(json))

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        self.asked.append((start, limit))
        return Position(9)

    def getDefaultReadLimit(self) -> ReadLimit:
        return self.limit

    def prepareForTriggerAvailableNow(self) -> None:
        self.asked.append("prepare")

    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        self.asked.append((start, end))
        return [Numbers(1), Numbers(2)]

    def createReaderFactory(self) -> PartitionReaderFactory:
        return NumberReaderFactory()

    def commit(self, end: Offset) -> None:
        self.asked.append(("commit", end))

    def stop(self) -> None:
        self.asked.append("stop")


def _parse(text: str) -> int:
    at: int = json.loads(text)["t"]["0"]
    return at


class NumberBatch(Batch):
    def __init__(self) -> None:
        self.never_pickled = lambda: None

    def planInputPartitions(self) -> Sequence[InputPartition]:
        return [Numbers(2)]

    def createReaderFactory(self) -> PartitionReaderFactory:
        return NumberReaderFactory()


def values(batches: Any) -> list[int]:
    """Return the numbers of batches."""
    return [value for batch in batches for value in batch.column(0).to_pylist()]
