"""Ranges of which an end stays open until their task starts: what is known of it when planned, and how it is closed.

Layer: planning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka.errors import OptionError
from pyspark_kafka.model import OffsetRange
from pyspark_kafka.offsets import Earliest, Latest, SpecificOffsets
from pyspark_kafka.planning.splitting import split_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.offsets import OffsetRangeLimit

# Behind every offset there can be: no filter lowers an end.
NO_END = 2**63


@dataclass(frozen=True, slots=True)
class LateBinding:
    """Which ends of a range are those that the log has when a task starts. At least one is.

    Attributes:
        start_from: the range starts at the log's first offset, yet not below this one; None: where it was planned.
        end_by: the range ends where the log does, yet not behind this offset; None: where it was planned.
        strict: whether the end that stays comes from an option, so that a log which has passed it is an error. An
            end that a filter or a split has made is not: then there is nothing to read.
    """

    start_from: int | None = None
    end_by: int | None = None
    strict: bool = True

    @property
    def both_open(self) -> bool:
        """Whether nothing of the range stays where it was planned."""
        return self.start_from is not None and self.end_by is not None

    def asks_first_offset(self, planned: OffsetRange) -> bool:
        """Tell whether the log's first offset must be looked up to close this range.

        A range that was planned to start at `start_from` cannot start below it; where the log begins above it by now,
        the first fetch tells.
        """
        if self.start_from is None:
            return False
        return planned.start_offset != self.start_from or (self.end_by is None and self.strict)

    def close(self, planned: OffsetRange, first_offset: int | None, log_end: int | None) -> OffsetRange:
        """Give the range to read.

        Args:
            planned: the range as it was when planned.
            first_offset: the log's first offset; None where it was not looked up.
            log_end: the log's end; None where it was not looked up.

        Raises:
            OptionError: the start that an option names lies behind the log's end, or the end that one names before
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
        # A log that has moved past a cut, or was made anew, holds nothing of the range.
        return OffsetRange(planned.topic_partition, start, max(start, end))


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """One task of a batch read.

    Attributes:
        offset_range: the range as it is when planned.
        late: which of its ends are looked up again when the task starts; None: neither.
    """

    offset_range: OffsetRange
    late: LateBinding | None = None

    @property
    def crossed(self) -> bool:
        """Whether the start lies behind the end.

        Not so where both are open: then everything that there was when the end was looked up is gone since.
        """
        return self.offset_range.size < 0 and not (self.late is not None and self.late.both_open)

    def narrow(self, start_from: int, end_by: int) -> PlannedRange | None:
        """Give what remains of it in `[start_from, end_by)`; None where that never holds a record."""
        planned, late = self.offset_range, self.late
        start = max(planned.start_offset, start_from)
        end = max(start, min(planned.end_offset, end_by))
        if late is not None:
            late = LateBinding(
                start_from=None if late.start_from is None else max(late.start_from, start_from),
                end_by=None if late.end_by is None else min(late.end_by, end_by),
                strict=late.strict
                and not (late.start_from is None and start != planned.start_offset)
                and not (late.end_by is None and end != planned.end_offset),
            )
        narrowed = PlannedRange(OffsetRange(planned.topic_partition, start, end), late)
        return narrowed if narrowed._may_hold_records else None

    @property
    def _may_hold_records(self) -> bool:
        lowest, highest = self.offset_range.start_offset, self.offset_range.end_offset
        if self.late is not None and self.late.end_by is not None:
            highest = self.late.end_by
            lowest = lowest if self.late.start_from is None else self.late.start_from
        return lowest < highest


def start_behind_end(ranges: Iterable[OffsetRange]) -> OptionError:
    """Build the error of ranges whose start lies behind their end."""
    return OptionError(
        f"The start lies behind the end of {', '.join(map(str, ranges))}. Nothing was read.",
        condition="RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET",
        hint="Check the starting and ending options, and whether the topic was recreated.",
    )


def late_binding(starting: OffsetRangeLimit, ending: OffsetRangeLimit, where: TopicPartition) -> LateBinding | None:
    """Tell which ends of a partition's range the options leave to the log: `earliest`, `latest`, -2 and -1.

    Numbers and times are fixed when a read is planned.

    Source: Spark `KafkaOffsetReaderAdmin.fetchPartitionOffsets`, `KafkaOffsetRangeLimit`.
    """
    open_start = _limit_of(starting, where) == Earliest()
    open_end = _limit_of(ending, where) == Latest()
    if not open_start and not open_end:
        return None
    return LateBinding(start_from=0 if open_start else None, end_by=NO_END if open_end else None)


def _limit_of(limit: OffsetRangeLimit, where: TopicPartition) -> object:
    if isinstance(limit, SpecificOffsets):
        return limit.partitions.get(where, limit.topics.get(where.topic))
    return limit


def split_planned(
    ranges: Sequence[PlannedRange], *, min_partitions: int | None, max_records: int | None
) -> tuple[PlannedRange, ...]:
    """Split ranges by what they are when planned; open ends stay with the first and the last part of a range.

    What is empty is left out, unless records may come to its open end until a task runs.

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
    late = planned.late
    if len(parts) == 1 or (not parts and late is not None and late.end_by is not None):
        return [planned]
    found = [PlannedRange(part) for part in parts]
    if found and late is not None and late.start_from is not None:
        found[0] = replace(found[0], late=LateBinding(start_from=late.start_from, strict=False))
    if found and late is not None and late.end_by is not None:
        found[-1] = replace(found[-1], late=LateBinding(end_by=late.end_by, strict=False))
    return found
