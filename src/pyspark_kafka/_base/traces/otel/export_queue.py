"""The queue between the spans of a process and an exporter that may hang."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import SpanProcessor

from pyspark_kafka._base.counters import COUNTERS

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG = logging.getLogger(__name__)

SPANS_DROPPED = "spans_dropped"
"""The counter of spans that no exporter got."""

# As the SDK's own processors.
DELAY_S = 5.0
_MAX_SPANS = 2_048
_MAX_BATCH = 512


class ExportQueue(SpanProcessor):
    """Hands ended spans to an exporter, on one thread that begins with the first span.

    Spans wait for others, so that a process with a span a second sends a request every few seconds. Spans that find the
    queue full are dropped; of an exporter that fails, its batch is dropped. Both are counted, and logged once each. A
    fork leaves the thread behind: a forked child needs a queue of its own.

    Args:
        exporter: of the SDK.
        delay_s: how long a span waits for others at most, in seconds.
        max_spans: how many spans wait at most.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        exporter: Any,
        *,
        delay_s: float = DELAY_S,
        max_spans: int = _MAX_SPANS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._exporter, self._delay_s, self._max_spans, self._clock = exporter, delay_s, max_spans, clock
        self._spans: deque[Any] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        # Whether the exporter holds a batch; whether it has exceeded a deadline, and has not returned since.
        self._is_exporting = self._is_late = self._is_closed = False
        self._flushing = 0
        self._logged: set[str] = set()

    def on_end(self, span: Any) -> None:
        """Queue a recorded span. Never waits."""
        if not span.context.trace_flags.sampled:
            return
        with self._changed:
            if self._is_closed or len(self._spans) >= self._max_spans:
                is_dropped = True
            else:
                is_dropped = False
                self._spans.append(span)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="pyspark-kafka-spans", daemon=True)
                    self._thread.start()
                self._changed.notify_all()
        if is_dropped:
            self._drop(1, "The exporter of spans does not keep up")

    def force_flush(self, timeout_millis: int = 0) -> bool:
        """Wait until all queued spans are exported, at most for the time limit; return whether they are.

        After a missed deadline there is no wait until the exporter returns.
        """
        until = self._clock() + timeout_millis / 1000
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            try:
                while self._spans or self._is_exporting:
                    left = until - self._clock()
                    if self._is_late or left <= 0:
                        self._is_late = True
                        return False
                    self._changed.wait(left)
            finally:
                self._flushing -= 1
        return True

    def shutdown(self) -> None:
        """Take no further spans. What is queued is exported as long as the process lives."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._spans or self._is_closed)
                if not self._spans:
                    return
                self._changed.wait_for(self._is_due, self._delay_s)
                batch = [self._spans.popleft() for _ in range(min(len(self._spans), _MAX_BATCH))]
                self._is_exporting = True
            try:
                is_taken = getattr(self._exporter.export(batch), "name", "") == "SUCCESS"
            except Exception:  # noqa: BLE001 - of code that is not ours; the query must not notice
                is_taken = False
            if not is_taken:
                self._drop(len(batch), "The exporter of spans has failed")
            with self._changed:
                self._is_exporting = self._is_late = False
                self._changed.notify_all()

    def _is_due(self) -> bool:
        return self._flushing > 0 or self._is_closed or len(self._spans) >= _MAX_BATCH

    def _drop(self, count: int, reason: str) -> None:
        COUNTERS.add_count(SPANS_DROPPED, count)
        if reason not in self._logged:
            self._logged.add(reason)
            _LOG.warning(
                "%s: spans of this process are dropped. The query is not affected. Further ones are counted, and not "
                "logged.",
                reason,
            )
