"""Public: continuous queries, whose tasks read, compute and write without pause; Spark places and isolates the tasks.

    from pyspark_kafka import continuous

    query = (
        continuous.read(spark).format(source).load()
        .map_in_arrow(function, "value binary")
        .write_stream.format(sink).option("checkpointLocation", location)
        .trigger(continuous="1 second").start()
    )

Rooms: `epochs` (when epochs end, what the checkpoint holds), `channel` (between driver and tasks), `task` (what runs on
executors), `query` (the builder, the handle, the thread of the query).
Invariant: what was not committed is read again; an epoch is committed once by a sink whose commit is idempotent.
Layer: continuous, above spark/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_kafka.continuous.query.builder import ContinuousReader

__all__ = ["read"]


def read(spark: SparkSession) -> ContinuousReader:
    """Return the reader of a new continuous query.

    Args:
        spark: the session, classic or Spark Connect, whose executors run the query.
    """
    # Tasks import modules of this package, and need no builder.
    from pyspark_kafka.continuous.query.builder import ContinuousReader  # noqa: PLC0415 - see above

    return ContinuousReader(spark)
