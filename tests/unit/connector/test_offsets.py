"""How positions compare that say nothing about it themselves."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest

from pyspark_kafka.connector import Offset, PartitionOffset


@dataclass(frozen=True, eq=False)
class OfStream(Offset):
    number: int

    def json(self) -> str:
        return str(self.number)


@dataclass(frozen=True, eq=False)
class OfReader(PartitionOffset):
    number: int

    def json(self) -> str:
        return str(self.number)


@pytest.mark.parametrize("kind", [OfStream, OfReader])
def test_positions_are_equal_exactly_if_their_texts_are(kind: type[OfStream | OfReader]) -> None:
    one = kind(1)
    assert (one, hash(one)) == (pickle.loads(pickle.dumps(one)), hash(kind(1)))  # noqa: S301 - our own bytes
    assert one != kind(2)
    assert str(one) == "1"
