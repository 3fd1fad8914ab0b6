"""Commit messages as JSON, for engines whose tasks answer by network."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from pyspark_kafka.connector import StreamingWrite, WriterCommitMessage
from pyspark_kafka.errors import CapabilityError, ContractError


@dataclass(frozen=True)
class Counted(WriterCommitMessage):
    rows: int
    files: tuple[str, ...] = ()
    data: object = None


class Plain(WriterCommitMessage):
    """Not a dataclass."""


class MicroBatchesOnly(StreamingWrite):
    def createStreamingWriterFactory(self, info: Any) -> Any:
        raise NotImplementedError

    def commit(self, epoch_id: int, messages: Any) -> None:
        raise NotImplementedError

    def abort(self, epoch_id: int, messages: Any) -> None:
        raise NotImplementedError


def test_message_of_plain_data_has_its_fields_as_json() -> None:
    assert json.loads(Counted(3, ("a", "b")).json()) == {"rows": 3, "files": ["a", "b"], "data": None}


@pytest.mark.parametrize("message", [Plain(), Counted(1, data=object())], ids=["no dataclass", "no plain data"])
def test_message_without_a_json_form_names_its_class_and_method(message: WriterCommitMessage) -> None:
    with pytest.raises(ContractError, match=rf"{type(message).__name__}\.json\(\) must be implemented"):
        message.json()


def test_sink_without_deserialize_message_refuses_a_continuous_query() -> None:
    with pytest.raises(CapabilityError, match="MicroBatchesOnly cannot be written by a continuous query"):
        MicroBatchesOnly().deserializeMessage("{}")
