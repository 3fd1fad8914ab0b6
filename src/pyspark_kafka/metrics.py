"""How far streaming queries are behind the ends of their topics, for logs and monitoring.

    from pyspark_kafka import metrics

    metrics.listen(spark)

From then on every micro-batch of a query that reads with this package writes a line to the log `pyspark_kafka.metrics`,
and `latest` and `snapshot` return the newest figures. See docs/monitoring.md. Layer: below cli.
"""

from pyspark_kafka.spark.metrics.listener import MetricsListener, latest, listen, snapshot
from pyspark_kafka.spark.metrics.values import QueryMetrics, SourceMetrics

__all__ = ["MetricsListener", "QueryMetrics", "SourceMetrics", "latest", "listen", "snapshot"]
