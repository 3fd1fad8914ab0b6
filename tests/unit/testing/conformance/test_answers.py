"""The cases of the suites that name each answer of the wrong type."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from pyspark_kafka.connector import (
    Batch,
    BatchWrite,
    ContinuousPartitionReader,
    ContinuousPartitionReaderFactory,
    ContinuousStream,
    DataWriter,
    DataWriterFactory,
    InputPartition,
    MicroBatchStream,
    Offset,
    PartitionOffset,
    PartitionReaderFactory,
    ReadAllAvailable,
    StreamingDataWriterFactory,
    StreamingWrite,
    SupportsTriggerAvailableNow,
    TableCapability,
    WriterCommitMessage,
)
from pyspark_kafka.errors import ContractError
from pyspark_kafka.testing.conformance import ContinuousSourceContract, SinkContract, SourceContract


@dataclass(frozen=True)
class At(Offset):
    text: Any = "{}"

    def json(self) -> str:
        return self.text  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Place(PartitionOffset):
    text: Any = "{}"

    def json(self) -> str:
        return self.text  # type: ignore[no-any-return]


class Stream(MicroBatchStream, SupportsTriggerAvailableNow):
    """For the names of its methods."""


def answering(kind: Any, wrong: dict[str, Any], **answers: Any) -> Any:
    """Return an object of a class whose methods return these answers; one that is in `wrong` is wrong."""
    mock = Mock(spec=kind)
    for method, answer in answers.items():
        getattr(mock, method).return_value = wrong.get(method, answer)
    return mock


def read(**wrong: Any) -> None:
    """Run the case of a micro-batch source."""
    factory = answering(PartitionReaderFactory, wrong)
    stream = answering(
        Stream, wrong, initialOffset=At(), deserializeOffset=At(), getDefaultReadLimit=ReadAllAvailable(),
        latestOffset=At(), reportLatestOffset=At(), planInputPartitions=[InputPartition()], createReaderFactory=factory,
    )  # fmt: skip
    batch = answering(Batch, wrong, planInputPartitions=[InputPartition()], createReaderFactory=factory)
    table = Mock(capabilities=lambda: {TableCapability.BATCH_READ})
    scan = Mock(toBatch=lambda: wrong.get("batch", batch))
    source = Mock(scan=lambda: scan, stream=lambda: wrong.get("stream", stream), table=table)
    SourceContract.test_answers_have_the_types_of_the_contract(Mock(), source)


def read_on(**wrong: Any) -> None:
    """Run the case of a continuous source."""
    reader = answering(
        ContinuousPartitionReader, wrong, getOffset=Place(), getLatestOffset=Place(), describeRows="", hasEnded=False
    )
    factory = answering(ContinuousPartitionReaderFactory, wrong, createReader=reader)
    stream = answering(
        ContinuousStream, wrong, initialOffset=At(), deserializeOffset=At(), planInputPartitions=[InputPartition()],
        createContinuousReaderFactory=factory, deserializePartitionOffset=Place(), mergeOffsets=At(),
        mergeLatestOffsets=At(), plannedOffset=At(), latestOffset=At(), hasReached=False, needsReconfiguration=False,
    )  # fmt: skip
    ContinuousSourceContract.test_answers_have_the_types_of_the_contract(Mock(), Mock(stream=lambda: stream))


def write(**wrong: Any) -> None:
    """Run the case of a sink."""
    writer = answering(DataWriter, wrong, commit=WriterCommitMessage())
    factory = answering(StreamingDataWriterFactory, wrong, createWriter=writer)
    job = answering(StreamingWrite, wrong, useCommitCoordinator=True, createStreamingWriterFactory=factory)
    batch = answering(
        BatchWrite, wrong, useCommitCoordinator=True, createBatchWriterFactory=answering(DataWriterFactory, wrong)
    )
    table = SimpleNamespace(
        newWriteBuilder=lambda _: Mock(build=lambda: Mock(toStreaming=lambda: job, toBatch=lambda: batch)),
        capabilities=lambda: {TableCapability.BATCH_WRITE},
    )
    contract = Mock(table=lambda: table, visible=list)
    contract.schema.return_value, contract.row.return_value = None, {"n": 1}
    sink: Any = inspect.unwrap(SinkContract.sink)(contract)
    SinkContract.test_answers_have_the_types_of_the_contract(contract, sink)


CASES = [
    *((read, method) for method in (
        "initialOffset", "deserializeOffset", "getDefaultReadLimit", "latestOffset", "planInputPartitions",
        "createReaderFactory", "stream", "batch",
    )),
    *((read_on, method) for method in (
        "initialOffset", "deserializeOffset", "planInputPartitions", "createContinuousReaderFactory", "getOffset",
        "describeRows", "hasEnded", "deserializePartitionOffset", "mergeOffsets", "mergeLatestOffsets", "hasReached",
        "needsReconfiguration",
    )),
    *((write, method) for method in (
        "commit", "createWriter", "useCommitCoordinator", "createStreamingWriterFactory", "createBatchWriterFactory",
    )),
]  # fmt: skip


@pytest.mark.parametrize("case", [read, read_on, write])
def test_author_who_keeps_the_contract_passes(case: Any) -> None:
    case()


@pytest.mark.parametrize(("case", "method"), CASES)
def test_forgotten_return_is_named(case: Any, method: str) -> None:
    name = {"stream": "toMicroBatchStream", "batch": "toBatch"}.get(method, method)
    with pytest.raises(ContractError, match=rf"{name}\(\) must return .*, and returned None"):
        case(**{method: None})


@pytest.mark.parametrize(
    ("case", "wrong", "text"),
    [
        (read, {"latestOffset": 7}, r"Mock.latestOffset\(\) must return an Offset, and returned an int"),
        (read, {"reportLatestOffset": {"n": 0}}, r"reportLatestOffset\(\) must return an Offset, and returned a dict"),
        (read, {"initialOffset": At(None)}, r"At.json\(\) must return a str, and returned None"),
        (read, {"planInputPartitions": [1]}, r"must return a list of InputPartition, and there is an int in it"),
        (read_on, {"getOffset": Place(None)}, r"Place.json\(\) must return a str, and returned None"),
        (read_on, {"getLatestOffset": At()}, r"getLatestOffset\(\) must return a PartitionOffset, and returned an At"),
        (read_on, {"plannedOffset": 7}, r"plannedOffset\(\) must return an Offset, and returned an int"),
        (read_on, {"latestOffset": 7}, r"latestOffset\(\) must return an Offset, and returned an int"),
        (write, {"commit": "done"}, r"commit\(\) must return a WriterCommitMessage, and returned a str"),
    ],
)
def test_answer_of_another_type_is_named(case: Any, wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ContractError, match=text):
        case(**wrong)
