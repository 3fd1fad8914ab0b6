"""The functions of a query over iterators of Arrow batches."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyspark_kafka.continuous.task.stages import MapBatches, MapInArrow, Select, Stages, Where
from pyspark_kafka.errors import ContinuousQueryError, SchemaError

SCHEMA = pa.schema([("n", pa.int64())])
TWO = pa.schema([("n", pa.int64()), ("text", pa.string())])


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})


def result(stages: Stages, *batches: pa.RecordBatch) -> list[list[int]]:
    return [batch.column("n").to_pylist() for batch in stages(iter(batches))]


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.set_column(0, "n", pc.multiply(batch.column(0), 2))


def even(batch: pa.RecordBatch) -> pa.RecordBatch | None:
    kept = batch.filter(pc.equal(pc.bit_wise_and(batch.column(0), 1), 0))
    return kept if kept.num_rows else None


def test_query_without_functions_returns_the_batches_as_they_are() -> None:
    assert result(Stages(()), rows(1), rows(2, 3)) == [[1], [2, 3]]


def test_functions_are_applied_in_order() -> None:
    stages = Stages((MapBatches(even, SCHEMA), MapInArrow(doubled, SCHEMA), Where(pc.field("n") > 4)))
    assert result(stages, rows(1, 2), rows(3), rows(4, 6)) == [[8, 12]]


def test_select_keeps_columns_in_its_order() -> None:
    batch = pa.RecordBatch.from_pydict({"n": [1], "text": ["a"]}, schema=TWO)
    (selected,) = Stages((Select(("text", "n")),))(iter([batch]))
    assert selected.schema.names == ["text", "n"]


def test_stages_pickle_with_their_functions() -> None:
    stages = pickle.loads(pickle.dumps(Stages((MapInArrow(doubled, SCHEMA), Where(pc.field("n") > 2)))))  # noqa: S301 - our own bytes
    assert result(stages, rows(1, 2)) == [[4]]


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (None, "returned None"),
        ([1], "returned a list"),
        (pa.table({"n": [1]}), "returned a Table"),
        (rows(1), "n int64"),
    ],
    ids=["None", "list", "table", "other columns"],
)
def test_function_that_yields_something_else_is_named(made: object, problem: str) -> None:
    def wrong(batches: Iterator[pa.RecordBatch]) -> Iterator[object]:
        for _ in batches:
            yield made

    with pytest.raises(
        SchemaError, match=f"Function .*wrong {problem}|Function .*wrong returned the columns {problem}"
    ):
        list(Stages((MapInArrow(wrong, TWO),))(iter([rows(1)])))


def held_back(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return everything at the end of the epoch, as a sort does."""
    yield from list(batches)


def first_only(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield next(batches)


def first_two(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from itertools.islice(batches, 2)


@pytest.mark.parametrize("early", [first_only, first_two])
@pytest.mark.parametrize("before", [(), (held_back,), (doubled,), (held_back, held_back)])
@pytest.mark.parametrize("after", [(), (held_back,)])
def test_function_that_returns_early_is_an_error_whatever_stands_before_and_after_it(
    early: Any, before: tuple[Any, ...], after: tuple[Any, ...]
) -> None:
    stages = Stages([MapInArrow(function, SCHEMA) for function in (*before, early, *after)])
    with pytest.raises(ContinuousQueryError, match=f"Function {early.__name__} returned before the input"):
        list(stages(iter([rows(1), rows(2), rows(3)])))


def test_function_that_reads_all_its_input_may_return_less() -> None:
    def none(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from ()

    assert result(Stages((MapInArrow(held_back, SCHEMA), MapInArrow(none, SCHEMA))), rows(1), rows(2)) == []
