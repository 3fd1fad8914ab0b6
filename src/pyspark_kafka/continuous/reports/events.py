"""Hands what happens to a continuous query to listeners, as the events of Spark's `StreamingQueryListener`."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pyspark_kafka._connector.spark.local_bus import LOCAL_BUS, LocalListenerBus
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.listener import StreamingQueryProgress

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryNames:
    """The names of a query, its source and its sink.

    Attributes:
        id: stays with the checkpoint.
        run_id: of this start.
        name: given by the user; None for none.
        source: the name of the source.
        sink: the name of the sink.
    """

    id: str
    run_id: str
    name: str | None
    source: str
    sink: str


class QueryEvents:
    """The events of one start of a query.

    Runs on: driver, or the client of Spark Connect. No method raises, and only `started` waits for listeners.

    Args:
        names: of the query.
        session: the key of its session, by which listeners choose; None for listeners that take every query.
        bus: where listeners are.
    """

    def __init__(self, names: QueryNames, session: object = None, bus: LocalListenerBus = LOCAL_BUS) -> None:
        self._names = names
        self._session = session
        self._bus = bus
        self._ids = uuid.UUID(names.id), uuid.UUID(names.run_id)

    def started(self) -> None:
        """Notify listeners that the query was started; all have been called when this returns."""
        from pyspark.sql.streaming.listener import QueryStartedEvent  # noqa: PLC0415 - on the driver, once

        # PySpark 4.0 has no tags of jobs; a report without them fits each version.
        ids = {"id": self._names.id, "runId": self._names.run_id}
        event = QueryStartedEvent.fromJson({**ids, "name": self._names.name, "timestamp": _now()})
        self._bus.call(event, self._session)

    def progressed(self, progress: Callable[[], StreamingQueryProgress]) -> None:
        """Notify listeners that an epoch was committed.

        Args:
            progress: builds the report; called if there is a listener.
        """
        from pyspark.sql.streaming.listener import QueryProgressEvent  # noqa: PLC0415 - on the driver

        if self._bus.has_listeners:
            self._bus.post(QueryProgressEvent(progress()), self._session)

    def idle(self) -> None:
        """Notify listeners that there was nothing to do."""
        from pyspark.sql.streaming.listener import QueryIdleEvent  # noqa: PLC0415 - on the driver

        self._bus.post(QueryIdleEvent(*self._ids, _now()), self._session)

    def terminated(self, failure: BaseException | None) -> None:
        """Notify listeners that the query has ended.

        Args:
            failure: why; None if it was stopped.
        """
        from pyspark.sql.streaming.listener import QueryTerminatedEvent  # noqa: PLC0415 - on the driver, once

        condition = failure.condition if isinstance(failure, ConnectorError) else None
        text = None if failure is None else str(failure)
        self._bus.post(QueryTerminatedEvent(*self._ids, text, condition), self._session)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
