"""From the starting and ending options to offsets, with the look-ups that they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest, RangeEdge, SpecificOffsets, SpecificTimestamps
from pyspark_kafka._connector.planning import resolve_offsets, resolve_timestamps, timestamps_to_look_up
from pyspark_kafka.errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._connector.source.driver.offset_reader import KafkaOffsetReader

T = TypeVar("T")

# Partitions are listed again if a topic goes away between listing and look-up.
_LISTINGS = 3


class EdgeResolver:
    """Resolves the edges of one plan for the partitions that exist now; first offsets and ends are looked up once.

    Runs on: driver, one per plan; methods block on look-ups, with a deadline.

    Attributes:
        assigned: the subscribed partitions, sorted.
        topic_ids: the ids of their topics, by name; brokers before Kafka 2.8 do not return them.
    """

    def __init__(self, reader: KafkaOffsetReader) -> None:
        self._reader = reader
        self._earliest: Mapping[TopicPartition, int] | None = None
        self._latest: Mapping[TopicPartition, int] | None = None
        assignment = reader.fetch_assignment()
        self.assigned = assignment.partitions
        self.topic_ids = assignment.topic_ids

    def find_earliest(self) -> Mapping[TopicPartition, int]:
        """Return the first offset of each partition."""
        if self._earliest is None:
            self._earliest = self._reader.fetch_earliest_offsets(self.assigned)
        return self._earliest

    def find_latest(self) -> Mapping[TopicPartition, int]:
        """Return the end of each partition."""
        if self._latest is None:
            self._latest = self._reader.fetch_latest_offsets(self.assigned)
        return self._latest

    def find_starts(self, edge: RangeEdge, *, latest_without_match: bool) -> dict[TopicPartition, int]:
        """Return the start of each partition.

        Args:
            edge: the start of the read.
            latest_without_match: whether a partition without a record at or after the time starts at its end.

        Raises:
            OptionError: the edge names other partitions, or a time without a record at or after it.
        """
        return self._resolve(edge, "starting", latest_without_match=latest_without_match)

    def find_fixed_starts(self, edge: RangeEdge) -> dict[TopicPartition, int]:
        """Return the starts that do not depend on a look-up of times or ends: numbers, and first offsets.

        For an edge that named the partitions of a former moment.
        """
        if not isinstance(edge, SpecificOffsets):
            return {}
        first = [tp for tp in self.assigned if edge.partitions.get(tp, edge.topics.get(tp.topic)) == Earliest()]
        numbers = {tp: offset for tp, offset in edge.partitions.items() if isinstance(offset, int)}
        return {**self._reader.fetch_earliest_offsets(first), **numbers}

    def find_ends(self, edge: RangeEdge) -> dict[TopicPartition, int]:
        """Return the exclusive end of each partition; without a record at or after the time, the end of its log.

        Raises:
            OptionError: the edge names other partitions.
        """
        return self._resolve(edge, "ending", latest_without_match=True)

    def _resolve(self, edge: RangeEdge, side: str, *, latest_without_match: bool) -> dict[TopicPartition, int]:
        if isinstance(edge, (AtTimestamp, SpecificTimestamps)):
            option = f"{side}Timestamp" if isinstance(edge, AtTimestamp) else f"{side}OffsetsByTimestamp"
            timestamps = timestamps_to_look_up(edge, self.assigned, option=option)
            if latest_without_match:
                # Before the timestamps: a record that is written between the two look-ups must not be skipped.
                self.find_latest()
            found = self._reader.fetch_offsets_at(timestamps)
            return resolve_timestamps(
                timestamps, found, self._latest or {}, option=option, latest_without_match=latest_without_match
            )
        earliest = {} if isinstance(edge, Latest) else self.find_earliest()
        latest = {} if isinstance(edge, Earliest) else self.find_latest()
        return resolve_offsets(edge, self.assigned, earliest, latest, option=f"{side}Offsets")


def resolve_listed(reader: KafkaOffsetReader, resolve: Callable[[EdgeResolver], T]) -> T:
    """Return the result of `resolve` for the current partitions; list them again if a topic disappears meanwhile."""
    for _ in range(_LISTINGS - 1):
        resolver = EdgeResolver(reader)
        try:
            return resolve(resolver)
        except BrokerError as error:
            if error.condition != "UNKNOWN_TOPIC":
                raise
    return resolve(EdgeResolver(reader))
