"""Counts of this process's events at brokers: retries, outages and more.

Modules count where they log or retry, in every process; `_ops/metrics/` shows the numbers of the program's process.
Counting costs a microsecond, and nothing in it waits or fails.
"""

from __future__ import annotations

import os
import threading

# Numbers that only grow.
RETRIES = "retries"
THROTTLE_SECONDS = "throttle_seconds"
OUTAGES = "outages"
OUTAGE_SECONDS = "outage_seconds"
# Numbers of this moment.
OUTAGES_ACTIVE = "outages_active"
CLIENTS_IDLE, CLIENTS_LENT = "clients_idle", "clients_lent"
PRODUCERS_IDLE, PRODUCERS_LENT = "producers_idle", "producers_lent"


class Counters:
    """Numbers by name. Safe to use from several threads; a forked child begins at 0."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin at 0, in a forked child: what its parent has counted is the parent's."""
        self._lock = threading.Lock()
        self._values: dict[str, float] = {}

    def add_count(self, name: str, amount: float = 1) -> None:
        """Add to a number; also a negative amount, to a number of this moment."""
        with self._lock:
            self._values[name] = self._values.get(name, 0) + amount

    def set(self, name: str, value: float) -> None:
        """Set a number of this moment."""
        with self._lock:
            self._values[name] = value

    def values(self) -> dict[str, float]:
        """Return a copy of all numbers."""
        with self._lock:
            return dict(self._values)


COUNTERS = Counters()
"""The numbers of this process."""

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=COUNTERS.reset)
