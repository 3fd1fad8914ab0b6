"""The timers of one key group: all of them in their order, however few are in memory."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from pyspark_kafka.continuous.state.timers import NearTimers, first_after, key_of, time_of, timer_of
from pyspark_kafka.continuous.state.times import MAX_TIME_MS, MIN_TIME_MS


def test_timers_sort_by_time_then_by_key() -> None:
    timers = [(MIN_TIME_MS, b"z"), (-1, b""), (0, b"b"), (7, b"a"), (7, b"aa"), (256, b""), (MAX_TIME_MS, b"x")]
    texts = [timer_of(*each) for each in timers]
    assert texts == sorted(texts)
    assert [(time_of(each), key_of(each)) for each in texts] == timers


@pytest.mark.parametrize("time_ms", [MIN_TIME_MS, -1, 0, 7, MAX_TIME_MS - 1])
def test_end_of_a_time_is_after_its_timers_and_before_later_ones(time_ms: int) -> None:
    assert timer_of(time_ms, b"\xff" * 9) < first_after(time_ms) <= timer_of(time_ms + 1, b"")


class Store:
    """All timers, as the store has them."""

    def __init__(self, maximum: int, max_bytes: int = 10**9) -> None:
        self.timers: set[bytes] = set()
        self.removed: set[bytes] = set()
        self.read = 0
        self.near = NearTimers(self.in_order, maximum, max_bytes)

    def in_order(self, first: bytes) -> Iterator[bytes]:
        for timer in sorted(each for each in self.timers | self.removed if each >= first):
            # Also of a timer that was removed.
            self.read += 1
            if timer in self.timers:
                yield timer

    def add(self, *times: int, key: bytes = b"k") -> None:
        timers = [timer_of(each, key) for each in times]
        self.timers.update(timers)
        self.near.add_timers(timers)

    def remove(self, *times: int, key: bytes = b"k") -> None:
        timers = [timer_of(each, key) for each in times]
        self.timers.difference_update(timers)
        self.near.remove(timers)

    def take(self, time_ms: int, limit: int = 100, max_bytes: int = 10**9) -> list[int]:
        taken = self.near.take_due(first_after(time_ms), limit, max_bytes)
        self.timers.difference_update(taken)
        self.removed.update(taken)
        return [time_of(each) for each in taken]


def test_timers_are_taken_up_to_a_time_in_their_order() -> None:
    store = Store(10)
    store.add(5, 3, 9, 3)
    assert store.near.first() == timer_of(3, b"k")
    assert store.take(5) == [3, 5]
    store.add(1)
    store.remove(9, 77)
    assert store.take(100) == [1]
    assert store.take(100) == []


def test_timers_are_taken_in_parts() -> None:
    store = Store(3)
    store.add(*range(10))
    assert [store.take(100, 4) for _ in range(4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], []]


def test_timers_of_a_store_with_many_are_read_a_part_at_a_time() -> None:
    store = Store(4)
    store.timers.update(timer_of(each, b"k") for each in range(1_000))
    assert store.near.first() == timer_of(0, b"k")
    assert store.read == 5
    # Later ones stay in the store.
    store.add(2_000)
    assert len(store.near._timers) == 4
    for each in range(40):
        assert store.take(each) == [each]
    assert store.read <= 6 * 11


def test_memory_of_timers_that_are_set_and_removed_is_bounded() -> None:
    store = Store(4)
    assert store.take(0) == []
    for each in range(1_000):
        store.add(each + 1)
        store.remove(each)
        assert len(store.near._heap) <= 20
    store.add(*range(2_000, 3_000))
    assert len(store.near._timers) <= 8
    assert store.take(5_000, 5_000) == [1_000, *range(2_000, 3_000)]


def test_memory_of_timers_with_large_keys_is_bounded() -> None:
    store, key = Store(1_000, max_bytes=10_000), b"k" * 1_000
    assert store.take(0) == []
    for each in range(100):
        store.add(each + 1, key=key)
        store.remove(each, key=key)
        assert sum(map(len, store.near._heap)) <= 30_000
    store.add(*range(200, 300), key=key)
    assert sum(map(len, store.near._timers)) <= 20_000
    assert store.take(500) == [100, *range(200, 299)]
    # Read from the store.
    assert sum(map(len, store.near._timers)) <= 10_000
    assert store.take(500) == [299]


def test_timer_that_is_larger_than_the_memory_is_taken_in_its_turn() -> None:
    store, key = Store(10, max_bytes=100), b"k" * 1_000
    store.add(3, 5, key=key)
    store.add(1, 4)
    assert store.take(1) == [1]
    store.add(2, 6)
    assert store.take(100, max_bytes=500) == [2, 3]
    assert store.take(100, max_bytes=500) == [4, 5]
    assert store.take(100, max_bytes=500) == [6]


@pytest.mark.parametrize("seed", range(30))
def test_no_timer_is_lost_or_comes_twice_whatever_is_in_memory(seed: int) -> None:
    rng = random.Random(seed)
    # A timer has 9 bytes.
    store = Store(rng.choice((1, 2, 5)), rng.choice((1, 20, 1_000)))
    now = 0
    for _ in range(300):
        times = [now + rng.randrange(-3, 30) for _ in range(rng.randrange(4))]
        choice = rng.randrange(3)
        if choice == 0:
            store.add(*times)
        elif choice == 1:
            store.remove(*times)
        else:
            now += rng.randrange(8)
            due = sorted(time_of(each) for each in store.timers if time_of(each) <= now)
            limit = rng.choice((1, 3, 1_000))
            assert store.near.first() == min(store.timers, default=None)
            end = first_after(now + rng.randrange(30))
            assert store.near.last(end) == max((each for each in store.timers if each < end), default=None)
            assert store.take(now, limit) == due[:limit]
