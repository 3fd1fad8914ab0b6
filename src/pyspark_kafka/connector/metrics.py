"""Figures that a source adds to progress reports."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from pyspark_kafka.connector.contract import ConnectorContract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.connector.offsets import Offset


class ReportsSourceMetrics(ConnectorContract):
    """A stream with figures of its own, such as how far a query is behind.

    Who asks: Spark, of a stream in Java, after each micro-batch, for `SourceProgress.metrics`. PySpark does not: its
    stream of a Python source (`PythonMicroBatchStream`, as of Spark 4.3) does not implement the interface, and no
    adapter can pass the figures on. What reaches the progress events there is `reportLatestOffset`. For Kafka sources
    `pyspark_kafka.metrics` computes the same figures from the offsets of these events; of tables of one's own it has
    none. A program that drives a stream itself can call `metrics`.

    Runs on: driver.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics`.
    """

    @abstractmethod
    def metrics(self, latestConsumedOffset: Offset | None) -> Mapping[str, str]:
        """Return figures by name, as text. After each micro-batch; must not block.

        Args:
            latestConsumedOffset: the position of the query; None if it has read nothing.
        """
