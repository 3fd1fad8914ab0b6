"""What a source returns against its contract is an error that names class, method and what the contract says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pyspark_kafka.connector import (
    InputPartition,
    MicroBatchStream,
    Offset,
    PartitionReader,
    PartitionReaderFactory,
    ReadAllAvailable,
    ReadMaxRows,
    SupportsAdmissionControl,
)
from pyspark_kafka.connector.engine.checked_read import CheckedMicroBatchStream, CheckedReader
from pyspark_kafka.errors import CallError, ContractError

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False)])


@dataclass(frozen=True, eq=False, order=False)
class At(Offset):
    """An offset of one number."""

    number: int

    def json(self) -> str:
        return json.dumps({"n": self.number})

    def __lt__(self, other: At) -> bool:
        return self.number < other.number


class Stream(MicroBatchStream):
    """A stream whose answers the test sets."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def initialOffset(self) -> Offset:
        return self.answers.get("initial", At(0))  # type: ignore[no-any-return]

    def deserializeOffset(self, text: str) -> Offset:
        return At(json.loads(text)["n"])

    def latestOffset(self, *_: Any) -> Offset:
        return self.answers.get("latest", At(10))  # type: ignore[no-any-return]

    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self.answers.get("partitions", [InputPartition()])  # type: ignore[no-any-return]

    def createReaderFactory(self) -> PartitionReaderFactory:
        return self.answers["factory"]  # type: ignore[no-any-return]

    def commit(self, end: Offset) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class Limited(Stream, SupportsAdmissionControl):
    """A stream that the engine can limit."""

    def getDefaultReadLimit(self) -> ReadMaxRows:
        return ReadMaxRows(3)

    def latestOffset(self, start: Any, limit: Any) -> Offset:
        return At(10) if limit == ReadAllAvailable() else At(min(10, start.number + limit.max_rows))


def checked(**answers: Any) -> CheckedMicroBatchStream:
    return CheckedMicroBatchStream(Stream(**answers), SCHEMA)


def test_stream_that_keeps_its_contract_is_passed_on() -> None:
    stream = checked()
    assert stream.initialOffset() == At(0)
    assert stream.latestOffset(At(0), stream.getDefaultReadLimit()) == At(10)
    assert stream.latestOffset(At(10), ReadAllAvailable()) == At(10)
    assert len(stream.planInputPartitions(At(0), At(10))) == 1
    assert stream.reportLatestOffset() is None


def initial(stream: CheckedMicroBatchStream) -> Any:
    return stream.initialOffset()


def latest(stream: CheckedMicroBatchStream) -> Any:
    return stream.latestOffset(At(4), ReadAllAvailable())


def plan(stream: CheckedMicroBatchStream) -> Any:
    return stream.planInputPartitions(At(0), At(1))


def factory(stream: CheckedMicroBatchStream) -> Any:
    return stream.createReaderFactory()


@pytest.mark.parametrize(
    ("answers", "call", "text"),
    [
        ({"initial": None}, initial, "initialOffset() must return an Offset, and returned None."),
        ({"initial": {"n": 0}}, initial, "initialOffset() must return an Offset, and returned a dict."),
        ({"initial": At}, initial, "initialOffset() must return an Offset, and returned "),
        ({"latest": 7}, latest, "latestOffset() must return an Offset, and returned an int."),
        (
            {"latest": At(3)},
            latest,
            'latestOffset() must not go backwards: it returned {"n": 3} after {"n": 4}. ',
        ),
        ({"partitions": None}, plan, "planInputPartitions() must return a list of InputPartition, and returned None."),
        ({"partitions": [1]}, plan, "planInputPartitions() must return a list of InputPartition, and there is an int"),
        ({"factory": None}, factory, "createReaderFactory() must return a PartitionReaderFactory, and returned None."),
    ],
)
def test_answer_against_the_contract_is_named(answers: dict[str, Any], call: Any, text: str) -> None:
    with pytest.raises(ContractError) as raised:
        call(checked(**answers))
    assert str(raised.value).startswith(f"[CONTRACT_VIOLATED] Stream.{text}")


def test_stream_that_forgets_latest_offset_is_told() -> None:
    class Forgetful(Stream):
        latestOffset = MicroBatchStream.latestOffset

    with pytest.raises(ContractError, match=r"Forgetful.latestOffset\(\) must be implemented"):
        CheckedMicroBatchStream(Forgetful(), SCHEMA).latestOffset(At(0), ReadAllAvailable())


def test_limits_of_a_stream_are_its_own() -> None:
    stream = CheckedMicroBatchStream(Limited(), SCHEMA)
    assert stream.getDefaultReadLimit() == ReadMaxRows(3)
    assert stream.latestOffset(At(0), ReadMaxRows(3)) == At(3)


@pytest.mark.parametrize("stream", [Stream(), Limited()])
def test_available_now_ends_at_what_the_first_look_up_finds(stream: Stream) -> None:
    run = CheckedMicroBatchStream(stream, SCHEMA)
    run.prepareForTriggerAvailableNow()
    assert run.latestOffset(At(0), run.getDefaultReadLimit()) == At(10)
    stream.answers["latest"] = At(99)
    assert run.latestOffset(At(10), run.getDefaultReadLimit()) == At(10)


class Reader(PartitionReader):
    """A reader whose answers the test sets."""

    def __init__(self, more: Any, batch: Any) -> None:
        self.more, self.batch = more, batch

    def next(self) -> bool:
        return self.more  # type: ignore[no-any-return]

    def get(self) -> pa.RecordBatch:
        return self.batch

    def close(self) -> None:
        """Do nothing."""


RIGHT = pa.RecordBatch.from_arrays([pa.array([1])], schema=SCHEMA)


def test_reader_that_keeps_its_contract_is_passed_on() -> None:
    reader = CheckedReader(Reader(True, RIGHT), SCHEMA)
    assert (reader.next(), reader.get()) == (True, RIGHT)


OTHER = "get() returned rows of another schema than readSchema(): "


def answer(reader: CheckedReader) -> pa.RecordBatch:
    reader.next()
    return reader.get()


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
    reader = CheckedReader(Reader(more, batch), SCHEMA)
    with pytest.raises(ContractError) as raised:
        answer(reader)
    assert str(raised.value).startswith(f"[CONTRACT_VIOLATED] Reader.{text}")


class Factory(PartitionReaderFactory):
    """A factory that forgets to return its reader."""

    def createReader(self, partition: InputPartition) -> PartitionReader:
        return None  # type: ignore[return-value]


def test_factory_without_a_reader_is_named() -> None:
    factory = checked(factory=Factory()).createReaderFactory()
    with pytest.raises(
        ContractError, match=r"Factory.createReader\(\) must return a PartitionReader, and returned None"
    ):
        factory.createReader(InputPartition())


class Breaking(Reader):
    """A reader that fails after its first rows."""

    def next(self) -> bool:
        if self.more:
            self.more = False
            return True
        raise OSError("connection reset")


def test_error_in_the_middle_of_a_read_is_named_and_is_the_cause() -> None:
    reader = CheckedReader(Breaking(True, RIGHT), SCHEMA)
    assert reader.next()
    with pytest.raises(CallError) as raised:
        reader.next()
    assert str(raised.value).startswith(
        "[CONNECTOR_CALL_FAILED] Breaking.next() raised OSError: connection reset. The task failed, and its rows are "
        "dropped; a new attempt reads them again."
    )
    assert isinstance(raised.value.__cause__, OSError)
