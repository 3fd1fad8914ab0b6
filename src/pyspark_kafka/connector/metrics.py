"""Figures that a source adds to progress reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.connector.offsets import Offset


class ReportsSourceMetrics(ABC):
    """A stream that tells figures of its own, such as how far a query is behind.

    PySpark does not ask Python sources for them; other engines may.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics`.
    """

    @abstractmethod
    def metrics(self, latestConsumedOffset: Offset | None) -> Mapping[str, str]:
        """Give figures by name, as text.

        Args:
            latestConsumedOffset: where the query has read to; None where it has read nothing.
        """
