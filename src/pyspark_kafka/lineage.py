"""Lineage of queries, as events of OpenLineage: which topics they read and write, and how the runs went.

    from pyspark_kafka import lineage

    lineage.listen(spark)

The client of OpenLineage sends the events, configured as for any program: `OPENLINEAGE_URL`, `openlineage.yml`. See
<https://pyspark-kafka.github.io/pyspark-kafka/lineage/>.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._ops.lineage import listener as _listener
from pyspark_kafka._ops.lineage.listener import LineageListener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LineageListener", "listen"]
__dir__ = __all__.copy


def listen(session: SparkSession) -> LineageListener:
    """Send events of OpenLineage about the queries of a session that read or write Kafka with this package.

    A second call for the same session has no effect and returns the same listener. Events are sent in a thread of their
    own: a collector that is slow or away delays no query. What cannot be sent is given up, and logged once.

    Runs on: driver, or the client with Spark Connect. Needs the extra `lineage`.

    Args:
        session: classic or Spark Connect.

    Returns:
        The listener; `stop()` ends it. If `OPENLINEAGE_DISABLED` is true, it sends nothing.

    Raises:
        MissingDependencyError: the package `openlineage-python` is not installed.
        SetupError: the configuration of OpenLineage's client is not valid.
        OptionError: `PYSPARK_KAFKA_REFERENCES` is set and does not allow the file of this configuration.
    """
    return _listener.listen(session)
