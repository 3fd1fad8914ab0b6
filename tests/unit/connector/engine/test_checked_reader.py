"""Readers of other sources: an answer that would lose rows silently is an error that names class and method."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.connector import InputPartition, PartitionReader, PartitionReaderFactory
from pyspark_kafka.connector.engine.checked_reader import CheckedReaderFactory
from pyspark_kafka.errors import CallError, ContractError

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False)])
RIGHT = pa.RecordBatch.from_arrays([pa.array([1])], schema=SCHEMA)
OTHER = "get() returned rows of another schema than readSchema(): "


class Reader(PartitionReader):
    """A reader whose answers the test sets; an exception is raised."""

    def __init__(self, more: Any, batch: Any) -> None:
        self.more, self.batch, self.closed = more, batch, False

    def next(self) -> bool:
        if isinstance(self.more, Exception):
            raise self.more
        return self.more  # type: ignore[no-any-return]

    def get(self) -> pa.RecordBatch:
        if isinstance(self.batch, Exception):
            raise self.batch
        return self.batch

    def getOffset(self) -> str:
        return "of a continuous reader"

    def close(self) -> None:
        self.closed = True


@dataclass(frozen=True)
class Factory(PartitionReaderFactory):
    """Returns the reader of the test."""

    reader: Any = None

    def createReader(self, partition: InputPartition) -> PartitionReader:
        return self.reader  # type: ignore[no-any-return]


def checked(reader: Any) -> Any:
    return CheckedReaderFactory(Factory(reader), SCHEMA).createReader(InputPartition())


def test_reader_that_keeps_its_contract_is_passed_on() -> None:
    reader = Reader(True, RIGHT)
    passed = checked(reader)
    assert (passed.next(), passed.get(), passed.getOffset()) == (True, RIGHT, "of a continuous reader")
    passed.close()
    assert reader.closed


@pytest.mark.parametrize(
    ("more", "batch", "text"),
    [
        (None, RIGHT, "next() must return True or False, and returned None."),
        (1, RIGHT, "next() must return True or False, and returned an int."),
        (True, None, "get() must return a pyarrow.RecordBatch, and returned None."),
        (True, RIGHT.to_pylist(), "get() must return a pyarrow.RecordBatch, and returned a list."),
        (True, pa.record_batch({"n": [1], "m": [2]}), f"{OTHER}expected the columns ['n'], found ['n', 'm']."),
        (True, pa.record_batch({"n": ["1"]}), f"{OTHER}column 'n' is string, expected int64."),
        (True, pa.record_batch({"n": [1]}), f"{OTHER}column 'n' is nullable, expected the opposite."),
    ],
)
def test_rows_against_the_contract_are_named(more: Any, batch: Any, text: str) -> None:
    reader = checked(Reader(more, batch))
    with pytest.raises(ContractError) as raised:
        _ = reader.next() and reader.get()
    assert str(raised.value).startswith(f"[CONTRACT_VIOLATED] Reader.{text}")


def test_factory_without_a_reader_is_named() -> None:
    with pytest.raises(ContractError, match=r"Factory.createReader\(\) must return a PartitionReader, and returned No"):
        checked(None)


@pytest.mark.parametrize("method", ["next", "get"])
def test_error_in_the_middle_of_a_read_is_named_and_is_the_cause(method: str) -> None:
    failure = OSError("connection reset")
    reader = checked(Reader(failure, failure))
    with pytest.raises(CallError) as raised:
        getattr(reader, method)()
    assert str(raised.value).startswith(
        f"[CONNECTOR_CALL_FAILED] Reader.{method}() raised OSError: connection reset. The task failed, and its rows "
        "are dropped; a new attempt reads them again."
    )
    assert raised.value.__cause__ is failure


def test_factory_pickles_with_the_one_that_it_wraps() -> None:
    factory = CheckedReaderFactory(Factory(), SCHEMA)
    assert pickle.loads(pickle.dumps(factory)) == factory  # noqa: S301 - our own bytes
