"""Polls the source on a thread of its own: whether input partitions have changed, and where rows end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark_kafka._base.threads import BackgroundLoop

_EVERY_SECONDS = 1.0
# The owner is checked with every third question.
_OWNER_EVERY = 3
# A source responds within some seconds; a silent one must not keep the query from its end.
_END_SECONDS = 10.0


class PartitionWatch:
    """Polls a source about once a second for changed input partitions, until there are any.

    Every few seconds it checks the owner of the checkpoint: a query without new rows would not notice a new owner.

    For calls that wait for rows, it requests the end of rows. The thread of the query ends and commits epochs in the
    meantime, however long a response takes.

    Runs on: driver; the callbacks run on the thread of the watch.

    Args:
        ask: the request, as `ContinuousStream.needsReconfiguration`; None for none.
        check_owner: raises if another query owns the checkpoint.
        on_change: called once, if the result is True.
        on_failure: called once, with what the question raised.
        find_end: requests the end of readable rows, and passes the result on; must not raise.
    """

    def __init__(
        self,
        ask: Callable[[], bool] | None,
        check_owner: Callable[[], None],
        on_change: Callable[[], None],
        on_failure: Callable[[BaseException], None],
        find_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._ask, self._check_owner, self._on_change, self._on_failure = ask, check_owner, on_change, on_failure
        self._find_end = find_end
        self._end_wanted = threading.Event()
        self._questions, self._due_at = 0, 0.0
        # A source that tries again does so no more when the watch is closed.
        self._loop = BackgroundLoop("continuous-partitions", self._ask_if_due)

    def start(self) -> None:
        """Begin the watch. May be called again; does nothing then."""
        if self._loop.ident is None:
            self._due_at = time.monotonic() + _EVERY_SECONDS
            self._loop.start()

    def want_end(self) -> None:
        """Have the end of readable rows requested, once."""
        self._end_wanted.set()
        self._loop.wake()

    def close(self) -> threading.Thread | None:
        """Send no more requests; return None if none is open, so that the source can be planned again.

        Returns:
            The thread that still waits for a result after about 10 s: it must end before the source is planned.
        """
        self._loop.end(_END_SECONDS)
        return self._loop if self._loop.is_alive() else None

    def _ask_if_due(self) -> float | None:
        # Whatever the wait returned: a call as it ended is known only by its flag.
        if self._end_wanted.is_set():
            self._end_wanted.clear()
            self._find_end()
        if (left_s := self._due_at - time.monotonic()) > 0:
            return left_s
        self._questions += 1
        try:
            if self._questions % _OWNER_EVERY == 0:
                self._check_owner()
            changed = self._ask is not None and self._ask()
        except BaseException as error:  # noqa: BLE001 - the thread of the query raises it
            self._on_failure(error)
            return None
        if changed:
            self._on_change()
            return None
        self._due_at = time.monotonic() + _EVERY_SECONDS
        return _EVERY_SECONDS
