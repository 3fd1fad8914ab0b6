"""The key groups of a lane that have had no rows for a time. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Of the time between two polls without rows. In a longer one the lane has not asked its reader: a function was slow.
_MAX_GAP_S = 1.0


class IdleGroups:
    """Finds the key groups that have had no rows for a time.

    The time is that in which the lane waits for rows: it passes from one poll of the reader without rows to the next,
    at most a second. So no key group becomes idle while its rows wait for a slow function, or for a start.

    Args:
        key_groups: of the lane.
        timeout_s: the time.
    """

    def __init__(self, key_groups: Iterable[str], timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._waited_s = 0.0
        self._polled_at: float | None = None
        # By the time of their last rows, oldest first.
        self._since = dict.fromkeys(key_groups, 0.0)
        self._idle: dict[str, None] = {}

    def has_rows(self, key_group: str) -> None:
        """Record rows of a key group."""
        self._idle.pop(key_group, None)
        self._since.pop(key_group, None)
        self._since[key_group] = self._waited_s

    def poll(self, now_s: float) -> Sequence[str]:
        """Record that the reader has no rows; return the key groups that are idle.

        Args:
            now_s: monotonic seconds.
        """
        if self._polled_at is not None:
            self._waited_s += min(now_s - self._polled_at, _MAX_GAP_S)
        self._polled_at = now_s
        while self._since:
            key_group, since_s = next(iter(self._since.items()))
            if self._waited_s - since_s < self._timeout_s:
                break
            del self._since[key_group]
            self._idle[key_group] = None
        return list(self._idle)

    def forget(self, key_group: str) -> None:
        """Do not return a key group again until it has had rows."""
        self._idle.pop(key_group, None)

    def wait_again(self, key_group: str) -> None:
        """Return a key group again after the same time without rows."""
        self.has_rows(key_group)
