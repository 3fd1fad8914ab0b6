"""A limit on repeated warnings. Pure: no sockets, no clock."""

from __future__ import annotations


class LogRateLimiter:
    """Decides for each subject whether a warning about it is due: the first one, and then one in each span.

    Args:
        every_s: the span, in seconds.
        max_subjects: the maximum number of subjects; the oldest are forgotten first.
    """

    def __init__(self, every_s: float, max_subjects: int = 1_000) -> None:
        self._every_s, self._max_subjects = every_s, max_subjects
        self._last: dict[str, float] = {}

    def is_due(self, subject: str, now_s: float) -> bool:
        """Return whether to warn about a subject now; if so, the span begins.

        Args:
            subject: the subject of the warning.
            now_s: monotonic seconds.
        """
        last = self._last.get(subject)
        if last is not None and now_s - last < self._every_s:
            return False
        self._last.pop(subject, None)
        self._last[subject] = now_s
        if len(self._last) > self._max_subjects:
            del self._last[next(iter(self._last))]
        return True

    def clear(self, subject: str) -> bool:
        """Forget a subject, so that the next warning about it is due; return whether one was logged before."""
        return self._last.pop(subject, None) is not None
