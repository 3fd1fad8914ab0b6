"""Those who wait until rows are committed, and what the source says of where these end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from pyspark_kafka.continuous.run.waits import RowWaits

_SECONDS = 20


class Waiting:
    """Positions are numbers here; those who wait have a thread each."""

    def __init__(self) -> None:
        given: Any = lambda position, target: position >= target  # noqa: E731 - offsets elsewhere
        self.waits = RowWaits(given)
        self.pool = ThreadPoolExecutor()
        self.ended = False

    def needs_target(self) -> bool:
        return self.waits.need_target

    def come(self) -> Future[None]:
        """Return when somebody waits."""
        known = threading.Event()
        waiting = self.pool.submit(self.waits.wait, lambda: not self.ended, known.set)
        assert known.wait(_SECONDS)
        return waiting


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    it = Waiting()
    yield it
    it.ended = True
    it.waits.wake()
    it.pool.shutdown()


def test_wait_ends_when_its_rows_are_committed(waiting: Waiting) -> None:
    first = waiting.come()
    assert waiting.waits.need_target
    waiting.waits.begin_poll()
    number: Any = 7
    waiting.waits.set_target(number, number - 1)
    assert not wait([first], 0.3).done
    waiting.waits.committed(number, None)
    first.result(_SECONDS)


def test_no_epoch_is_to_end_for_a_wait_that_is_over(waiting: Waiting) -> None:
    first = waiting.come()
    assert waiting.waits.end_wanted.wait(_SECONDS)
    waiting.waits.begin_poll()
    number: Any = 7
    waiting.waits.set_target(number, number)
    # Before the call wakes up: the thread of the query continues immediately.
    assert not waiting.waits.end_wanted.is_set()
    first.result(_SECONDS)
    assert not waiting.waits.end_wanted.is_set()


def test_no_epoch_is_to_end_for_a_wait_whose_poll_has_failed(waiting: Waiting) -> None:
    first = waiting.come()
    assert waiting.waits.end_wanted.wait(_SECONDS)
    waiting.waits.begin_poll()
    waiting.waits.fail_poll(OSError("no broker"))
    assert not waiting.waits.end_wanted.is_set()
    with pytest.raises(OSError, match="no broker"):
        first.result(_SECONDS)


def test_poll_sets_no_target_for_calls_after_its_start(waiting: Waiting) -> None:
    first = waiting.come()
    waiting.waits.begin_poll()
    second = waiting.come()
    number: Any = 7
    waiting.waits.set_target(number, number)
    first.result(_SECONDS)
    assert not wait([second], 0.3).done
    assert waiting.waits.need_target


def test_failed_poll_is_raised_by_the_calls_before_its_start(waiting: Waiting) -> None:
    first = waiting.come()
    waiting.waits.begin_poll()
    second = waiting.come()
    waiting.waits.fail_poll(OSError("no broker"))
    with pytest.raises(OSError, match="no broker"):
        first.result(_SECONDS)
    assert not wait([second], 0.3).done


def test_wait_that_is_interrupted_is_forgotten(waiting: Waiting) -> None:
    def interrupted() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        waiting.waits.wait(interrupted, lambda: None)
    assert not waiting.waits.are_waiting
    assert not waiting.waits.need_target


def test_wait_for_rows_that_are_gone_ends_after_the_query_was_planned_again(waiting: Waiting) -> None:
    """The topic was deleted, or recreated and is shorter: nobody reaches the former end."""
    first = waiting.come()
    end: Any = 7
    waiting.waits.begin_poll()
    waiting.waits.set_target(end, end - 4)
    assert not waiting.needs_target()
    waiting.waits.poll_again()
    assert waiting.needs_target()
    waiting.waits.committed(end, None)
    assert not wait([first], 0.3).done, "the former target does not count any more"
    waiting.waits.begin_poll()
    waiting.waits.set_target(end - 4, end - 4)
    first.result(_SECONDS)


def test_source_is_asked_again_if_lanes_find_no_rows_below_a_target(
    waiting: Waiting,
) -> None:
    first = waiting.come()
    end: Any = 7
    waiting.waits.begin_poll()
    waiting.waits.set_target(end, end - 4)
    asked = time.monotonic()
    waiting.waits.committed(end - 4, asked + 1)
    assert not waiting.needs_target(), "rows may just not have arrived"
    waiting.waits.committed(end - 4, None)
    assert not waiting.needs_target(), "there were rows"
    waiting.waits.committed(end - 4, asked + 3)
    assert waiting.needs_target()
    waiting.waits.begin_poll()
    waiting.waits.set_target(end - 4, end - 4)
    first.result(_SECONDS)


def test_wait_without_a_target_ends_with_an_idle_epoch_that_began_after_the_call(waiting: Waiting) -> None:
    before = time.monotonic()
    first = waiting.come()
    waiting.waits.begin_poll()
    position: Any = 7
    waiting.waits.set_target(None, position)
    waiting.waits.committed(position, before)
    assert not wait([first], 0.3).done, "rows may have come after that epoch had begun"
    waiting.waits.committed(position, time.monotonic())
    first.result(_SECONDS)
