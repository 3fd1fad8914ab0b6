"""Which partition each row goes to."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from pyspark_kafka._connector.sink.executor.partitioner import Partitioner, extremes


def java_partition(key: bytes, partition_count: int) -> int:
    """Java's choice, by another implementation of its hash than ours."""
    positive: int = murmur2(key) & 0x7FFFFFFF
    return positive % partition_count


def first(_: int) -> int:
    return 0


def chosen_by(partitioner: Partitioner, keys: list[bytes | None] | None, chosen: list[int | None] | None) -> list[int]:
    rows = len(keys or chosen or ())
    found = partitioner.partitions(
        rows,
        rows * 10,
        None if keys is None else pa.array(keys, pa.binary()),
        None if chosen is None else pa.array(chosen, pa.int32()),
    )
    assert found.type == pa.int32()
    assert found.null_count == 0
    partitions: list[int] = found.to_pylist()
    return partitions


def runs(partitions: list[int]) -> list[tuple[int, int]]:
    """Return each run of one partition with its length."""
    return [(partition, len(list(rows))) for partition, rows in groupby(partitions)]


def test_keys_go_where_javas_hash_says() -> None:
    keys: list[bytes | None] = [b"", b"a", b"key-17", "ü".encode(), b"\x00" * 33]
    assert chosen_by(Partitioner(7, 100, first), keys, None) == [java_partition(key or b"", 7) for key in keys]


def test_text_keys_are_hashed_as_their_bytes() -> None:
    keys = ["a", "ü"]
    found = Partitioner(11, 100, first).partitions(2, 20, pa.array(keys), None)
    assert found.to_pylist() == [java_partition(key.encode(), 11) for key in keys]


def test_chosen_partition_takes_precedence_over_the_key_and_the_key_over_the_sticky_partition() -> None:
    keys: list[bytes | None] = [b"a", b"a", None, None]
    chosen: list[int | None] = [3, None, 4, None]
    assert chosen_by(Partitioner(5, 100, lambda _: 2), keys, chosen) == [3, java_partition(b"a", 5), 4, 2]


def test_a_choice_that_does_not_exist_is_left_for_the_writer_to_refuse() -> None:
    assert chosen_by(Partitioner(2, 100, first), None, [9, -1]) == [9, -1]


@pytest.mark.parametrize("keys", [None, [None] * 25])
def test_rows_without_a_key_fill_one_partition_after_the_other(keys: list[bytes | None] | None) -> None:
    partitioner = Partitioner(3, 100, lambda _: 1)
    found = partitioner.partitions(25, 250, None if keys is None else pa.array(keys, pa.binary()), None)
    assert runs(found.to_pylist()) == [(1, 10), (2, 10), (0, 5)]
    # A partition that is half full is filled by the next rows.
    assert runs(partitioner.partitions(10, 100, None, None).to_pylist()) == [(0, 5), (1, 5)]


def test_rows_larger_than_a_run_have_one_each() -> None:
    found = Partitioner(3, 100, first).partitions(5, 5_000, None, None)
    assert found.to_pylist() == [0, 1, 2, 0, 1]


def test_rows_without_bytes_count_towards_the_sticky_partition() -> None:
    partitioner = Partitioner(2, 4, first)
    assert partitioner.partitions(10, 0, None, None).to_pylist() == [0, 0, 0, 0, 1, 1, 1, 1, 0, 0]
    assert partitioner.partitions(0, 0, None, None).to_pylist() == []


def test_tasks_begin_with_different_partitions() -> None:
    begins = {Partitioner(8, 100).partitions(1, 10, None, None)[0].as_py() for _ in range(200)}
    assert len(begins) > 1
    assert begins <= set(range(8))


@given(
    partition_count=st.integers(1, 9),
    sticky_bytes=st.integers(1, 300),
    batches=st.lists(
        st.lists(st.tuples(st.none() | st.binary(max_size=8), st.none() | st.integers(0, 8)), max_size=40), max_size=5
    ),
    row_bytes=st.integers(0, 50),
    has=st.tuples(st.booleans(), st.booleans()),
)
def test_each_row_gets_exactly_one_partition_of_the_topic(
    partition_count: int,
    sticky_bytes: int,
    batches: list[list[tuple[bytes | None, int | None]]],
    row_bytes: int,
    has: tuple[bool, bool],
) -> None:
    partitioner = Partitioner(partition_count, sticky_bytes, first)
    sticky: list[int] = []
    for rows in batches:
        keys = [key if has[0] else None for key, _ in rows]
        chosen = [None if own is None or not has[1] else own % partition_count for _, own in rows]
        arrays: list[Any] = [
            pa.array(keys, pa.binary()) if has[0] else None,
            pa.array(chosen, pa.int32()) if has[1] else None,
        ]
        found = partitioner.partitions(len(rows), len(rows) * row_bytes, *arrays).to_pylist()
        assert len(found) == len(rows)
        for key, own, partition in zip(keys, chosen, found, strict=True):
            if own is not None:
                assert partition == own
            elif key is not None:
                assert partition == java_partition(key, partition_count)
            else:
                sticky.append(partition)
    # Sticky rows go round: from one partition to the one after it.
    order = [partition for partition, _ in groupby(sticky)]
    assert all(0 <= partition < partition_count for partition in order)


def test_rows_without_a_key_leave_out_partitions_that_nobody_leads() -> None:
    led = [1, 3]
    partitioner = Partitioner(5, 20, first, lambda: led)
    assert chosen_by(partitioner, None, [None] * 8) == [1, 1, 3, 3, 1, 1, 3, 3]
    # A broker is lost, and another one is back.
    led[:] = [0, 3, 4]
    assert chosen_by(partitioner, None, [None] * 6) == [3, 3, 4, 4, 0, 0]
    # None is led: it may be a matter of seconds.
    led[:] = []
    assert set(chosen_by(partitioner, None, [None] * 10)) == {0, 1, 2, 3, 4}


def test_keys_and_columns_choose_also_what_nobody_leads() -> None:
    partitioner = Partitioner(4, 20, first, lambda: [1])
    assert chosen_by(partitioner, None, [0, 2, None, 3]) == [0, 2, 1, 3]
    assert chosen_by(partitioner, [b"a", b"b"], None) == [java_partition(b"a", 4), java_partition(b"b", 4)]


@given(
    partitions=st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=20),
    repeated=st.sampled_from([1, 40]),
    skipped=st.integers(0, 5),
)
def test_extremes_are_those_of_the_rows_that_have_a_partition(
    partitions: list[int | None], repeated: int, skipped: int
) -> None:
    column = pa.array([*[7] * skipped, *partitions * repeated], pa.int32()).slice(skipped)
    chosen = [partition for partition in partitions if partition is not None]
    assert extremes(column) == ((min(chosen), max(chosen)) if chosen else (-1, -1))
