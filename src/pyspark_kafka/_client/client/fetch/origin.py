"""The origin of a range: the replica to read (KIP-392), and the topic by its id (KIP-516). Pure: no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

# A follower that is behind the end of a range gets this number of long polls before the leader is used again.
_EMPTY_RESPONSES = 3
# A leader may name replicas this number of times without records from one of them; then they are fetched from it.
_REDIRECTS_IN_VAIN = 3
# A broker may lag behind the deletion or the creation of a topic: it is asked this number of times before another id is
# believed.
_OTHER_ID_LOOKS = 4


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


class TopicIdentity:
    """The topic that a range is read from.

    Args:
        planned: the id that the range was planned with; None takes the first id that a broker names.

    Attributes:
        planned: as given; None again after a switch to the recreated topic.
        known: the id of the topic that is read; None if no broker has named one.

    Source: docs/internals/fetch-rules.md, R38 and R39.
    """

    __slots__ = ("_looks", "_other", "known", "planned")

    def __init__(self, planned: UUID | None) -> None:
        self.planned = self.known = planned
        # The id of the recreated topic; None while the topic is the same.
        self._other: UUID | None = None
        self._looks = 0

    def accepts(self, found: UUID | None) -> bool:
        """Return whether brokers name the topic that is read, as far as they name any; the first id is learned."""
        if found is not self.known and found is not None:
            if self.known is None:
                self.known = found
            elif found != self.known:
                return False
            else:
                self.known = found  # the same object, which is recognized immediately
        self._looks = 0
        return True

    def doubts(self, *, unread: bool) -> bool:
        """Return whether another request is needed, after brokers have returned another topic id.

        What this process knew may be older than the plan, and a broker may lag.

        Args:
            unread: whether nothing of the range was read yet.
        """
        if self.planned is None and unread:
            # The id that it differs from is one that this process knew: no plan has it.
            return False
        self._looks += 1
        return self._looks < _OTHER_ID_LOOKS

    @property
    def doubted_again(self) -> bool:
        """Whether an id that was requested again is doubtful as well."""
        return self._looks > 1

    def note_other(self, found: UUID | None) -> None:
        """Record the id of the topic that replaced the previous topic."""
        self._other = found
        self._looks = 0

    def switch(self) -> bool:
        """Read the recreated topic from now on; return False if there is none."""
        if self._other is None:
            return False
        self.known, self._other, self.planned = self._other, None, None
        return True
