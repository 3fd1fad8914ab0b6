"""How far streaming queries are behind the ends of their topics, for logs and monitoring.

    from pyspark_kafka import metrics

    metrics.listen(spark)

From then on every micro-batch of a query that reads with this package gives a line in the log `pyspark_kafka.metrics`,
and `latest` and `snapshot` give the newest figures. See docs/monitoring.md. Layer: beside cli.
"""

from pyspark_kafka.spark.metrics_listener import (
    MetricsListener,
    QueryMetrics,
    SourceMetrics,
    latest,
    listen,
    snapshot,
)

__all__ = ["MetricsListener", "QueryMetrics", "SourceMetrics", "latest", "listen", "snapshot"]
