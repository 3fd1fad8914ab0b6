"""Lanes that hold up the commits of a query, named in its log and in its status."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LOG = logging.getLogger(__name__)

_LATE_SECONDS = 30.0
_MOST_NAMED = 10


class LateLanes:
    """Says which lanes have not reported an epoch long after it has ended: a function or a sink waits there.

    Runs on: driver, on the thread of the query; does not block.

    Args:
        query_id: of the query.
        say: takes the status of the query while lanes are late.
    """

    def __init__(self, query_id: str, say: Callable[[str], None]) -> None:
        self._query_id, self._say = query_id, say
        self._epoch: int | None = None

    def look(
        self, awaited: tuple[int, tuple[int, ...]] | None, spans: Mapping[int, tuple[float, float]], now: float
    ) -> None:
        """Say once an epoch which lanes are late, if any are.

        Args:
            awaited: as `EpochCoordinator.awaited`.
            spans: when the epochs that are not committed began and ended, by the monotonic clock.
            now: by the same clock.
        """
        if awaited is None or awaited[0] == self._epoch:
            return
        epoch, lanes = awaited
        waited = now - spans[epoch][1]
        if lanes and waited > _LATE_SECONDS:
            self._epoch = epoch
            named = f"lane{'s' * (len(lanes) > 1)} {', '.join(map(str, lanes[:_MOST_NAMED]))}"
            self._say(f"Waiting for {named} to end epoch {epoch}")
            _LOG.warning(
                "Continuous query %s: %d of its lanes, %s, should have ended epoch %d %.0f s ago, and no epoch "
                "is committed meanwhile. A function may wait there, or a sink that takes no more rows.",
                self._query_id,
                len(lanes),
                named,
                epoch,
                waited,
            )

    def is_over(self) -> bool:
        """Return whether lanes were late until now. Called when an epoch is committed."""
        was_late, self._epoch = self._epoch is not None, None
        return was_late
