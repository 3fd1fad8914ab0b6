"""Sends events of OpenLineage in a thread of its own, so that no query waits for a collector."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._ops.lineage.reports import without_login
from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LOG = logging.getLogger("pyspark_kafka.lineage")

_MAX_PENDING = 1_000
_MAX_TEXT = 500


class EventSender:
    """Builds and sends events in the order in which they were posted.

    An event that cannot be built or sent is given up, and counted; the first one is logged. So is an event that finds
    too many before it: the oldest is dropped.

    Runs on: driver, or the client of Spark Connect. Safe to use from several threads.

    Args:
        emit: sends one event, and may block.
        close: called once there is nothing more to send.

    Attributes:
        sent: how many events were sent.
        failed: how many could not be built or sent.
        dropped: how many were dropped.
    """

    def __init__(self, emit: Callable[[Any], object], close: Callable[[], object] = lambda: None) -> None:
        self._emit, self._close = emit, close
        self._changed = threading.Condition()
        self._pending: deque[Callable[[], Iterable[Any]]] = deque()
        self._thread: threading.Thread | None = None
        self._busy = self._over = False
        self.sent = self.failed = self.dropped = 0

    def post(self, build: Callable[[], Iterable[Any]]) -> None:
        """Build events soon, and send them; never blocks or raises.

        Args:
            build: returns the events; called in the thread of the sender.
        """
        with self._changed:
            if self._over:
                return
            if len(self._pending) >= _MAX_PENDING:
                self._pending.popleft()
                self.dropped += 1
                if self.dropped == 1:
                    _LOG.warning(
                        "Lineage: the collector is slower than the events, and the oldest of %d pending ones are lost. "
                        "Queries are not affected. This is logged once.",
                        _MAX_PENDING,
                    )
            self._pending.append(build)
            if self._thread is None:
                # A daemon: a program ends without it.
                self._thread = threading.Thread(target=self._run, name="lineage", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, within_s: float) -> bool:
        """Wait until all posted events are sent or given up; return whether they are."""
        deadline = Deadline(within_s * 1_000)
        with self._changed:
            return self._changed.wait_for(lambda: not self._pending and not self._busy, deadline.remaining_s())

    def stop(self, within_s: float) -> bool:
        """Send what is pending, for at most this time, and no more from then on; return whether it was sent.

        Safe to repeat.
        """
        deadline = Deadline(within_s * 1_000)
        is_done = self.flush(within_s)
        with self._changed:
            self._pending.clear()
            thread = self._thread
        self.end()
        if thread is not None:
            thread.join(deadline.remaining_s())
        return is_done

    def end(self) -> None:
        """Take no more events; what is pending is still sent. Does not block."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._pending or self._over)
                if not self._pending:
                    break
                build, self._busy = self._pending.popleft(), True
            self._send(build)
            # Held no longer: it may hold a plan of Spark.
            del build
        self._close()

    def _send(self, build: Callable[[], Iterable[Any]]) -> None:
        try:
            for event in build():
                self._emit(event)
                self.sent += 1
        except BaseException as error:  # noqa: BLE001 - also sys.exit() of a transport: the thread must not end
            self.failed += 1
            if self.failed == 1:
                _LOG.warning(
                    "Lineage: an event cannot be sent: %s. Queries are not affected. This is logged once.", _text(error)
                )
                _LOG.debug("The event that cannot be sent", exc_info=True)


def _text(error: BaseException) -> str:
    return printable(without_login(f"{type(error).__name__}: {error}"))[:_MAX_TEXT]
