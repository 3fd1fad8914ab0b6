"""The moments at which batches expire, the earliest first. Pure. Layer: client."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_kafka.client.produce.batches.producer_batch import ProducerBatch

# Entries of final batches that are kept at least, so that they are dropped many at a time.
_KEPT = 1_000


class Expiries:
    """All batches by when they expire; final ones are dropped when they come to the front."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, ProducerBatch]] = []
        self._number = 0

    def __len__(self) -> int:
        """Return how many entries are kept, those of some final batches included."""
        return len(self._entries)

    def add(self, batch: ProducerBatch, pending: int) -> None:
        """Note a batch; `pending` batches are not final."""
        self._number += 1
        if len(self._entries) > 2 * pending + _KEPT:
            # One batch that waits long must not keep the entries of all that were delivered meanwhile.
            self._entries = [entry for entry in self._entries if not entry[2].is_final]
            heapq.heapify(self._entries)
        heapq.heappush(self._entries, (batch.expires_at, self._number, batch))

    def earliest(self) -> float | None:
        """Return the earliest moment at which a batch expires; None if there is no batch."""
        entries = self._entries
        while entries and entries[0][2].is_final:
            heapq.heappop(entries)
        return entries[0][0] if entries else None
