"""Many partitions at a time, in threads of one process: bounded workers, the first error kept with its partition."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from pyspark_kafka.errors import PartitionError

_P = TypeVar("_P", bound="Hashable")
_R = TypeVar("_R")


class Cancelled(Exception):  # noqa: N818 - no error: work that another partition's error made pointless
    """Raised by `CancelSignal.check` within work that is no longer wanted; needs no handling."""


class CancelSignal:
    """Tells running work that it is no longer wanted. Thread-safe."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask the work to end."""
        self._event.set()

    def is_set(self) -> bool:
        """Return whether the work is asked to end."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Sleep, for a pause within work: return True at once if the work is asked to end."""
        return self._event.wait(timeout_s)

    def check(self) -> None:
        """Raise if the work is asked to end: long work calls it between its steps.

        Raises:
            Cancelled: the work is no longer wanted.
        """
        if self._event.is_set():
            raise Cancelled


def process_partitions(
    partitions: Iterable[_P], work: Callable[[_P, CancelSignal], _R], *, max_workers: int = 8
) -> dict[_P, _R]:
    """Return what `work` returns for each partition, in their order; several at a time.

    After the first error, partitions that have not begun are left out, and running partitions are asked to end
    through their `CancelSignal`; it waits for these, so that nothing runs any more when it returns.

    Runs on: driver or executor; blocks until the work ends; `work` runs in threads of this process.

    Args:
        partitions: distinct.
        work: one partition's work; calls `signal.check()` between its steps if it takes long.
        max_workers: at most this many at a time.

    Raises:
        PartitionError: the work of a partition failed; names it. Its cause is the first error that was raised.
    """
    if max_workers < 1:
        raise ValueError(f"max_workers must be positive, not {max_workers}")
    todo = list(dict.fromkeys(partitions))
    if not todo:
        return {}
    signal = CancelSignal()
    lock = threading.Lock()
    failures: list[tuple[_P, BaseException]] = []

    def one(partition: _P) -> _R:
        signal.check()
        try:
            return work(partition, signal)
        except Cancelled:
            raise
        except BaseException as error:
            # In the order in which they happened, not in which their threads are looked at.
            with lock:
                failures.append((partition, error))
            signal.set()
            raise

    with ThreadPoolExecutor(min(max_workers, len(todo)), thread_name_prefix="partition") as pool:
        futures: dict[_P, Future[_R]] = {}
        try:
            for partition in todo:
                futures[partition] = pool.submit(one, partition)
            wait(futures.values(), return_when=FIRST_EXCEPTION)
        finally:
            # After an error, and if this thread itself is interrupted, or cannot hand out all of the work.
            if len(futures) < len(todo) or any(not future.done() for future in futures.values()):
                signal.set()
            for future in futures.values():
                future.cancel()
    if failures:
        partition, cause = failures[0]
        if not isinstance(cause, Exception):
            raise cause
        done = sum(
            future.done() and not future.cancelled() and future.exception() is None for future in futures.values()
        )
        raise PartitionError(
            f"Processing of partition {partition} failed: {type(cause).__name__}: {cause}. "
            f"Of {len(todo)} partitions {done} were complete; the others were cancelled or not begun.",
            condition="PARTITION_FAILED",
            hint="See the cause; partitions that were complete are not undone.",
            parameters={"partition": partition, "complete": done, "partitions": len(todo)},
        ) from cause
    return {partition: future.result() for partition, future in futures.items()}
