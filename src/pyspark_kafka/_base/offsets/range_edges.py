"""The start or end of a read, as options set it: an edge, before it is resolved to offsets. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Earliest:
    """The oldest offset that a partition still holds."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The end of a partition's log; with `read_committed`, its last stable offset."""


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first offset whose record timestamp is `timestamp_ms` (milliseconds since 1970-01-01 UTC) or later."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class SpecificOffsets:
    """Offsets by partition, and `Earliest()` or `Latest()` by topic, as the JSON of an option has them.

    Attributes:
        partitions: an offset (>= 0), `Earliest()` or `Latest()` of each named partition.
        topics: `Earliest()` or `Latest()` for all partitions that a topic has when they are looked up.
            A topic is in one of the two mappings only.
    """

    partitions: Mapping[TopicPartition, PartitionEdge] = field(default_factory=dict)
    topics: Mapping[str, Earliest | Latest] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", dict(sorted(self.partitions.items())))
        object.__setattr__(self, "topics", dict(sorted(self.topics.items())))

    def __hash__(self) -> int:
        return hash((tuple(self.partitions.items()), tuple(self.topics.items())))


@dataclass(frozen=True, slots=True)
class SpecificTimestamps:
    """A timestamp by partition (milliseconds since 1970-01-01 UTC): each starts or ends as with `AtTimestamp`."""

    partitions: Mapping[TopicPartition, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", dict(sorted(self.partitions.items())))

    def __hash__(self) -> int:
        return hash(tuple(self.partitions.items()))


PartitionEdge: TypeAlias = int | Earliest | Latest
OffsetEdge: TypeAlias = Earliest | Latest | SpecificOffsets
TimestampEdge: TypeAlias = AtTimestamp | SpecificTimestamps
RangeEdge: TypeAlias = OffsetEdge | TimestampEdge


def timestamp_text(timestamp_ms: int) -> str:
    """Return a timestamp as ISO 8601 in UTC, for errors; beyond the year 9999 as its number.

    Example:
        >>> timestamp_text(1_767_225_600_007)
        '2026-01-01T00:00:00.007Z'
    """
    try:
        at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms since 1970"
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
