"""What this process has met at the brokers and in records, as numbers: retries, outages, bad records and more.

Modules count where they log or retry, in every process; `_ops/metrics/` shows the numbers of the program's process.
Counting costs a microsecond, and nothing in it waits or fails.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left

# Numbers that only grow.
RETRIES = "retries"
THROTTLE_SECONDS = "throttle_seconds"
OUTAGES = "outages"
OUTAGE_SECONDS = "outage_seconds"
BAD_RECORDS = "bad_records"
DROPPED_RECORDS = "dropped_records"
LOST_OFFSETS = "lost_offsets"
TRANSACTION_SECONDS = "transaction_seconds"
# Numbers of this moment.
OUTAGES_ACTIVE = "outages_active"
CLIENTS_IDLE, CLIENTS_LENT = "clients_idle", "clients_lent"
PRODUCERS_IDLE, PRODUCERS_LENT = "producers_idle", "producers_lent"

TRANSACTION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds, inclusive, of the histogram of transactions, in seconds; above them is one more."""


class Counters:
    """Numbers by name. Safe to use from several threads; a forked child begins at 0."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin at 0, in a forked child: what its parent has counted is the parent's."""
        self._lock = threading.Lock()
        self._values: dict[str, float] = {}

    def add(self, name: str, amount: float = 1) -> None:
        """Add to a number; also a negative amount, to a number of this moment."""
        with self._lock:
            self._values[name] = self._values.get(name, 0) + amount

    def set(self, name: str, value: float) -> None:
        """Set a number of this moment."""
        with self._lock:
            self._values[name] = value

    def transaction(self, seconds: float) -> None:
        """Count a transaction that was committed, and how long it took."""
        self.add(TRANSACTION_SECONDS, seconds)
        self.add(transaction_bucket(bisect_left(TRANSACTION_BUCKETS, seconds)))

    def values(self) -> dict[str, float]:
        """Return a copy of all numbers."""
        with self._lock:
            return dict(self._values)


def transaction_bucket(index: int) -> str:
    """Return the name of the number of transactions of a bucket of `TRANSACTION_BUCKETS`; not cumulative."""
    return f"transactions_{index}"


COUNTERS = Counters()
"""The numbers of this process."""

os.register_at_fork(after_in_child=COUNTERS.reset)
