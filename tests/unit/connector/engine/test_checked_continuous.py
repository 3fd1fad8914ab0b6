"""What a continuous source returns against its contract is an error that names class, method and the contract."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pyspark_kafka.connector import (
    ContinuousPartitionReader,
    ContinuousPartitionReaderFactory,
    ContinuousStream,
    InputPartition,
    Offset,
    PartitionOffset,
)
from pyspark_kafka.connector.engine.checked_continuous import CheckedContinuousStream
from pyspark_kafka.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False)])


@dataclass(frozen=True, eq=False)
class Row(Offset):
    """An offset of one number."""

    number: int

    def json(self) -> str:
        return json.dumps({"row": self.number})

    def __lt__(self, other: Row) -> bool:
        return self.number < other.number


@dataclass(frozen=True)
class Place(PartitionOffset):
    """A position of one number."""

    number: Any

    def json(self) -> str:
        return self.number if self.number is None else str(self.number)  # type: ignore[return-value]


class AnsweringReader(ContinuousPartitionReader):
    """A continuous reader whose answers the test sets."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers

    def next(self) -> bool:
        return self.answers.get("next", True)  # type: ignore[no-any-return]

    def get(self) -> pa.RecordBatch:
        return self.answers.get("get", pa.RecordBatch.from_arrays([pa.array([1])], schema=SCHEMA))

    def describeRows(self) -> str:
        return "rows 5 to 9"

    def hasEnded(self) -> bool:
        return self.answers.get("ended", False)  # type: ignore[no-any-return]

    def getOffset(self) -> PartitionOffset:
        return self.answers.get("position", Place(5))  # type: ignore[no-any-return]

    def getLatestOffset(self) -> PartitionOffset | None:
        return self.answers.get("heard")

    def getRowTimes(self) -> Sequence[float]:
        return self.answers.get("times", ())  # type: ignore[no-any-return]

    def close(self) -> None:
        """Do nothing."""


