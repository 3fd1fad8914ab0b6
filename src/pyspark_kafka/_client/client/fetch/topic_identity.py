"""The topic that a range is read from, by its id (KIP-516): whether it is still the topic of the plan. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

# A broker may lag behind the deletion or the creation of a topic: it is asked this number of times before another id is
# believed.
_OTHER_ID_LOOKS = 4


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
