"""What functions hold: values in and out as Arrow columns, and what a user gets wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.continuous.state.by_key import StateByKey
from pyspark_kafka.continuous.state.lane_state import LaneState
from pyspark_kafka.continuous.state.versions import StatePlan
from pyspark_kafka.errors import SchemaError, StateError

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateByKey]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    with closing(LaneState(StatePlan(str(tmp_path / "c"), "a", {0: ("t-0",)}, {}, (0,)), 0, 0)) as states:
        states.begin_epoch(0)
        states.point_at(None)
        yield StateByKey(states, 0, SCHEMA)


def test_values_are_read_by_many_keys_at_a_time(state: StateByKey) -> None:
    state.update(pa.array([b"a", b"b", b"a"]), n=[1, 2, 3], text=pa.array(["x", None, "z"]))
    state.remove(pa.array(["b"]))
    found = state.get(pa.chunked_array([["b", "a"], ["a"]]))
    assert found.to_pylist() == [{"n": None, "text": None}, {"n": 3, "text": "z"}, {"n": 3, "text": "z"}]
    assert state.get(pa.array([], pa.binary())).num_rows == 0


def test_values_are_cast_to_the_columns_of_the_state(state: StateByKey) -> None:
    state.update(pa.array(["a"]), n=pa.array([5], pa.uint8()), text=pa.chunked_array([["t"]]))
    assert state.get(pa.array(["a"])).to_pylist() == [{"n": 5, "text": "t"}]


KEYS: Any = pa.array(["a"])


@pytest.mark.parametrize(
    ("keys", "columns", "condition"),
    [
        (KEYS, {"n": [1]}, "STATE_USE_INVALID"),
        (KEYS, {"n": [1], "text": ["a"], "more": [1]}, "STATE_USE_INVALID"),
        (KEYS, {"n": [1, 2], "text": ["a"]}, "STATE_USE_INVALID"),
        (KEYS, {"n": ["one"], "text": ["a"]}, "STATE_USE_INVALID"),
        (KEYS, {"n": pa.array([2**64 - 1], pa.uint64()), "text": ["a"]}, "STATE_USE_INVALID"),
        (pa.array([1]), {"n": [1], "text": ["a"]}, "STATE_USE_INVALID"),
        (["a"], {"n": [1], "text": ["a"]}, "STATE_USE_INVALID"),
        (pa.array(["a", None]), {"n": [1, 2], "text": ["a", "b"]}, "STATE_KEY_NULL"),
    ],
)
def test_wrong_use_is_an_error_and_changes_nothing(
    state: StateByKey, keys: Any, columns: dict[str, Any], condition: str
) -> None:
    with pytest.raises((SchemaError, StateError)) as caught:
        state.update(keys, **columns)
    assert caught.value.condition == condition
    assert state.get(KEYS).to_pylist() == [{"n": None, "text": None}]