class Answering(ContinuousStream, ContinuousPartitionReaderFactory):
    """A continuous stream whose answers the test sets; its own factory."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def initialOffset(self) -> Offset:
        return self.answers.get("initial", Row(0))  # type: ignore[no-any-return]

    def deserializeOffset(self, json: str) -> Offset:
        return self.answers.get("read", Row(int(json)))  # type: ignore[no-any-return]

    def deserializePartitionOffset(self, text: str) -> PartitionOffset:
        return self.answers.get("arrived", Place(int(text)))  # type: ignore[no-any-return]

    def planInputPartitions(self, start: Offset) -> Sequence[InputPartition]:
        return self.answers.get("plan", [InputPartition()])  # type: ignore[no-any-return]

    def createContinuousReaderFactory(self) -> ContinuousPartitionReaderFactory:
        return self.answers.get("factory", self)  # type: ignore[no-any-return]

    def createReader(self, partition: InputPartition) -> ContinuousPartitionReader:
        return self.answers.get("reader", AnsweringReader(self.answers))  # type: ignore[no-any-return]

    def mergeOffsets(self, offsets: Sequence[PartitionOffset]) -> Offset:
        return self.answers.get("merged", Row(9))  # type: ignore[no-any-return]

    def prepareForTriggerAvailableNow(self) -> None:
        self.answers["prepared"] = True

    def prepareForTasks(self, tasks: int) -> None:
        self.answers["tasks"] = tasks

    def latestOffset(self) -> Offset | None:
        return self.answers.get("latest", Row(7))  # type: ignore[no-any-return]

    def hasReached(self, position: Offset, target: Offset) -> bool:
        return self.answers.get("reached", position == target)  # type: ignore[no-any-return]

    def mergeLatestOffsets(self, offsets: Sequence[PartitionOffset]) -> Offset:
        return self.answers.get("merged_latest", Row(12))  # type: ignore[no-any-return]

    def lagMetrics(self, position: Offset, latest: Offset) -> Mapping[str, str]:
        return {"behind": f"{position.json()}-{latest.json()}"}

    def needsReconfiguration(self) -> bool:
        return self.answers.get("again", False)  # type: ignore[no-any-return]

    def commit(self, end: Offset) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


def run_epoch(**answers: Any) -> Offset:
    stream = CheckedContinuousStream(Answering(**answers), SCHEMA)
    stream.initialOffset()
    start = stream.deserializeOffset("4")
    planned = stream.planInputPartitions(start)
    reader = stream.createContinuousReaderFactory().createReader(planned[0])
    assert reader.next()
    assert reader.get().to_pylist() == [{"n": 1}]
    merged = stream.mergeOffsets([stream.deserializePartitionOffset(reader.getOffset().json())])
    assert not stream.needsReconfiguration()
    assert not reader.hasEnded()
    assert not stream.hasReached(start, stream.latestOffset() or start)
    return merged


def test_continuous_stream_that_keeps_its_contract_is_passed_on() -> None:
    assert run_epoch() == Row(9)


def test_optional_methods_of_a_source_are_passed_on() -> None:
    source = Answering(ended=True)
    stream = CheckedContinuousStream(source, SCHEMA)
    stream.prepareForTriggerAvailableNow()
    stream.prepareForTasks(3)
    assert source.answers["prepared"] is True
    assert source.answers["tasks"] == 3
    assert stream.latestOffset() == Row(7)
    assert stream.hasReached(Row(7), Row(7))
    reader = stream.createContinuousReaderFactory().createReader(InputPartition())
    assert reader.hasEnded()
    assert reader.describeRows() == "rows 5 to 9"
    source.answers["latest"] = None
    assert stream.latestOffset() is None


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ({"initial": None}, "Answering.initialOffset() must return an Offset, and returned None."),
        ({"read": 4}, "Answering.deserializeOffset() must return an Offset, and returned an int."),
        ({"plan": None}, "Answering.planInputPartitions() must return a list of InputPartition, and returned None."),
        (
            {"factory": None},
            "Answering.createContinuousReaderFactory() must return a ContinuousPartitionReaderFactory, and returned",
        ),
        ({"reader": None}, "Answering.createReader() must return a ContinuousPartitionReader, and returned None."),
        ({"next": None}, "AnsweringReader.next() must return True or False, and returned None."),
        (
            {"get": pa.record_batch({"n": ["1"]})},
            "AnsweringReader.get() returned rows of another schema than readSchema(): column 'n' is string",
        ),
        ({"position": None}, "AnsweringReader.getOffset() must return a PartitionOffset, and returned None."),
        ({"position": {"n": 1}}, "AnsweringReader.getOffset() must return a PartitionOffset, and returned a dict."),
        ({"position": Place(None)}, "Place.json() must return text, and returned None."),
        ({"arrived": None}, "Answering.deserializePartitionOffset() must return a PartitionOffset, and returned None."),
        ({"merged": None}, "Answering.mergeOffsets() must return an Offset, and returned None."),
        (
            {"merged": Row(3)},
            'Answering.mergeOffsets() must not go backwards: it returned {"row": 3} after {"row": 4}. The epoch was ',
        ),
        ({"ended": None}, "AnsweringReader.hasEnded() must return True or False, and returned None."),
        ({"latest": 7}, "Answering.latestOffset() must return an Offset, and returned an int."),
        ({"reached": None}, "Answering.hasReached() must return a bool, and returned None."),
        ({"again": None}, "Answering.needsReconfiguration() must return a bool, and returned None."),
    ],
)
def test_answer_against_the_contract_is_named(answers: dict[str, Any], text: str) -> None:
    with pytest.raises(ContractError) as raised:
        run_epoch(**answers)
    assert str(raised.value).startswith(f"[CONTRACT_VIOLATED] {text}")


def test_epoch_before_the_former_one_is_refused() -> None:
    source = Answering()
    stream = CheckedContinuousStream(source, SCHEMA)
    stream.planInputPartitions(Row(0))
    assert stream.mergeOffsets([Place(5)]) == Row(9)
    assert stream.mergeOffsets([Place(5)]) == Row(9)
    source.answers["merged"] = Row(8)
    with pytest.raises(ContractError, match=r'returned \{"row": 8\} after \{"row": 9\}'):
        stream.mergeOffsets([Place(5)])


def test_figures_of_progress_are_passed_on_and_looked_at() -> None:
    stream = CheckedContinuousStream(Answering(heard=Place(12), times=(1.0, 2.0)), SCHEMA)
    start = stream.deserializeOffset("4")
    reader = stream.createContinuousReaderFactory().createReader(stream.planInputPartitions(start)[0])
    assert reader.getLatestOffset() == Place(12)
    assert reader.getRowTimes() == (1.0, 2.0)
    # Ahead of what is read: the next epoch may end before it.
    latest = stream.mergeLatestOffsets([Place(12)])
    assert latest == Row(12)
    assert stream.mergeOffsets([Place(9)]) == Row(9)
    assert stream.lagMetrics(Row(9), latest) == {"behind": '{"row": 9}-{"row": 12}'}
    unknown = CheckedContinuousStream(Answering(), SCHEMA)
    reader = unknown.createContinuousReaderFactory().createReader(unknown.planInputPartitions(start)[0])
    assert reader.getLatestOffset() is None
    wrong = CheckedContinuousStream(Answering(heard=12, merged_latest=None), SCHEMA)
    reader = wrong.createContinuousReaderFactory().createReader(wrong.planInputPartitions(start)[0])
    with pytest.raises(ContractError, match="getLatestOffset"):
        reader.getLatestOffset()
    with pytest.raises(ContractError, match="mergeLatestOffsets"):
        wrong.mergeLatestOffsets([])


def test_readers_that_know_nothing_more_have_no_figures() -> None:
    class Plain(Answering):
        mergeLatestOffsets = ContinuousStream.mergeLatestOffsets
        lagMetrics = ContinuousStream.lagMetrics

    stream = Plain()
    assert stream.mergeLatestOffsets([Place(1)]) == Row(9)
    assert stream.lagMetrics(Row(1), Row(9)) == {}
    assert ContinuousPartitionReader.getLatestOffset(AnsweringReader({})) is None
    assert ContinuousPartitionReader.getRowTimes(AnsweringReader({})) == ()
