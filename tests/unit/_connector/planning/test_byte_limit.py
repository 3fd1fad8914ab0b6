"""How far a batch of a limited number of bytes goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.planning import byte_limit

A, B, C = (TopicPartition("t", number) for number in range(3))


def test_logs_within_the_limit_are_taken_whole() -> None:
    assert byte_limit({A: 50}, {A: 0}, {A: 100}, {A: 10_000}, 5_000) == {A: 100}
    assert byte_limit({A: 50}, {A: 0}, {A: 100}, {A: 10_000}, 4_999) == {A: 99}


def test_the_limit_is_shared_by_the_bytes_that_wait() -> None:
    # 100 B an offset in one, 10 B in the other, 100 offsets waiting in each: 11,000 B, of which a tenth is taken.
    limited = byte_limit({A: 0, B: 900}, {A: 0, B: 0}, {A: 100, B: 1000}, {A: 10_000, B: 10_000}, 1_100)
    assert limited == {A: 10, B: 910}


def test_a_new_partition_begins_at_its_first_offset() -> None:
    assert byte_limit({}, {A: 40}, {A: 60}, {A: 2_000}, 1_000) == {A: 50}


def test_every_partition_with_anything_waiting_moves_on() -> None:
    assert byte_limit({A: 0, B: 0}, {A: 0, B: 0}, {A: 10, B: 10}, {A: 10**12, B: 10**12}, 1) == {A: 1, B: 1}


def test_log_without_a_size_is_taken_whole() -> None:
    latest = {A: 1000, B: 10, C: 7}
    limited = byte_limit({A: 0, B: 0, C: 9}, {A: 0, B: 0, C: 0}, latest, {A: 100_000, B: 0}, 50_000)
    assert limited == {A: 500, B: 10, C: 7}


def test_byte_limit_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 byte, got 0"):
        byte_limit({}, {}, {}, {}, 0)


LOG = st.tuples(
    st.integers(0, 2**62), st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 2**50)
)  # first offset, offsets before the position, offsets waiting, bytes


@given(st.dictionaries(st.sampled_from([A, B, C]), LOG), st.integers(1, 2**60))
def test_a_limited_batch_moves_on_stays_within_the_log_and_near_the_limit(
    logs: dict[TopicPartition, tuple[int, int, int, int]], limit: int
) -> None:
    earliest = {tp: first for tp, (first, _, _, _) in logs.items()}
    start = {tp: first + before for tp, (first, before, _, _) in logs.items()}
    latest = {tp: first + before + waiting for tp, (first, before, waiting, _) in logs.items()}
    sizes = {tp: size for tp, (_, _, _, size) in logs.items()}
    ends = byte_limit(start, earliest, latest, sizes, limit)
    assert ends.keys() == latest.keys()
    taken = 0.0
    for topic_partition, (_, before, waiting, size) in logs.items():
        assert start[topic_partition] <= ends[topic_partition] <= latest[topic_partition]
        assert ends[topic_partition] > start[topic_partition] or waiting == 0
        taken += (ends[topic_partition] - start[topic_partition] - 1) * size / max(1, before + waiting)
    # One offset of each partition may go beyond it.
    assert taken <= limit * 1.000001
