"""Polls the source on a thread of its own: whether input partitions have changed, and where rows end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark_kafka._base.interrupt import interrupted_by

_EVERY_SECONDS = 1.0
# The owner is checked with every third question.
_OWNER_EVERY = 3
# A source answers within some seconds; one that does not must not keep the query from its end.
_END_SECONDS = 10.0


class PartitionWatch:
    """Polls a source about once a second for changed input partitions, until there are any.

    Every few seconds it checks the owner of the checkpoint: a query without new rows would not notice a new owner.

    For calls that wait for rows, it asks where rows end. The thread of the query ends and commits epochs in the
    meantime, however long an answer takes.

    Runs on: driver; the callbacks run on the thread of the watch.

    Args:
        ask: the question, as `ContinuousStream.needsReconfiguration`; None if there is nothing to ask.
        check_owner: raises if another query owns the checkpoint.
        on_change: called once, if the answer is yes.
        on_failure: called once, with what the question raised.
        find_end: asks where readable rows end, and passes the answer on; must not raise.
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
        self._closed, self._end_wanted, self._due = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="continuous-partitions", daemon=True)

    def start(self) -> None:
        """Begin to ask. May be called again; does nothing then."""
        if self._thread.ident is None:
            self._thread.start()

    def want_end(self) -> None:
        """Have the source asked where readable rows end, once."""
        self._end_wanted.set()
        self._due.set()

    def close(self) -> threading.Thread | None:
        """Ask no more; return None if no question is open, so that the source can be planned again.

        Returns:
            The thread that waits for an answer after about 10 s: it must end before the source is planned.
        """
        self._closed.set()
        self._due.set()
        if self._thread.ident is not None:
            self._thread.join(_END_SECONDS)
        return self._thread if self._thread.is_alive() else None

    def _run(self) -> None:
        # A source that tries again does so no more when the watch is closed.
        with interrupted_by(self._closed):
            self._ask_until_closed()

    def _ask_until_closed(self) -> None:
        count, due_at = 0, time.monotonic() + _EVERY_SECONDS
        while not self._closed.is_set():
            self._due.wait(max(0.0, due_at - time.monotonic()))
            self._due.clear()
            if self._closed.is_set():
                return
            # Whatever the wait returned: a call between its timeout and `clear` is known only by its flag.
            if self._end_wanted.is_set():
                self._end_wanted.clear()
                self._find_end()
            if time.monotonic() < due_at:
                continue
            count += 1
            try:
                if count % _OWNER_EVERY == 0:
                    self._check_owner()
                changed = self._ask is not None and self._ask()
            except BaseException as error:  # noqa: BLE001 - the thread of the query raises it
                self._on_failure(error)
                return
            if changed:
                self._on_change()
                return
            due_at = time.monotonic() + _EVERY_SECONDS
