"""The question whether input partitions have changed: asked until it is so, beside the thread of the query."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka._base.interrupt import pause
from pyspark_kafka.continuous.run import partition_watch
from pyspark_kafka.continuous.run.partition_watch import PartitionWatch


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_watch, "_EVERY_SECONDS", 0.001)


def watch_of(ask: Callable[[], bool]) -> tuple[PartitionWatch, queue.Queue[Any]]:
    said: queue.Queue[Any] = queue.Queue()
    return PartitionWatch(ask, lambda: None, lambda: said.put("changed"), said.put), said


def test_watch_asks_until_partitions_have_changed() -> None:
    answers = [False, False, True]
    watch, said = watch_of(lambda: answers.pop(0))
    watch.start()
    watch.start()
    assert said.get(timeout=PATIENCE_S) == "changed"
    watch.close()
    assert answers == []
    assert said.empty()


def test_watch_hands_on_what_the_question_raised() -> None:
    error = OSError("no such broker")

    def ask() -> bool:
        raise error

    watch, said = watch_of(ask)
    watch.start()
    assert said.get(timeout=PATIENCE_S) is error
    watch.close()


def test_watch_does_not_hold_up_its_caller_and_ends_with_its_question() -> None:
    asked, answered, closed = threading.Event(), threading.Event(), threading.Event()

    def ask() -> bool:
        asked.set()
        return not answered.wait(30)

    watch, said = watch_of(ask)
    watch.start()
    assert asked.wait(PATIENCE_S)

    def close() -> None:
        watch.close()
        closed.set()

    closer = threading.Thread(target=close)
    closer.start()
    # The source must not be planned while a question is open.
    assert not closed.wait(0.05)
    answered.set()
    closer.join(PATIENCE_S)
    assert closed.is_set()
    assert said.empty()


def test_watch_looks_who_owns_the_checkpoint_also_if_there_is_nothing_to_ask() -> None:
    error = OSError("taken over")
    said: queue.Queue[Any] = queue.Queue()

    def check() -> None:
        raise error

    watch = PartitionWatch(None, check, lambda: said.put("changed"), said.put)
    watch.start()
    assert said.get(timeout=PATIENCE_S) is error
    watch.close()


def test_watch_returns_the_open_thread_if_the_source_does_not_respond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_watch, "_END_SECONDS", 0.01)
    asked, answered = threading.Event(), threading.Event()

    def ask() -> bool:
        asked.set()
        return not answered.wait(30)

    watch, _ = watch_of(ask)
    watch.start()
    assert asked.wait(PATIENCE_S)
    thread = watch.close()
    assert thread is not None
    answered.set()
    thread.join(PATIENCE_S)
    assert watch.close() is None


def test_question_that_is_tried_again_ends_with_its_watch() -> None:
    asked, ended = threading.Event(), threading.Event()

    def ask() -> bool:
        asked.set()
        if pause(30):
            ended.set()
        return False

    watch, _ = watch_of(ask)
    watch.start()
    assert asked.wait(PATIENCE_S)
    assert watch.close() is None
    assert ended.is_set()


def test_watch_that_was_not_started_ends_at_once() -> None:
    watch_of(lambda: True)[0].close()


def test_watch_finds_the_end_when_somebody_waits_for_rows() -> None:
    said: queue.Queue[Any] = queue.Queue()
    watch = PartitionWatch(lambda: False, lambda: None, lambda: None, said.put, lambda: said.put("end"))
    watch.start()
    for _ in range(3):
        watch.want_end()
        assert said.get(timeout=PATIENCE_S) == "end"
    watch.close()
    assert said.empty()


def test_watch_finds_the_end_also_if_the_call_comes_as_a_wait_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every wait times out immediately, so that most calls come between two waits.
    monkeypatch.setattr(partition_watch, "_EVERY_SECONDS", 0.0)
    found: queue.Queue[Any] = queue.Queue()
    watch = PartitionWatch(lambda: False, lambda: None, lambda: None, found.put, lambda: found.put("end"))
    watch.start()
    try:
        for _ in range(500):
            watch.want_end()
            assert found.get(timeout=PATIENCE_S) == "end"
    finally:
        watch.close()
    assert found.empty()


def test_calls_for_the_end_do_not_keep_the_watch_from_its_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_watch, "_EVERY_SECONDS", 0.05)
    asked = threading.Event()

    def ask() -> bool:
        asked.set()
        return False

    def call_again() -> None:
        watch.want_end()

    watch = PartitionWatch(ask, lambda: None, lambda: None, lambda _: None, call_again)
    watch.start()
    watch.want_end()
    assert asked.wait(PATIENCE_S)
    watch.close()
