"""Many partitions at a time, in threads of one process: bounded workers, the first error kept with its partition."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from pyspark_kafka._base.threads import side_by_side
from pyspark_kafka.errors import PartitionError

_P = TypeVar("_P", bound="Hashable")
_R = TypeVar("_R")


class Cancelled(Exception):  # noqa: N818 - no error: work that another partition's error made pointless
    """Raised by `CancelSignal.check` within work that is no longer wanted; needs no handling."""


class CancelSignal:
    """Signals running work to end. Thread-safe."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Request the end of the work."""
        self._event.set()

    def is_set(self) -> bool:
        """Return whether the work is to end."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Sleep, for a pause within work: return True immediately if the work is to end."""
        return self._event.wait(timeout_s)

    def check(self) -> None:
        """Raise if the work is to end: long work calls it between its steps.

        Raises:
            Cancelled: the work is no longer wanted.
        """
        if self._event.is_set():
            raise Cancelled


def process_partitions(
    partitions: Iterable[_P], work: Callable[[_P, CancelSignal], _R], *, max_workers: int = 8
) -> dict[_P, _R]:
    """Return what `work` returns for each partition, in their order; several at a time.

    After the first error, partitions that have not begun are left out, and running partitions are signaled to end
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
    signal = CancelSignal()
    complete: list[_P] = []
    # The first one to happen is the first here, whatever the order of the partitions.
    failures: list[tuple[_P, BaseException]] = []

    def one(partition: _P) -> _R:
        signal.check()
        try:
            found = work(partition, signal)
        except Cancelled:
            raise
        except BaseException as error:
            failures.append((partition, error))
            signal.set()
            raise
        complete.append(partition)
        return found

    try:
        return dict(zip(todo, side_by_side(one, todo, max_workers, "partition", give_up=signal.set), strict=True))
    except Exception:
        if not failures:
            raise
    partition, cause = failures[0]
    if not isinstance(cause, Exception):
        raise cause
    raise PartitionError(
        f"Processing of partition {partition} failed: {type(cause).__name__}: {cause}. "
        f"Of {len(todo)} partitions {len(complete)} were complete; the others were cancelled or not begun.",
        condition="PARTITION_FAILED",
        hint="See the cause; partitions that were complete are not undone.",
        parameters={"partition": partition, "complete": len(complete), "partitions": len(todo)},
    ) from cause
