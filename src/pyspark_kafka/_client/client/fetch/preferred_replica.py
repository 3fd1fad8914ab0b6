"""The replica that a range is read from, if it is not the leader (KIP-392). Pure: no clock."""

from __future__ import annotations

# A follower that is behind the end of a range gets this number of long polls before the leader is used again.
_EMPTY_RESPONSES = 3
# A leader may name replicas this number of times without records from one of them; then they are fetched from it.
_REDIRECTS_IN_VAIN = 3


class PreferredReplica:
    """The replica that a range is read from, if it is not the leader.

    Args:
        rack: whether the reader has a rack; leaders prefer a replica only for readers that have one.

    Attributes:
        broker_id: the replica that the leader named last; -1 for the leader itself.
        avoided: whether the leader must respond with records itself, whatever it prefers.

    Source: docs/internals/fetch-rules.md, R40 and R45.
    """

    __slots__ = ("_empty_responses", "_redirects", "_until", "avoided", "broker_id")

    def __init__(self, *, rack: bool) -> None:
        self.broker_id = -1
        self.avoided = not rack
        self._until = 0.0
        self._empty_responses = 0
        self._redirects = 0

    def expire(self, now: float, *, is_member: bool) -> None:
        """Return to the leader if the replica was named too long ago, or is not a member of the cluster."""
        if not (is_member and now < self._until):
            self.broker_id = -1

    def follow(self, broker_id: int, until: float) -> None:
        """Read from the replica that the leader names; from the leader, if that has happened in vain before."""
        self._redirects += 1
        if self._redirects > _REDIRECTS_IN_VAIN:
            self.avoid()
            return
        self.broker_id = broker_id
        self._until = until
        self._empty_responses = 0

    def leave(self) -> None:
        """Read from the leader next; it may prefer a replica again."""
        self.broker_id = -1

    def avoid(self) -> None:
        """Read from the leader from now on."""
        self.broker_id = -1
        self.avoided = True

    def note_records(self) -> None:
        """Record that records arrived, from any broker."""
        self._empty_responses = self._redirects = 0

    def note_empty(self) -> None:
        """Record an empty response from the replica; after several of them, the range is read from the leader."""
        self._empty_responses += 1
        if self._empty_responses >= _EMPTY_RESPONSES:
            self.avoid()
