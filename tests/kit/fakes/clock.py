"""Time that a test sets, for everything that takes a clock and a sleep."""

from __future__ import annotations


class Clock:
    """Seconds that pass when somebody sleeps, when a test adds them to `now`, and by `tick` at each look."""

    def __init__(self, now: float = 1_000.0, *, tick: float = 0.0) -> None:
        self.now = now
        self._tick = tick

    def __call__(self) -> float:
        self.now += self._tick
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let the time pass; never none, so that a loop that only sleeps comes to an end."""
        self.now += max(seconds, 1e-4)
