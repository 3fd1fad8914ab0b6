"""Calls in threads: what they return, what they raise, and when they end."""

from __future__ import annotations

import threading
from concurrent.futures import wait

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka._base.interrupt import interrupted_by, pause
from pyspark_kafka._base.threads import BackgroundLoop, begin, side_by_side


def test_results_of_calls_are_in_the_order_of_the_values() -> None:
    first_may_end = threading.Event()

    def work(value: int) -> int:
        if value == 0:
            assert first_may_end.wait(PATIENCE_S)
        else:
            first_may_end.set()
        return value * 10

    assert side_by_side(work, iter(range(3)), 8, "calls") == [0, 10, 20]


def test_calls_run_in_as_many_threads_as_may_run_at_the_same_time() -> None:
    together = threading.Barrier(3)
    threads: set[str] = set()

    def work(_: int) -> None:
        threads.add(threading.current_thread().name)
        together.wait(PATIENCE_S)

    side_by_side(work, range(9), 3, "calls")
    assert threads == {"calls_0", "calls_1", "calls_2"}


def test_no_values_start_no_thread() -> None:
    assert side_by_side(pytest.fail, [], 8, "calls") == []


def test_first_error_in_the_order_of_the_values_is_raised_after_all_running_calls() -> None:
    later_failed, ended = threading.Event(), []

    def work(value: int) -> None:
        try:
            if value == 0:
                assert later_failed.wait(PATIENCE_S)
                raise OSError("0")
            later_failed.set()
            raise ValueError("1")
        finally:
            ended.append(value)

    with pytest.raises(OSError, match="0"):
        side_by_side(work, range(2), 2, "calls")
    assert ended == [1, 0]


def test_calls_that_have_not_begun_are_left_out_after_an_error() -> None:
    given_up, begun = threading.Event(), []

    def work(value: int) -> None:
        begun.append(value)
        if value == 0:
            raise OSError("0")
        # The caller gives up while this call keeps the others from their beginning.
        assert given_up.wait(PATIENCE_S)

    with pytest.raises(OSError, match="0"):
        side_by_side(work, range(5), 1, "calls", given_up.set)
    assert begun in ([0], [0, 1])


def test_waits_of_calls_end_with_the_waits_of_the_caller() -> None:
    ended = threading.Event()
    ended.set()
    with interrupted_by(ended):
        assert side_by_side(pause, [PATIENCE_S], 8, "calls") == [True]


def test_call_that_is_begun_has_a_result_or_an_error() -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    succeeded, failed = begin(lambda: 7, "call"), begin(fail, "call")
    assert succeeded.result(PATIENCE_S) == 7
    assert isinstance(failed.exception(PATIENCE_S), KeyboardInterrupt)


def test_call_that_never_returns_keeps_no_process_from_its_end() -> None:
    running, released = threading.Event(), threading.Event()

    def call() -> tuple[str, bool]:
        running.set()
        assert released.wait(PATIENCE_S)
        return threading.current_thread().name, threading.current_thread().daemon

    begun = begin(call, "call")
    assert running.wait(PATIENCE_S)
    assert not wait([begun], 0.0).done
    released.set()
    assert begun.result(PATIENCE_S) == ("call", True)


def test_loop_calls_its_function_until_it_returns_none() -> None:
    pauses = [0.0, 0.0, None]
    loop = BackgroundLoop("loop", lambda: pauses.pop(0))
    loop.start()
    loop.join(PATIENCE_S)
    assert not loop.is_alive()
    assert (pauses, loop.is_over, loop.name, loop.daemon) == ([], False, "loop", True)


def test_loop_makes_no_call_if_it_ends_before_the_first_one() -> None:
    with BackgroundLoop("loop", pytest.fail, PATIENCE_S) as loop:
        pass
    assert not loop.is_alive()


def test_loop_waits_as_long_as_the_function_returns_unless_it_is_woken() -> None:
    called = threading.Semaphore(0)

    def turn() -> float:
        called.release()
        return PATIENCE_S * 10

    with BackgroundLoop("loop", turn) as loop:
        assert called.acquire(timeout=PATIENCE_S)
        assert not called.acquire(timeout=0.02)
        loop.wake()
        assert called.acquire(timeout=PATIENCE_S)


def test_loop_that_is_woken_during_a_call_makes_one_more() -> None:
    running, woken = threading.Event(), threading.Event()
    calls: list[int] = []

    def turn() -> float | None:
        calls.append(len(calls))
        running.set()
        assert woken.wait(PATIENCE_S)
        return PATIENCE_S * 10 if len(calls) < 2 else None

    loop = BackgroundLoop("loop", turn)
    loop.start()
    assert running.wait(PATIENCE_S)
    loop.wake()
    woken.set()
    loop.join(PATIENCE_S)
    assert calls == [0, 1]


def test_end_of_a_loop_ends_the_waits_of_its_function() -> None:
    running, interrupted = threading.Event(), []

    def turn() -> float:
        running.set()
        interrupted.append(pause(PATIENCE_S))
        return 0.0

    with BackgroundLoop("loop", turn):
        assert running.wait(PATIENCE_S)
    assert interrupted == [True]


def test_end_of_a_loop_waits_for_a_running_call_no_longer_than_it_is_told() -> None:
    running, released = threading.Event(), threading.Event()

    def turn() -> float:
        running.set()
        assert released.wait(PATIENCE_S)
        return 0.0

    loop = BackgroundLoop("loop", turn)
    loop.start()
    assert running.wait(PATIENCE_S)
    loop.end(0.01)
    assert loop.is_alive()
    assert loop.is_over
    released.set()
    loop.end(PATIENCE_S)
    assert not loop.is_alive()


def test_loop_may_be_ended_by_its_function_and_before_its_start() -> None:
    loop: BackgroundLoop

    def turn() -> float:
        loop.end()
        return 0.0

    loop = BackgroundLoop("loop", turn)
    loop.start()
    loop.join(PATIENCE_S)
    assert not loop.is_alive()
    BackgroundLoop("loop", turn).end()
