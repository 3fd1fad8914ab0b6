"""Reports the end of batch queries of classic Spark."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    # The JVM's QueryExecution, the nanoseconds that the query took, and why it failed.
    BatchEnded = Callable[[Any, int, str | None], None]

_LOG = logging.getLogger("pyspark_kafka.lineage")


class BatchEnds:
    """Calls back at the end of each batch query of a session; the JVM calls it in the thread of a listener bus.

    Args:
        ended: must not block.
    """

    # What py4j reads: the interface of the JVM.
    Java: ClassVar = SimpleNamespace(implements=["org.apache.spark.sql.util.QueryExecutionListener"])

    def __init__(self, ended: BatchEnded) -> None:
        self._ended: BatchEnded | None = ended

    def join(self, session: SparkSession) -> None:
        """Begin to report; without effect on Spark Connect, whose client has no plans."""
        java_session: Any = getattr(session, "_jsparkSession", None)
        if java_session is None:
            return
        from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415 - of classic Spark

        start: Any = ensure_callback_server_started
        start(session.sparkContext._gateway)  # noqa: SLF001 - as PySpark's own listeners
        java_session.listenerManager().register(self)

    def leave(self) -> None:
        """Report no more: the JVM may still call, because it knows no way to compare listeners in Python."""
        self._ended = None

    def onSuccess(self, _name: str, execution: Any, duration_ns: int) -> None:
        """Report a query that has succeeded."""
        self._report(execution, duration_ns, None)

    def onFailure(self, _name: str, execution: Any, error: Any) -> None:
        """Report a query that has failed."""
        self._report(execution, 0, str(error.toString()))

    def _report(self, execution: Any, duration_ns: int, error: str | None) -> None:
        ended = self._ended
        if ended is None:
            return
        try:
            ended(execution, duration_ns, error)
        except Exception:  # noqa: BLE001 - logged
            _LOG.warning("Lineage: the end of a batch query cannot be read; it is ignored.", exc_info=True)


def await_reports(session: Any, within_s: float) -> None:
    """Wait until the JVM has called all listeners of classic Spark for what has happened so far."""
    if getattr(session, "_jsparkSession", None) is None:
        return
    context = session.sparkContext._jsc  # noqa: SLF001 - PySpark has no other way
    if context is not None and not context.sc().isStopped():
        context.sc().listenerBus().waitUntilEmpty(int(within_s * 1_000))
