"""The time that counts for delivery. Layer: client."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class DeliveryClock:
    """Seconds that pass only inside of the producer's calls.

    A producer without a thread of its own can neither send nor receive between calls. The caller may take minutes
    between them (a sort, a model), which says nothing about the brokers: batches expire by this clock.

    Args:
        wall: monotonic seconds on the wall.
        sleep: waits seconds on the wall.

    Attributes:
        wall: returns the seconds on the wall; requests, throttles and pauses end by it.
        sleep: waits seconds on the wall.
    """

    def __init__(self, wall: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self.wall = wall
        self.sleep = sleep
        self._outside_s = 0.0
        self._left_at = wall()

    def enter(self) -> None:
        """Begin a call."""
        self._outside_s += self.wall() - self._left_at

    def leave(self) -> None:
        """End a call."""
        self._left_at = self.wall()

    def now(self) -> float:
        """Return the seconds, inside of a call."""
        return self.wall() - self._outside_s

    def on_the_wall(self, moment: float) -> float:
        """Return a moment of this clock as one of the clock on the wall, if the call does not end before."""
        return moment + self._outside_s
