"""A base of listeners that get classic Spark's reports as one text each, as Spark Connect sends them."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql.streaming.listener import JStreamingQueryListener, QueryProgressEvent, StreamingQueryListener


class _TextListener(JStreamingQueryListener):
    """Hands events of classic Spark to a listener in Python.

    PySpark's own fetches each value of a report from the JVM in a call of its own, more than a hundred of them, and the
    next micro-batch waits for the processors in the meantime.
    """

    def onQueryProgress(self, jevent: Any) -> None:
        """Hand on the event of a micro-batch."""
        try:
            event = QueryProgressEvent.fromJson({"progress": json.loads(jevent.progress().json())})
        except Exception:  # noqa: BLE001 - another PySpark may have another form
            event = QueryProgressEvent.fromJObject(jevent)
        self.pylistener.onQueryProgress(event)


class TextEventsListener(StreamingQueryListener):
    """A listener whose events of classic Spark come as texts; on Spark Connect they always do."""

    @property
    def _jlistener(self) -> Any:
        """Return the listener that classic Spark calls; PySpark gets it when the listener is added."""
        if not hasattr(self, "_jlistenerobj"):
            from pyspark import SparkContext  # noqa: PLC0415 - of classic Spark

            jvm: Any = SparkContext._jvm  # noqa: SLF001 - as PySpark's own
            self._jlistenerobj = jvm.PythonStreamingQueryListenerWrapper(_TextListener(self))
        return self._jlistenerobj
