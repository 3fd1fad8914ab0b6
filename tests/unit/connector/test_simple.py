"""A source in one class: mistakes of its author are named by class and method."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.connector import ReadAllAvailable, SimpleSource
from pyspark_kafka.connector.engine.available_now import admission_control_of
from pyspark_kafka.connector.engine.checked_reader import CheckedReaderFactory
from pyspark_kafka.connector.simple import SimpleOffset
from pyspark_kafka.errors import CallError, ContractError

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False)])


class Counter(SimpleSource):
    """The numbers up to ten."""

    def name(self) -> str:
        return "counter"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        return SCHEMA

    def initial(self, options: Mapping[str, str]) -> Any:
        return 0

    def latest(self, options: Mapping[str, str], start: Any) -> Any:
        return 10

    def read(self, options: Mapping[str, str], start: Any, end: Any) -> Iterable[Any]:
        return [(number,) for number in range(start, end)]


def rows_of(**methods: Callable[..., Any]) -> list[int]:
    source: SimpleSource = type("Mine", (Counter,), methods)()
    stream = source.newScanBuilder({}).build().toMicroBatchStream(None)
    start = stream.initialOffset()
    end = admission_control_of(stream).latestOffset(start, ReadAllAvailable())
    found: list[int] = []
    for partition in stream.planInputPartitions(start, end):
        reader = CheckedReaderFactory(stream.createReaderFactory(), SCHEMA).createReader(partition)
        while reader.next():
            found += reader.get().column(0).to_pylist()
        reader.close()
    return found


def half_way(*_: Any) -> Iterable[Any]:
    yield (1,)
    raise ValueError("line 2 is not a number")


def fails(*_: Any) -> Any:
    raise KeyError("path")


def test_simple_source_is_read() -> None:
    assert rows_of() == list(range(10))


@pytest.mark.parametrize(
    ("methods", "text"),
    [
        ({"read": half_way}, "Mine.read() raised ValueError: line 2 is not a number. The task failed, and its rows "),
        ({"read": fails}, "Mine.read() raised KeyError: 'path'. The task failed, and its rows are dropped; "),
        ({"latest": fails}, "Mine.latest() raised KeyError: 'path'. Nothing was read."),
        ({"initial": fails}, "Mine.initial() raised KeyError: 'path'. Nothing was read."),
    ],
)
def test_error_of_a_method_is_named_and_is_the_cause(methods: dict[str, Any], text: str) -> None:
    with pytest.raises(CallError) as raised:
        rows_of(**methods)
    assert str(raised.value).startswith(f"[CONNECTOR_CALL_FAILED] {text}")
    assert isinstance(raised.value.__cause__, (ValueError, KeyError))
    # PySpark drops the traceback of a cause.
    assert re.search(rf"It was raised in {re.escape(__file__)}, line \d+\. Hint: ", str(raised.value))


@pytest.mark.parametrize("position", ["page-9", {"page": 9}, [9]])
def test_order_of_tokens_is_known_to_their_source_alone(position: Any) -> None:
    with pytest.raises(TypeError):
        assert SimpleOffset(position) < SimpleOffset(position)
    assert SimpleOffset(1) < SimpleOffset(2.5)


def test_arrow_batch_of_another_schema_is_refused() -> None:
    with pytest.raises(ContractError, match=r"column 'n' is string, expected int64"):
        rows_of(read=lambda *_: [pa.record_batch({"n": ["1"]})])
