"""Public: continuous queries, whose tasks read, compute and write without pause; Spark places and isolates the tasks.

    from pyspark_kafka import continuous

    query = (
        continuous.read(spark).format(source).load()
        .mapInArrow(function, "value binary")
        .writeStream.format(sink).option("checkpointLocation", location)
        .trigger(continuous="1 second").start()
    )

Experimental: `window`, `session_window` and `dropDuplicatesWithinWatermark` may change or be removed before 1.0.
Rooms: `epochs` (when epochs end, what the checkpoint holds), `traces` (spans), `channel` (between driver and tasks),
`state` (values and timers by key), `steps` (windows and other steps with state), `task` (what runs on executors),
`placement` (Spark's job and slots), `reports` (progress, events, the log), `run` (one run of a query), `query` (the
builder, the handle, the thread of the query).
Invariant: what was not committed is read again; an epoch is committed once by a sink whose commit is idempotent.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_kafka.continuous.query.builder import ContinuousReader
    from pyspark_kafka.continuous.query.handle import ContinuousQuery
    from pyspark_kafka.continuous.query.streams import STREAMS as streams  # noqa: N811 - as `spark.streams`
    from pyspark_kafka.continuous.query.terminal import show
    from pyspark_kafka.continuous.query.windows import session_window, window
    from pyspark_kafka.continuous.state.by_key import StateByKey

__all__ = ["ContinuousQuery", "StateByKey", "read", "session_window", "show", "streams", "window"]
__dir__ = __all__.copy

# Loaded at first use: tasks import modules of this package, and need none of what a driver needs.
_PLACES = {
    "ContinuousQuery": ("query.handle", "ContinuousQuery"),
    "StateByKey": ("state.by_key", "StateByKey"),
    "session_window": ("query.windows", "session_window"),
    "show": ("query.terminal", "show"),
    "streams": ("query.streams", "STREAMS"),
    "window": ("query.windows", "window"),
}


def read(spark: SparkSession) -> ContinuousReader:
    """Return the reader of a new continuous query.

    Args:
        spark: the session, classic or Spark Connect, whose executors run the query.
    """
    from pyspark_kafka._connector.spark.processes.required_version import require_pyspark  # noqa: PLC0415 - see above

    require_pyspark()
    from pyspark_kafka.continuous.query.builder import ContinuousReader  # noqa: PLC0415 - see above

    return ContinuousReader(spark)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _PLACES[name]
        return getattr(import_module(f"{__name__}.{module}"), attribute)
