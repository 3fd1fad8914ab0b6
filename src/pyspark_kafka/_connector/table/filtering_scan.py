"""A batch read of Kafka that takes the filters of its query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._connector.planning.record_filter import RecordFilter
from pyspark_kafka._connector.table.record_filters import translate_filters
from pyspark_kafka._connector.table.scan import KafkaScan, KafkaScanBuilder
from pyspark_kafka.connector import SupportsPushDownFilters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka.connector.filters import Filter


class FilteringKafkaScanBuilder(KafkaScanBuilder, SupportsPushDownFilters):
    """A scan builder that also accepts a query's filters, for a batch read with option `pushDownPredicate`.

    Runs on: driver; used once.

    Source: Spark's connector has none.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._filter = RecordFilter()

    def pushFilters(self, wanted: Sequence[Filter]) -> Sequence[Filter]:
        """Narrow the read, and return the filters that ranges of offsets do not express in full."""
        found, left = translate_filters(wanted)
        self._filter &= found
        return left

    def build(self) -> KafkaScan:
        """Return the read."""
        return KafkaScan(self._options, self._asked, self._filter)
