"""Offsets that a source keeps itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka.connector import InputPartition, Offset, PartitionReaderFactory
from pyspark_kafka.errors import CheckpointError, ContractError
from pyspark_kafka.toolkit import CheckpointedMicroBatchStream, OffsetStore


@dataclass(frozen=True, eq=False)
class Number(Offset):
    """An offset of one number."""

    number: int

    def json(self) -> str:
        return json.dumps({"n": self.number})

    @classmethod
    def of(cls, text: str) -> Number:
        return cls(json.loads(text)["n"])


class Counter(CheckpointedMicroBatchStream):
    """A stream that begins at a number which grows each time that it is asked."""

    asked = 0

    def firstOffset(self) -> Offset:
        Counter.asked += 1
        return Number(Counter.asked)

    def deserializeOffset(self, json: str) -> Offset:
        return Number.of(json)

    def latestOffset(self, *_: Any) -> Offset:
        return Number(1_000)

    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return []

    def createReaderFactory(self) -> PartitionReaderFactory:
        raise NotImplementedError

    def stop(self) -> None:
        """Do nothing."""


def test_initial_offset_is_resolved_once_in_the_life_of_a_checkpoint(tmp_path: Path) -> None:
    first = Counter(str(tmp_path)).initialOffset()
    assert [Counter(str(tmp_path)).initialOffset() for _ in range(3)] == [first] * 3


def test_committed_offset_survives(tmp_path: Path) -> None:
    stream = Counter(str(tmp_path))
    assert stream.committedOffset() is None
    stream.commit(Number(5))
    stream.commit(Number(8))
    assert Counter(str(tmp_path)).committedOffset() == Number(8)


@pytest.mark.parametrize(
    "damage",
    ["", "offset v1\n", 'offset v1\n{"n": 1', 'offset v1\n{"n": 12}\n8\n', 'offset v2\n{"n": 1}\n8\n', "\x00\x00\x00"],
)
@pytest.mark.parametrize("name", ["initial-offset", "committed-offset"])
def test_file_that_is_not_readable_is_an_error_and_never_a_new_beginning(
    tmp_path: Path, name: str, damage: str
) -> None:
    (tmp_path / name).write_text(damage)
    stream, asked = Counter(str(tmp_path)), Counter.asked
    with pytest.raises(CheckpointError, match=rf"\[OFFSET_FILE_INVALID\] Offset file {name} below"):
        _ = stream.initialOffset() if name == "initial-offset" else stream.committedOffset()
    assert Counter.asked == asked


def test_second_driver_takes_the_offset_of_the_first(tmp_path: Path) -> None:
    store = OffsetStore(str(tmp_path), Number.of)

    def resolve() -> Offset:
        OffsetStore(str(tmp_path), Number.of).initial(lambda: Number(1))
        return Number(2)

    assert store.initial(resolve) == Number(1)


def test_nothing_is_left_beside_the_files(tmp_path: Path) -> None:
    stream = Counter(str(tmp_path))
    stream.initialOffset()
    stream.commit(Number(5))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["committed-offset", "initial-offset"]


def test_offset_of_several_lines_is_refused(tmp_path: Path) -> None:
    class Lines(Number):
        def json(self) -> str:
            return "{\n}"

    with pytest.raises(ContractError, match=r"Lines.json\(\) must return one line of text"):
        OffsetStore(str(tmp_path), Number.of).commit(Lines(1))
