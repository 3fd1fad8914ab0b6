"""Ranges with open ends: ends that are resolved when their task starts. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka._base.model import OffsetRange
from pyspark_kafka._base.offsets import Earliest, Latest, SpecificOffsets
from pyspark_kafka._connector.planning.task_ranges import split_ranges
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._base.offsets import RangeEdge

# Higher than every offset: the end if no filter lowers it.
NO_END = 2**63


@dataclass(frozen=True, slots=True)
class OpenEnds:
    """The ends of a range that come from the log when the task starts; at least one.

    Attributes:
        start_from: the range starts at the log's first offset, but not below this offset; None: at the planned start.
        end_by: the range ends at the log's end, but not after this offset; None: at the planned end.
        strict: whether the other end comes from an option, so that a log that has passed it is an error. If
            a filter or a split has cut the range there, such a log has no records of the range.
    """

    start_from: int | None = None
    end_by: int | None = None
    strict: bool = True

    @property
    def both_open(self) -> bool:
        """Whether both ends are open."""
        return self.start_from is not None and self.end_by is not None

    def asks_first_offset(self, planned: OffsetRange) -> bool:
        """Return whether the log's first offset must be looked up to close this range.

        A range that was planned to start at `start_from` cannot start below it; if the log begins above it by now, the
        first fetch reports it.
        """
        if self.start_from is None:
            return False
        return planned.start_offset != self.start_from or (self.end_by is None and self.strict)

    def close(self, planned: OffsetRange, first_offset: int | None, log_end: int | None) -> OffsetRange:
        """Return the range to read.

        Args:
            planned: the planned range.
            first_offset: the log's first offset; None if it was not looked up.
            log_end: the log's end; None if it was not looked up.

        Raises:
            OptionError: the start of an option lies after the log's end, or the end of an option before
                the log's first offset (condition RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET).
        """
        start, end = planned.start_offset, planned.end_offset
        if self.start_from is not None and first_offset is not None:
            if self.end_by is None and self.strict and first_offset > end:
                raise start_behind_end([OffsetRange(planned.topic_partition, first_offset, end)])
            start = max(first_offset, self.start_from)
        if self.end_by is not None and log_end is not None:
            if self.start_from is None and self.strict and start > log_end:
                raise start_behind_end([OffsetRange(planned.topic_partition, start, log_end)])
            end = min(log_end, self.end_by)
        # A log that has passed a cut, or belongs to a recreated topic, has no records of the range.
        return OffsetRange(planned.topic_partition, start, max(start, end))


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """One task of a batch read.

    Attributes:
        offset_range: the planned range.
        open_ends: the ends that are looked up when the task starts; None: neither.
    """

    offset_range: OffsetRange
    open_ends: OpenEnds | None = None

    @property
    def starts_behind_end(self) -> bool:
        """Whether the start lies after the end, which is an error.

        With two open ends it is not an error: all records of the log at the look-up of its end were deleted since.
        """
        return self.offset_range.size < 0 and not (self.open_ends is not None and self.open_ends.both_open)

    def narrow(self, start_from: int, end_by: int) -> PlannedRange | None:
        """Return its part in `[start_from, end_by)`; None if that part can never have a record."""
        planned, open_ends = self.offset_range, self.open_ends
        start = max(planned.start_offset, start_from)
        end = max(start, min(planned.end_offset, end_by))
        if open_ends is not None:
            open_ends = OpenEnds(
                start_from=None if open_ends.start_from is None else max(open_ends.start_from, start_from),
                end_by=None if open_ends.end_by is None else min(open_ends.end_by, end_by),
                strict=open_ends.strict
                and not (open_ends.start_from is None and start != planned.start_offset)
                and not (open_ends.end_by is None and end != planned.end_offset),
            )
        narrowed = PlannedRange(OffsetRange(planned.topic_partition, start, end), open_ends)
        return narrowed if narrowed._may_hold_records else None

    @property
    def _may_hold_records(self) -> bool:
        lowest, highest = self.offset_range.start_offset, self.offset_range.end_offset
        if self.open_ends is not None and self.open_ends.end_by is not None:
            highest = self.open_ends.end_by
            lowest = lowest if self.open_ends.start_from is None else self.open_ends.start_from
        return lowest < highest


def start_behind_end(ranges: Iterable[OffsetRange]) -> OptionError:
    """Build the error of ranges whose start lies after their end."""
    return OptionError(
        f"The start is after the end of {', '.join(map(str, ranges))}. Nothing was read.",
        condition="RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET",
        hint="Check the starting and ending options, and whether the topic was recreated.",
    )


def plan_open_ends(starting: RangeEdge, ending: RangeEdge, topic_partition: TopicPartition) -> OpenEnds | None:
    """Return the ends of a range that the options leave open (`earliest`, `latest`, -2 and -1); None if both are fixed.

    Numbers and times are resolved when a read is planned.

    Source: Spark `KafkaOffsetReaderAdmin.fetchPartitionOffsets`, `KafkaOffsetRangeLimit`.
    """
    open_start = _edge_of(starting, topic_partition) == Earliest()
    open_end = _edge_of(ending, topic_partition) == Latest()
    if not open_start and not open_end:
        return None
    return OpenEnds(start_from=0 if open_start else None, end_by=NO_END if open_end else None)


def _edge_of(edge: RangeEdge, topic_partition: TopicPartition) -> object:
    if isinstance(edge, SpecificOffsets):
        return edge.partitions.get(topic_partition, edge.topics.get(topic_partition.topic))
    return edge


def split_planned(
    ranges: Sequence[PlannedRange], *, min_partitions: int | None, max_records: int | None
) -> tuple[PlannedRange, ...]:
    """Split planned ranges; the first part of a range keeps an open start, the last part an open end.

    Empty ranges are left out, unless their end is open: records may be written before the task runs.

    Raises:
        OptionError: see `split_ranges`.

    Source: Spark `KafkaOffsetReaderAdmin.getOffsetRangesFromUnresolvedOffsets`.
    """
    parts: dict[TopicPartition, list[OffsetRange]] = {}
    whole = [planned.offset_range for planned in ranges]
    for part in split_ranges(whole, min_partitions=min_partitions, max_records=max_records):
        parts.setdefault(part.topic_partition, []).append(part)
    found: list[PlannedRange] = []
    for planned in ranges:
        found.extend(_with_open_ends(planned, parts.get(planned.offset_range.topic_partition, [])))
    return tuple(found)


def _with_open_ends(planned: PlannedRange, parts: Sequence[OffsetRange]) -> Iterable[PlannedRange]:
    open_ends = planned.open_ends
    if len(parts) == 1 or (not parts and open_ends is not None and open_ends.end_by is not None):
        return [planned]
    found = [PlannedRange(part) for part in parts]
    if found and open_ends is not None and open_ends.start_from is not None:
        found[0] = replace(found[0], open_ends=OpenEnds(start_from=open_ends.start_from, strict=False))
    if found and open_ends is not None and open_ends.end_by is not None:
        found[-1] = replace(found[-1], open_ends=OpenEnds(end_by=open_ends.end_by, strict=False))
    return found
