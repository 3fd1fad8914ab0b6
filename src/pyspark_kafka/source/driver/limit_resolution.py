"""From what the options say of start and end to offsets, with the look-ups that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.errors import BrokerError
from pyspark_kafka.offsets import AtTimestamp, Earliest, Latest, OffsetRangeLimit, SpecificOffsets, SpecificTimestamps
from pyspark_kafka.planning import resolve_offsets, resolve_timestamps, timestamps_to_look_up

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.source.driver.offset_reader import KafkaOffsetReader

T = TypeVar("T")

_LISTINGS = 3


class LimitResolver:
    """Resolves the limits of one plan for the partitions there are now; the first and last offsets are asked for once.

    Runs on: driver, one per plan; methods block on look-ups, with a deadline.

    Attributes:
        assigned: the partitions that the subscription means, sorted.
        topic_ids: the ids of their topics, by name, where brokers tell them.
    """

    def __init__(self, reader: KafkaOffsetReader) -> None:
        self._reader = reader
        self._earliest: Mapping[TopicPartition, int] | None = None
        self._latest: Mapping[TopicPartition, int] | None = None
        assignment = reader.assignment()
        self.assigned = assignment.partitions
        self.topic_ids = assignment.topic_ids

    def earliest(self) -> Mapping[TopicPartition, int]:
        """Give the first offset of each partition."""
        if self._earliest is None:
            self._earliest = self._reader.earliest_offsets(self.assigned)
        return self._earliest

    def latest(self) -> Mapping[TopicPartition, int]:
        """Give the end of each partition."""
        if self._latest is None:
            self._latest = self._reader.latest_offsets(self.assigned)
        return self._latest

    def starts(self, limit: OffsetRangeLimit, *, latest_without_match: bool) -> dict[TopicPartition, int]:
        """Give where each partition starts.

        Args:
            limit: what the option says.
            latest_without_match: whether a partition without a record of the time asked for starts at its end.

        Raises:
            OptionError: the limit does not fit the partitions, or there is no record of the time asked for.
        """
        return self._resolve(limit, "starting", latest_without_match=latest_without_match)

    def fixed_starts(self, limit: OffsetRangeLimit) -> dict[TopicPartition, int]:
        """Give the starts that a limit names and that no look-up changes: numbers, and first offsets where they are.

        For a limit that fitted the partitions that there were once.
        """
        if not isinstance(limit, SpecificOffsets):
            return {}
        first = [
            where for where in self.assigned if limit.partitions.get(where, limit.topics.get(where.topic)) == Earliest()
        ]
        numbers = {where: offset for where, offset in limit.partitions.items() if isinstance(offset, int)}
        return {**self._reader.earliest_offsets(first), **numbers}

    def ends(self, limit: OffsetRangeLimit) -> dict[TopicPartition, int]:
        """Give where each partition ends, exclusive; without a record of the time asked for, that is its end.

        Raises:
            OptionError: the limit does not fit the partitions.
        """
        return self._resolve(limit, "ending", latest_without_match=True)

    def _resolve(self, limit: OffsetRangeLimit, side: str, *, latest_without_match: bool) -> dict[TopicPartition, int]:
        if isinstance(limit, (AtTimestamp, SpecificTimestamps)):
            option = f"{side}Timestamp" if isinstance(limit, AtTimestamp) else f"{side}OffsetsByTimestamp"
            timestamps = timestamps_to_look_up(limit, self.assigned, option=option)
            if latest_without_match:
                # Before the timestamps: a record that comes between the two look-ups must not be skipped.
                self.latest()
            found = self._reader.offsets_at(timestamps)
            return resolve_timestamps(
                timestamps, found, self._latest or {}, option=option, latest_without_match=latest_without_match
            )
        earliest = {} if isinstance(limit, Latest) else self.earliest()
        latest = {} if isinstance(limit, Earliest) else self.latest()
        return resolve_offsets(limit, self.assigned, earliest, latest, option=f"{side}Offsets")


def resolve_listed(reader: KafkaOffsetReader, resolve: Callable[[LimitResolver], T]) -> T:
    """Resolve limits for the partitions that are listed; anew where a topic goes away between listing and look-up."""
    for _ in range(_LISTINGS - 1):
        resolver = LimitResolver(reader)
        try:
            return resolve(resolver)
        except BrokerError as error:
            if error.condition != "UNKNOWN_TOPIC":
                raise
    return resolve(LimitResolver(reader))
