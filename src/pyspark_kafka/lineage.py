"""Lineage of queries, as events of OpenLineage: which topics they read and write, and how the runs went.

    from pyspark_kafka import lineage

    lineage.listen(spark)

The client of OpenLineage sends the events, configured as for any program: `OPENLINEAGE_URL`, `openlineage.yml`. See
<https://pyspark-kafka.github.io/pyspark-kafka/lineage/>.
"""

from pyspark_kafka._ops.lineage.listener import LineageListener, listen

__all__ = ["LineageListener", "listen"]
__dir__ = __all__.copy
