"""Idle clients and producers of one process, by key: where an unused connection is kept and closed.

`cluster/pool.py` keeps clients here, `produce/pool.py` producers. No I/O but the closing of what leaves the pool.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

# Brokers close idle connections after 10 minutes (connections.max.idle.ms), and forget producers that are silent
# for a day (producer.id.expiration.ms): nothing is kept that long.
IDLE_SECONDS = 300.0


class Poolable(Protocol):
    """An object that a pool keeps.

    Attributes:
        created_in: the id of the process that created it.
    """

    created_in: int

    def close(self) -> None:
        """Close its connections; safe to call again."""


K = TypeVar("K", bound="Hashable")
V = TypeVar("V", bound=Poolable)


class IdlePool(Generic[K, V]):
    """Keeps values between two users of an equal key.

    Invariants:

    - One user: a value is either here or with one user. `take_value` removes it from the pool.
    - Fork safety: a forked child starts with an empty pool, and a value that the parent created never gets in. The
      child closes its copies of inherited sockets, which does not end the parent's connections.
    - Bounds: at most `max_per_key` values of one key, `max_values` in all. The value that is idle longest leaves
      first.
    - Idle time: no value is lent after more than `idle_seconds` without use.
    - Closing: whatever leaves the pool without a user is closed: beyond a bound, idle for too long (found at the next
      `take_value`, for any key), inherited by a fork, or by `close`. Sockets are closed outside of the lock.

    Runs on: driver and executor; any thread. Closing is all that may block, for microseconds.

    Args:
        max_values: how many values are kept at most; None for no bound.
        max_per_key: how many values of one key are kept at most; None for no bound.
        idle_seconds: how long a value may be idle.
        clock: monotonic seconds; tests pass their own.
        process_id: the id of this process; tests pass their own, in place of a fork.
    """

    def __init__(
        self,
        *,
        max_values: int | None = None,
        max_per_key: int | None = None,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        process_id: Callable[[], int] = os.getpid,
    ) -> None:
        self._max_values = max_values
        self._max_per_key = max_per_key
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._current_process = process_id
        self._start_empty()

    def _start_empty(self) -> None:
        self._process_id = self._current_process()
        self._lock = threading.Lock()
        # Each value with the start of its idle time, oldest first.
        self._idle: list[tuple[K, V, float]] = []

    def _leave_parent(self) -> None:
        """In a forked child: start empty, and close what was inherited."""
        if self._process_id != self._current_process():
            inherited = self._idle
            # The lock is replaced as well: if another thread of the parent held it, it would stay locked here for ever.
            self._start_empty()
            _close_all(inherited)

    def __len__(self) -> int:
        """Return how many values are idle."""
        self._leave_parent()
        return len(self._idle)

    def take_value(self, key: K) -> V | None:
        """Return the value of an equal key that was used last, for the caller alone; None if there is none."""
        self._leave_parent()
        oldest = self._clock() - self._idle_seconds
        with self._lock:
            expired = [entry for entry in self._idle if entry[2] < oldest]
            if expired:
                self._idle = [entry for entry in self._idle if entry[2] >= oldest]
            taken = next((index for index in reversed(range(len(self._idle))) if self._idle[index][0] == key), None)
            value = None if taken is None else self._idle.pop(taken)[1]
        _close_all(expired)
        return value

    def put_back(self, key: K, value: V) -> None:
        """Keep a value for the next user of its key, or close it if it is not to be kept."""
        self._leave_parent()
        if value.created_in != self._process_id:
            # Lent before a fork: its sockets are the parent's.
            value.close()
            return
        with self._lock:
            self._idle.append((key, value, self._clock()))
            excess = self._remove_excess(key)
        _close_all(excess)

    def _remove_excess(self, key: K) -> list[tuple[K, V, float]]:
        """Remove and return what is beyond the bounds, now that a value of this key was added."""
        excess: list[tuple[K, V, float]] = []
        if self._max_per_key is not None:
            equal = [index for index, entry in enumerate(self._idle) if entry[0] == key]
            excess += [self._idle.pop(index) for index in reversed(equal[: -self._max_per_key])]
        if self._max_values is not None:
            excess += self._idle[: -self._max_values]
            del self._idle[: -self._max_values]
        return excess

    def close(self) -> None:
        """Close all idle values. The pool can be used again."""
        self._leave_parent()
        with self._lock:
            idle, self._idle = self._idle, []
        _close_all(idle)


def _close_all(entries: list[tuple[K, V, float]]) -> None:
    for _, value, _ in entries:
        value.close()
