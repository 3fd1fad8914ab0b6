"""The batches that a reader of committed records (`read_committed`) must not see. Pure state, no bytes."""

from __future__ import annotations

from collections.abc import Iterable

ABORT_MARKER = 0


class AbortFilter:
    """The set formulation of Kafka's abort filter, for the batches of one fetch response in log order.

    A producer is active while the walk is inside one of its aborted transactions. Entries of empty transactions,
    duplicates, entries beyond the fetched bytes and markers without an entry all leave the set right.

    Source: docs/internals/fetch-rules.md, R25 to R29; Java `CompletedFetch`.
    """

    def __init__(self, aborted_transactions: Iterable[tuple[int, int]]) -> None:
        """Take (producer id, first offset) pairs in any order."""
        # Latest first: the next entry to activate is popped from the end.
        self._pending = sorted(((first, producer) for producer, first in aborted_transactions), reverse=True)
        self._active: set[int] = set()

    @property
    def hides_any(self) -> bool:
        """Whether a batch from here on may be part of an aborted transaction."""
        return bool(self._pending or self._active)

    def enter_batch(self, last_offset: int) -> None:
        """Activate all transactions that began at or before the batch's last offset."""
        while self._pending and self._pending[-1][0] <= last_offset:
            self._active.add(self._pending.pop()[1])

    def hides(self, producer_id: int) -> bool:
        """Return whether a transactional batch of this producer is part of an aborted transaction."""
        return producer_id in self._active

    def end_transaction(self, producer_id: int, marker_type: int) -> None:
        """Process a control record: an abort marker ends the producer's aborted transaction; others have no effect."""
        if marker_type == ABORT_MARKER:
            self._active.discard(producer_id)
