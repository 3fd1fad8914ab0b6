"""A thread that works on the newest value it was given."""

from __future__ import annotations

import threading

import pytest

from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka._connector.source.driver.reporting.latest_value_worker import LatestValueWorker

LONG = 60.0


class Work:
    """Notes what it got; each call waits until it is let through."""

    def __init__(self) -> None:
        self.begun, self.passed = threading.Semaphore(0), threading.Semaphore(0)
        self.done: list[int] = []

    def __call__(self, value: int) -> None:
        self.begun.release()
        assert self.passed.acquire(timeout=LONG)
        self.done.append(value)


def test_newest_value_is_worked_on_and_older_ones_are_dropped() -> None:
    work = Work()
    thread = LatestValueWorker("test", work)
    thread.offer(1)
    assert work.begun.acquire(timeout=LONG)
    for value in (2, 3, 4):
        thread.offer(value)
    work.passed.release(2)
    assert thread.flush(LONG)
    assert work.done == [1, 4]


def test_flush_gives_up_after_its_time_and_the_work_goes_on() -> None:
    work = Work()
    thread = LatestValueWorker("test", work)
    thread.offer(1)
    assert work.begun.acquire(timeout=LONG)
    assert not thread.flush(0.01)
    work.passed.release()
    assert thread.flush(LONG)
    assert work.done == [1]


def test_flush_has_nothing_to_wait_for_before_the_first_value() -> None:
    assert LatestValueWorker("test", print).flush(0.0)


def test_pause_holds_a_value_back_until_a_flush() -> None:
    done: list[int] = []
    thread = LatestValueWorker[int]("test", done.append, pause_s=3_600.0)
    thread.offer(1)
    eventually(lambda: done == [1])
    thread.offer(2)
    thread.offer(3)
    assert done == [1]
    assert thread.flush(LONG)
    assert done == [1, 3]


def test_error_of_the_work_is_logged_and_the_next_value_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []

    def work(value: int) -> None:
        if value == 0:
            raise ValueError("no zero")
        done.append(value)

    thread = LatestValueWorker("test", work)
    thread.offer(0)
    assert thread.flush(LONG)
    thread.offer(1)
    assert thread.flush(LONG)
    assert done == [1]
    assert "the query continues" in caplog.text
    assert "no zero" in caplog.text


def test_thread_that_gets_nothing_ends_and_the_next_value_starts_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_kafka._connector.source.driver.reporting.latest_value_worker._IDLE_S", 0.01)
    done: list[int] = []
    thread = LatestValueWorker[int]("idle ends", done.append)
    for value in (1, 2):
        thread.offer(value)
        assert thread.flush(LONG)
        eventually(lambda: "idle ends" not in {each.name for each in threading.enumerate()})
    assert done == [1, 2]


def test_fork_starts_a_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    monkeypatch.setattr("pyspark_kafka._connector.source.driver.reporting.latest_value_worker._IDLE_S", 0.01)
    thread = LatestValueWorker[int]("forgotten in a fork", done.append)
    thread.offer(1)
    assert thread.flush(LONG)
    eventually(lambda: "forgotten in a fork" not in {each.name for each in threading.enumerate()})
    # As a child sees it: another process id, and no thread.
    monkeypatch.setattr("pyspark_kafka._connector.source.driver.reporting.latest_value_worker.os.getpid", lambda: -1)
    assert thread.flush(0.0)
    thread.offer(2)
    assert thread.flush(LONG)
    assert done == [1, 2]


def test_value_that_waits_is_dropped_at_the_end() -> None:
    seen: list[int] = []
    begun, resume = threading.Event(), threading.Event()

    def work(value: int) -> None:
        seen.append(value)
        begun.set()
        assert resume.wait(PATIENCE_S)

    values = LatestValueWorker("test", work)
    values.offer(1)
    assert begun.wait(PATIENCE_S)
    values.offer(2)
    values.close()
    resume.set()
    assert values.flush(60)
    assert seen == [1]
    values.offer(3)
    assert values.flush(60)
    assert seen == [1, 3]


def test_value_waits_where_no_thread_can_be_started_and_the_next_one_tries_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[int] = []
    thread = LatestValueWorker[int]("at the limit", done.append)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        thread.offer(1)
        thread.offer(2)
        # There is nobody to wait for.
        assert not thread.flush(LONG)
    assert [each.getMessage() for each in caplog.records] == [
        "The thread 'at the limit' cannot be started; the query continues and tries again with the next value."
    ]
    assert thread.flush(LONG)
    thread.offer(3)
    assert thread.flush(LONG)
    assert done == [2, 3]
