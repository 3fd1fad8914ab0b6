"""A class that forgets a method of its contract is refused when an object is made, by a sentence about the method."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest

from pyspark_kafka.connector import DataWriter, MicroBatchStream, PartitionReader, SimpleSource, StreamingWrite
from pyspark_kafka.connector.contract import ConnectorContract
from pyspark_kafka.errors import ContractError


@pytest.mark.parametrize(
    ("contract", "text"),
    [
        (SimpleSource, "initial() is missing. Its contract: Return the position where a new query starts."),
        (PartitionReader, "close() is missing. Its contract: Release what the reader holds."),
        (DataWriter, "abort() is missing. Its contract: Clean up after a failed `write` or `commit`."),
        (StreamingWrite, "abort() is missing. Its contract: Abort one epoch; "),
        (MicroBatchStream, "commit() is missing. Its contract: "),
    ],
)
def test_forgotten_method_is_named_with_its_contract(contract: type[ConnectorContract], text: str) -> None:
    forgetful = type("Forgetful", (contract,), {})
    with pytest.raises(ContractError) as raised:
        forgetful()
    assert str(raised.value).startswith(f"[CONTRACT_VIOLATED] Forgetful.{text}")
    # As Python's own refusal of an abstract class.
    assert isinstance(raised.value, TypeError)


def test_several_forgotten_methods_are_one_error() -> None:
    with pytest.raises(ContractError, match=r"It also lacks latest\(\), name\(\), read\(\), schema\(\)\. Hint: Impl"):
        type("Forgetful", (SimpleSource,), {})()


@dataclass(frozen=True)
class Whole(ConnectorContract):
    """Lacks nothing."""

    value: int


def test_class_that_lacks_nothing_is_made_and_pickled() -> None:
    assert pickle.loads(pickle.dumps(Whole(7))) == Whole(value=7)  # noqa: S301 - our own bytes
