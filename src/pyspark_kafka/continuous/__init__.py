"""Public: continuous queries, whose tasks read, compute and write without pause; Spark places and isolates the tasks.

    from pyspark_kafka import continuous

    query = (
        continuous.read(spark).format(source).load()
        .mapInArrow(function, "value binary")
        .writeStream.format(sink).option("checkpointLocation", location)
        .trigger(continuous="1 second").start()
    )

Experimental: `window`, `session_window` and `dropDuplicatesWithinWatermark` may change or be removed before 1.0.
Rooms: `epochs` (when epochs end, what the checkpoint holds), `channel` (between driver and tasks), `state` (values and
timers by key), `steps` (windows and other steps with state), `task` (what runs on executors), `placement` (Spark's job
and slots), `reports` (progress, events, the log), `run` (one run of a query), `query` (the builder, the handle, the
thread of the query).
Invariant: what was not committed is read again; an epoch is committed once by a sink whose commit is idempotent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

    from pyspark_kafka.continuous.query.builder import ContinuousReader
    from pyspark_kafka.continuous.query.handle import ContinuousQuery
    from pyspark_kafka.continuous.query.streams import STREAMS as streams  # noqa: N811 - as `spark.streams`
    from pyspark_kafka.continuous.query.terminal import ProgressLine
    from pyspark_kafka.continuous.query.windows import session_window, window

__all__ = ["read", "session_window", "show", "streams", "window"]


def read(spark: SparkSession) -> ContinuousReader:
    """Return the reader of a new continuous query.

    Args:
        spark: the session, classic or Spark Connect, whose executors run the query.
    """
    # Tasks import modules of this package, and need no builder.
    from pyspark_kafka._connector.spark.processes.required_version import require_pyspark  # noqa: PLC0415 - see above

    require_pyspark()
    from pyspark_kafka.continuous.query.builder import ContinuousReader  # noqa: PLC0415 - see above

    return ContinuousReader(spark)


def show(query: ContinuousQuery, console: Console | None = None) -> ProgressLine:
    """Show a query until it ends, in a line that changes about once a second; where there is no terminal, in lines.

    Runs on: driver, or the client of Spark Connect. Returns at once; the lines come from a thread.

    Args:
        query: what `start()` returned.
        console: where to show it; standard error if None.

    Returns:
        What shows the query; its `stop()` ends that and not the query.

    Raises:
        MissingDependencyError: rich is not installed, which the extra `cli` has.
    """
    from pyspark_kafka.continuous.query import terminal  # noqa: PLC0415 - see above

    return terminal.show(query, console)


# Tasks import this module, and need none of what a driver needs; so this is looked up when it is asked for.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return `streams`, the queries of this process as `spark.streams` has them, or one of the windows."""
        if name == "streams":
            from pyspark_kafka.continuous.query.streams import STREAMS  # noqa: PLC0415 - see above

            return STREAMS
        if name in ("window", "session_window"):
            from pyspark_kafka.continuous.query import windows  # noqa: PLC0415 - see above

            return getattr(windows, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
