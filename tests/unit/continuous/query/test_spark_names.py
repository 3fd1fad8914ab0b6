"""The names of a continuous query beside PySpark's: each is there, or the error of its absence says what to use."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyspark.sql.group import GroupedData
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from kit.continuous import SCHEMA, FilesTable
from pyspark_kafka import continuous
from pyspark_kafka.continuous.query.builder import ContinuousFrame, ContinuousGroups, ContinuousReader
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.continuous.query.writer import ContinuousWriter

NO_SESSION: Any = None
NOTHING: Any = None
FRAME = ContinuousFrame(NO_SESSION, FilesTable(), {}, SCHEMA)
MADE: dict[Any, Any] = {
    ContinuousReader: continuous.read(NO_SESSION),
    ContinuousFrame: FRAME,
    ContinuousGroups: FRAME.withWatermark("n", "1 second").groupBy(continuous.window("n", "1 second"), "file"),
    ContinuousWriter: FRAME.writeStream,
}


def names_of(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_completion_offers_each_verb_once_and_nothing_of_the_plan() -> None:
    verbs = {"dropDuplicatesWithinWatermark", "groupBy", "mapBatches", "mapInArrow", "mapWithState"}
    offered = {name for name in dir(FRAME) if not name.startswith("_")}
    assert offered == verbs | {"schema", "select", "where", "withWatermark", "writeStream"}
    # Names that are not offered are there.
    assert FRAME.read_schema == SCHEMA


@pytest.mark.parametrize(
    ("ours", "sparks"),
    [(ContinuousReader, DataStreamReader), (ContinuousWriter, DataStreamWriter), (ContinuousGroups, GroupedData)],
)
def test_every_name_of_sparks_is_there_or_has_a_hint(ours: Any, sparks: type) -> None:
    missing = names_of(sparks) - names_of(ours)
    assert missing - set(ours._hints) == set()


def test_handle_has_every_name_of_sparks() -> None:
    assert names_of(StreamingQuery) - names_of(ContinuousQuery) == set()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in MADE for name in kind._hints])
def test_guess_gets_an_error_with_a_hint(kind: Any, name: str) -> None:
    assert name not in names_of(kind)
    with pytest.raises(AttributeError) as raised:
        getattr(MADE[kind], name)
    hint = kind._hints[name]
    assert str(raised.value) == f"'{kind.__name__}' object has no attribute '{name}'. {hint}"
    assert raised.value.name == name
    assert hint[0].isupper()
    assert hint.endswith(".")


def test_hints_name_what_is_there() -> None:
    assert ContinuousFrame._hints["write"] == "Use writeStream."
    for kind, guesses in ((kind, kind._hints) for kind in MADE):
        for hint in guesses.values():
            said = hint.removeprefix("Use ").removesuffix(".")
            if said.replace("_", "").isidentifier():
                assert said in dir(kind) or said in vars(MADE[kind]), hint


def test_other_names_have_the_usual_error() -> None:
    with pytest.raises(AttributeError, match=r"^'ContinuousFrame' object has no attribute 'nonsense'$"):
        FRAME.nonsense  # type: ignore[attr-defined]  # noqa: B018 - the look-up is the test
    assert not hasattr(FRAME, "nonsense")
    # Copying and pickling look for names that are not there.
    assert pickle.loads(pickle.dumps(FRAME)).schema == SCHEMA  # noqa: S301 - our own
