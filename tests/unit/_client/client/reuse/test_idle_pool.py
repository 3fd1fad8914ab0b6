"""The pool of idle clients and producers: one user at a time, its bounds, idle time, forks, and what it closes."""

from __future__ import annotations

import threading

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka._client.client.reuse.idle_pool import IDLE_SECONDS, IdlePool

PARENT, CHILD = 100, 200


class Value:
    """Something to keep; counts how often it was closed."""

    def __init__(self, created_in: int = PARENT) -> None:
        self.created_in = created_in
        self.closings = 0

    def close(self) -> None:
        self.closings += 1


class World:
    """A clock that a test moves, and the process that it runs in."""

    def __init__(self) -> None:
        self.now = 0.0
        self.process = PARENT

    def pool(self, *, max_values: int | None = None, max_per_key: int | None = None) -> IdlePool[str, Value]:
        return IdlePool(
            max_values=max_values, max_per_key=max_per_key, clock=lambda: self.now, process_id=lambda: self.process
        )


@pytest.fixture
def world() -> World:
    return World()


def test_pool_is_empty_at_first(world: World) -> None:
    pool = world.pool()
    assert pool.take_value("a") is None
    assert len(pool) == 0


def test_value_is_lent_to_one_user_at_a_time(world: World) -> None:
    pool, value = world.pool(), Value()
    pool.put_back("a", value)
    assert len(pool) == 1
    assert pool.take_value("a") is value
    assert pool.take_value("a") is None
    assert value.closings == 0


def test_value_is_lent_under_its_own_key_only(world: World) -> None:
    pool, value = world.pool(), Value()
    pool.put_back("a", value)
    assert pool.take_value("b") is None
    assert pool.take_value("a") is value


def test_value_that_was_used_last_is_lent_first(world: World) -> None:
    pool, first, second = world.pool(), Value(), Value()
    pool.put_back("a", first)
    pool.put_back("a", second)
    assert pool.take_value("a") is second
    assert pool.take_value("a") is first


def test_value_is_lent_as_long_as_its_idle_time_is_not_over(world: World) -> None:
    pool, value = world.pool(), Value()
    pool.put_back("a", value)
    world.now = IDLE_SECONDS
    assert pool.take_value("a") is value


def test_value_is_closed_at_the_next_taking_of_any_key_when_it_was_idle_too_long(world: World) -> None:
    pool, old, young = world.pool(), Value(), Value()
    pool.put_back("a", old)
    world.now = IDLE_SECONDS
    pool.put_back("a", young)
    world.now = IDLE_SECONDS + 1
    assert pool.take_value("b") is None
    assert (old.closings, young.closings) == (1, 0)
    assert pool.take_value("a") is young


def test_idle_time_begins_again_when_a_value_comes_back(world: World) -> None:
    pool, value = world.pool(), Value()
    pool.put_back("a", value)
    world.now = IDLE_SECONDS
    assert pool.take_value("a") is value
    pool.put_back("a", value)
    world.now = 2 * IDLE_SECONDS
    assert pool.take_value("a") is value


def test_bound_of_a_key_closes_the_value_of_it_that_is_idle_longest(world: World) -> None:
    pool, other, values = world.pool(max_per_key=2), Value(), [Value(), Value(), Value()]
    pool.put_back("b", other)
    for value in values:
        pool.put_back("a", value)
    assert [value.closings for value in [other, *values]] == [0, 1, 0, 0]
    assert len(pool) == 3


def test_bound_of_all_closes_the_value_that_is_idle_longest(world: World) -> None:
    pool, values = world.pool(max_values=2), [Value(), Value(), Value()]
    for key, value in zip("abc", values, strict=True):
        pool.put_back(key, value)
    assert [value.closings for value in values] == [1, 0, 0]
    assert pool.take_value("a") is None
    assert pool.take_value("c") is values[2]


def test_values_are_all_closed_when_the_pool_is_which_can_be_used_again(world: World) -> None:
    pool, values = world.pool(), [Value(), Value()]
    for key, value in zip("ab", values, strict=True):
        pool.put_back(key, value)
    pool.close()
    assert [value.closings for value in values] == [1, 1]
    assert len(pool) == 0
    pool.put_back("a", values[0])
    assert pool.take_value("a") is values[0]


def test_forked_child_starts_empty_and_closes_its_copies(world: World) -> None:
    pool, inherited = world.pool(), Value()
    pool.put_back("a", inherited)
    world.process = CHILD
    assert len(pool) == 0
    assert inherited.closings == 1
    assert pool.take_value("a") is None
    own = Value(CHILD)
    pool.put_back("a", own)
    assert pool.take_value("a") is own


def test_forked_child_is_not_held_up_by_a_lock_of_its_parent(world: World) -> None:
    pool = world.pool()
    pool.put_back("a", Value())
    pool._lock.acquire()
    world.process = CHILD
    done = threading.Thread(target=pool.take_value, args=("a",), daemon=True)
    done.start()
    done.join(PATIENCE_S)
    assert not done.is_alive()


def test_value_that_was_lent_before_a_fork_is_closed_when_it_comes_back_in_the_child(world: World) -> None:
    pool, value = world.pool(), Value()
    world.process = CHILD
    pool.put_back("a", value)
    assert value.closings == 1
    assert len(pool) == 0
