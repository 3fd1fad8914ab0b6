"""Figures that a source adds to progress reports. Layer: connector."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from pyspark_kafka.connector.contract import ConnectorContract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.connector.offsets import Offset


class ReportsSourceMetrics(ConnectorContract):
    """A stream with figures of its own, such as how far a query is behind.

    PySpark does not ask Python sources for them; other engines may.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics`.
    """

    @abstractmethod
    def metrics(self, latestConsumedOffset: Offset | None) -> Mapping[str, str]:
        """Return figures by name, as text.

        Args:
            latestConsumedOffset: the position of the query; None if it has read nothing.
        """
