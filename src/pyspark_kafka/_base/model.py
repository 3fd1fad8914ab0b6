"""Plain values that every layer shares: frozen, slotted, picklable. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class IsolationLevel(str, Enum):
    """The records that a reader sees, by Kafka's name (`isolation.level`)."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"

    @property
    def wire_value(self) -> int:
        """The number that Fetch and ListOffsets requests carry."""
        return 1 if self is IsolationLevel.READ_COMMITTED else 0


class TopicPartition(NamedTuple):
    """One partition of one topic. Ordered by topic, then by number.

    A tuple, because the driver sorts and looks up thousands of them at each trigger.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def __repr__(self) -> str:
        return f"TopicPartition({self.topic!r}, {self.partition})"


# The end of a range that is read for as long as the caller likes.
NO_END = 1 << 63


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The half-open range `[start_offset, end_offset)` of a partition's log; `NO_END` as its end for one without."""

    topic_partition: TopicPartition
    start_offset: int
    end_offset: int

    @property
    def size(self) -> int:
        """The number of offsets in the range; the number of records may be smaller (control records, compaction)."""
        return self.end_offset - self.start_offset

    def __str__(self) -> str:
        end = "no end" if self.end_offset >= NO_END else self.end_offset
        return f"{self.topic_partition} [{self.start_offset}, {end})"

    def __repr__(self) -> str:
        return f"OffsetRange({self})"
