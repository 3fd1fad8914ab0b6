"""Hands events of queries that run in this process, not in Spark's, to Spark's `StreamingQueryListener`s.

Spark knows nothing of a continuous query, so its own bus has no events of it. The events are PySpark's own classes, so
a listener cannot tell the difference, on classic Spark and on Spark Connect.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.listener import StreamingQueryListener

_LOG = logging.getLogger(__name__)

# Pending events of a slow listener; the oldest are dropped, as Spark's bus drops events.
_MAX_PENDING = 1_000
_REMOVE_SECONDS = 60.0


class LocalListenerBus:
    """Calls listeners on a thread of its own, which lives while there are listeners.

    Safe to use from several threads. A listener that raises is logged, and disturbs neither the query nor others.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # Each with the key of the session whose queries it wants; None for all. A call returns None if it is gone.
        self._listeners: list[tuple[Callable[[], StreamingQueryListener | None], object]] = []
        self._pending: deque[tuple[Any, list[StreamingQueryListener]]] = deque()
        self._thread: threading.Thread | None = None
        # Who has the event that is delivered now.
        self._called: list[StreamingQueryListener] = []
        self._dropped = 0
        # Listeners that have raised an error, and where.
        self._failed: set[tuple[type, str]] = set()

    @property
    def has_listeners(self) -> bool:
        """Return whether anybody listens."""
        return any(get() is not None for get, _ in self._listeners)

    def add_listener(self, listener: StreamingQueryListener, session: object = None, *, weakly: bool = False) -> None:
        """Call a listener from now on.

        Args:
            listener: added twice, it is called twice.
            session: the key of the session whose queries it wants; None for all.
            weakly: whether it is called only for as long as something else holds it.
        """
        with self._changed:
            self._drop_gone()
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="query-events", daemon=True)
                thread.start()
                # Not before: a thread that cannot be started is missing, so that the next listener tries again.
                self._thread = thread
            self._listeners.append((weakref.ref(listener) if weakly else lambda: listener, session))

    def remove(self, listener: StreamingQueryListener, within_s: float = _REMOVE_SECONDS) -> None:
        """Call a listener no more; return when it has its pending events, or the time is over.

        Safe to repeat, and from the listener itself, which then does not wait.
        """
        with self._changed:
            self._listeners = [pair for pair in self._listeners if pair[0]() is not listener]
            self._changed.notify_all()
            if threading.current_thread() is not self._thread:
                self._changed.wait_for(lambda: not self._is_pending(listener), within_s)
            if self._is_pending(listener):
                self._pending = deque(
                    (event, [each for each in listeners if each is not listener]) for event, listeners in self._pending
                )

    def flush(self, listener: StreamingQueryListener, within_s: float) -> bool:
        """Wait until a listener has its pending events; return whether it has. Not for the listener's own thread."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_pending(listener), within_s)

    def post(self, event: Any, session: object = None) -> None:
        """Hand an event to the listeners of a session, soon, on the thread of the bus.

        Args:
            event: one of PySpark's classes.
            session: the key of the query's session.
        """
        with self._changed:
            self._drop_gone()
            listeners = self._wanting(session)
            if not listeners:
                return
            if len(self._pending) >= _MAX_PENDING:
                self._pending.popleft()
                self._dropped += 1
                if self._dropped in (1, 1_000, 1_000_000):
                    _LOG.warning(
                        "A listener of continuous queries is slower than their events: %d are lost.", self._dropped
                    )
            self._pending.append((event, listeners))
            self._changed.notify_all()

    def call(self, event: Any, session: object = None) -> None:
        """Hand an event to the listeners of a session here and now."""
        with self._changed:
            listeners = self._wanting(session)
        self._deliver(event, listeners)

    def _wanting(self, session: object) -> list[StreamingQueryListener]:
        found = [get() for get, wanted in self._listeners if wanted is None or wanted == session]
        return [listener for listener in found if listener is not None]

    def _drop_gone(self) -> None:
        left = [pair for pair in self._listeners if pair[0]() is not None]
        if len(left) < len(self._listeners):
            # The thread of the bus may have nobody left.
            self._listeners = left
            self._changed.notify_all()

    def _is_pending(self, listener: StreamingQueryListener) -> bool:
        return any(listener in listeners for listeners in (self._called, *(each for _, each in self._pending)))

    def _run(self) -> None:
        while True:
            with self._changed:
                self._called = []
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._pending or not self._listeners)
                if not self._pending:
                    self._thread = None
                    return
                event, listeners = self._pending.popleft()
                self._called = listeners
            # Also sys.exit(), which would end this thread, and with it the events of all listeners.
            self._deliver(event, listeners, caught=BaseException)
            # It waits for long, and is not to hold a listener in the meantime.
            del event, listeners

    def _deliver(
        self, event: Any, listeners: list[StreamingQueryListener], caught: type[BaseException] = Exception
    ) -> None:
        # `QueryProgressEvent` goes to `onQueryProgress`, and so on.
        method = "on" + type(event).__name__.removesuffix("Event")
        for listener in listeners:
            try:
                getattr(listener, method)(event)
            except caught:
                # Once: there may be ten epochs a second, and as many errors.
                if (type(listener), method) not in self._failed:
                    self._failed.add((type(listener), method))
                    _LOG.warning(
                        "A listener, %s, raised an error in %s; the query continues. Further errors of it there are "
                        "not logged.",
                        type(listener).__qualname__, method, exc_info=True,
                    )  # fmt: skip


LOCAL_BUS = LocalListenerBus()
"""The bus of this process."""


def session_key(session: Any) -> object:
    """Return the key of a session: one of classic Spark may have several Python objects."""
    java_session = getattr(session, "_jsparkSession", None)
    return session.session_id if java_session is None else java_session.sessionUUID()
