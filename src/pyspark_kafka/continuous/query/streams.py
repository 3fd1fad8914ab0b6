"""The continuous queries of this process, like `spark.streams` for Spark's own."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from pyspark_kafka._connector.spark.local_bus import LOCAL_BUS, LocalListenerBus

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    from pyspark_kafka.continuous.query.handle import ContinuousQuery


class ContinuousQueryManager:
    """The continuous queries that this process has started, of all its sessions, and their listeners.

    Runs on: driver, or the client of Spark Connect; its methods may be called from any thread.

    Args:
        bus: has the listeners.

    Source: Spark `pyspark.sql.streaming.StreamingQueryManager`.
    """

    def __init__(self, bus: LocalListenerBus = LOCAL_BUS) -> None:
        self._bus = bus
        self._changed = threading.Condition()
        self._active: dict[str, ContinuousQuery] = {}
        # The first query that has ended since `resetTerminated`, and its error.
        self._ended = False
        self._failure: BaseException | None = None

    @property
    def active(self) -> list[ContinuousQuery]:
        """Return the queries that run, oldest first."""
        with self._changed:
            return list(self._active.values())

    def get(self, id: str) -> ContinuousQuery | None:  # noqa: A002 - Spark's name
        """Return the query with an id that runs; None if there is none."""
        return next((query for query in self.active if query.id == str(id)), None)

    def awaitAnyTermination(self, timeout: float | None = None) -> bool | None:
        """Wait until a query has ended, now or since `resetTerminated`.

        Args:
            timeout: seconds; None waits forever.

        Returns:
            With a timeout, whether a query has ended; without one, None.

        Raises:
            ConnectorError: the error of the first query that has failed since then.
        """
        if timeout is not None and timeout <= 0:
            raise ValueError(f"timeout must be a positive number of seconds, not {timeout}")
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._ended:
                # In short waits: an endless wait cannot be interrupted on Windows.
                left = 60.0 if until is None else until - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            if self._failure is not None:
                raise self._failure
            return None if timeout is None else self._ended

    def resetTerminated(self) -> None:
        """Forget the ended queries, for `awaitAnyTermination`."""
        with self._changed:
            self._ended, self._failure = False, None

    def addListener(self, listener: StreamingQueryListener) -> None:
        """Call a listener for every continuous query of this process, with PySpark's own events.

        `onQueryStarted` is called before `start()` returns, the others on a thread of their own. An error of a listener
        is logged. A slow listener does not delay a query, and loses the oldest events if more than 1,000 are pending.

        Args:
            listener: as `spark.streams.addListener` takes it.
        """
        self._bus.add_listener(listener)

    def removeListener(self, listener: StreamingQueryListener) -> None:
        """Remove a listener. Blocks until it has the pending events, at most 60 s."""
        self._bus.remove(listener)

    def began(self, query: ContinuousQuery) -> None:
        """Record the start of a query. For the engine."""
        with self._changed:
            self._active[query.runId] = query

    def ended(self, query: ContinuousQuery, failure: BaseException | None) -> None:
        """Record the end of a query. For the engine."""
        with self._changed:
            self._active.pop(query.runId, None)
            self._ended = True
            self._failure = self._failure or failure
            self._changed.notify_all()


STREAMS = ContinuousQueryManager()
"""The queries of this process."""
