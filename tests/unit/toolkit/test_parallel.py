"""Many partitions at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka.errors import PartitionError
from pyspark_kafka.toolkit import CancelSignal, process_partitions


def test_results_come_in_the_order_of_the_partitions() -> None:
    first_may_end = threading.Event()

    def work(partition: int, _: CancelSignal) -> int:
        if partition == 0:
            assert first_may_end.wait(PATIENCE_S)
        else:
            first_may_end.set()
        return partition * 10

    assert list(process_partitions(range(3), work).items()) == [(0, 0), (1, 10), (2, 20)]


def test_no_partitions_are_no_work() -> None:
    assert process_partitions([], lambda partition, _: partition) == {}


def test_workers_are_bounded() -> None:
    running, most, lock = 0, 0, threading.Lock()
    # As many as may run at a time do so before any of them ends.
    together = threading.Barrier(3)

    def work(_: int, signal: CancelSignal) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(PATIENCE_S)
        signal.wait(0.01)
        with lock:
            running -= 1

    process_partitions(range(12), work, max_workers=3)
    assert most == 3


def test_first_error_is_kept_with_its_partition_and_the_rest_ends() -> None:
    others_run = threading.Barrier(3)
    ended = []

    def work(partition: str, signal: CancelSignal) -> None:
        others_run.wait(PATIENCE_S)
        if partition == "b":
            raise ValueError("row 7 is broken")
        assert signal.wait(PATIENCE_S), "nobody asked this work to end"
        ended.append(partition)
        signal.check()

    with pytest.raises(PartitionError) as raised:
        process_partitions(["a", "b", "c", "d", "e"], work, max_workers=3)
    assert str(raised.value).startswith(
        "[PARTITION_FAILED] Processing of partition b failed: ValueError: row 7 is broken."
    )
    assert isinstance(raised.value.__cause__, ValueError)
    # Those that ran were waited for; those that had not begun never did.
    assert sorted(ended) == ["a", "c"]


def test_error_that_came_first_is_named_whatever_the_order_of_the_partitions() -> None:
    def work(partition: int, signal: CancelSignal) -> None:
        if partition == 0:
            assert signal.wait(PATIENCE_S)
            raise RuntimeError("later")
        raise RuntimeError("first")

    with pytest.raises(PartitionError, match="partition 1 failed: RuntimeError: first"):
        process_partitions([0, 1], work)


def test_interrupt_of_a_worker_is_not_wrapped() -> None:
    def work(_: int, __: CancelSignal) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process_partitions([1], work)


def test_work_is_asked_to_end_if_the_rest_of_it_cannot_be_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    submit, begun = ThreadPoolExecutor.submit, threading.Barrier(3)
    ended: list[int] = []

    def work(partition: int, signal: CancelSignal) -> None:
        begun.wait(PATIENCE_S)
        # Not for longer, so that a failure of this test ends.
        if signal.wait(2):
            ended.append(partition)
        signal.check()

    def interrupted(pool: ThreadPoolExecutor, one: Callable[[int], None], partition: int) -> Future[None]:
        if partition == 2:
            begun.wait(PATIENCE_S)
            raise KeyboardInterrupt
        return submit(pool, one, partition)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        process_partitions(range(4), work)
    assert sorted(ended) == [0, 1]


def test_workers_must_be_positive() -> None:
    with pytest.raises(ValueError, match="max_workers"):
        process_partitions([1], lambda partition, _: partition, max_workers=0)
