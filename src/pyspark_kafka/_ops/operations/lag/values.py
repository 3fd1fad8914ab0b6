"""The lag of positions, as values. Pure."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from pyspark_kafka._connector.planning.lag import Log
    from pyspark_kafka.checkpoint.continuous_files import WaitingStep


# Microseconds of later times do not fit in 64 bits.
_MAX_TIME_MS = (2**63 - 1) // 1_000


class LagState(Enum):
    """The state of a position. The values are for people and for JSON."""

    KNOWN = "known"
    """The position lies in the log."""
    LOST = "lost"
    """The log begins after the position: unread records are gone."""
    BEYOND_END = "beyond end"
    """The log ends before the position: it was cut, or the topic was recreated."""
    RECREATED = "recreated"
    """The topic's id differs from the id that was read."""
    GONE = "gone"
    """The topic or partition does not exist, or this user may not describe it."""
    UNKNOWN = "unknown"
    """The log could not be looked up; `PartitionLag.missing` has the reason."""


# States that are certainly faults, even if other values are unknown.
FAULTS = frozenset({LagState.LOST, LagState.BEYOND_END, LagState.RECREATED, LagState.GONE})


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """The lag of a position in one topic-partition behind the end of its log.

    Unknown values are None. Times are the timestamps of records, in ms since 1970-01-01 UTC.

    Attributes:
        topic: the topic.
        partition: its number.
        state: the state of the position.
        position: the next offset to read.
        log_start: the first offset of the log.
        end: the end of the log, exclusive; with `read_committed` the last stable offset.
        records_behind: unread offsets that the log still has. Control records and records that a compaction has removed
            are counted: it is an upper bound of the records.
        records_lost: unread offsets before the start of the log.
        bytes_behind: an estimate of their bytes on the leader's disk: their share of the log, as if all records had the
            same size.
        seconds_behind: the age of the record at the position, in s, by the clock of this machine: its waiting time, if
            its timestamp is the time at which it was written. 0 without lag; None if it has no timestamp.
        position_time_ms: the time of the record at the position, if there is lag.
        newest_time_ms: the latest time of all the log's records.
        produced_per_s: records written per second: between two measurements; with one measurement, since the record at
            the position.
        consumed_per_s: records read per second: between two measurements, or between the last batches of the
            checkpoint.
        catch_up_s: time in s until there is no lag at these rates; infinite if the query reads no faster than records
            are written.
        headroom_s: time in s until brokers may delete the record at the position. Infinite if brokers keep the record,
            or if there is no record. The limit `retention.bytes` needs two measurements; one measurement shows only
            whether the log is already too large.
        headroom_reason: the limit that deletes it, by its name such as `retention.ms`, or the reason for no time.
        headroom_unknown: limits that apply and could not be computed, by their names: it may be deleted sooner.
        missing: unknown values and the reasons, as sentences.
        log: the log that the values were computed from; a later measurement needs it.
    """

    topic: str
    partition: int
    state: LagState = LagState.UNKNOWN
    position: int | None = None
    log_start: int | None = None
    end: int | None = None
    records_behind: int | None = None
    records_lost: int | None = None
    bytes_behind: int | None = None
    seconds_behind: float | None = None
    position_time_ms: int | None = None
    newest_time_ms: int | None = None
    produced_per_s: float | None = None
    consumed_per_s: float | None = None
    catch_up_s: float | None = None
    headroom_s: float | None = None
    headroom_reason: str = ""
    headroom_unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    log: Log | None = field(default=None, repr=False, compare=False)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def is_complete(self) -> bool:
        """Whether `records_behind` is known."""
        return self.records_behind is not None

    def to_json(self) -> dict[str, Any]:
        """Return the members as JSON has them; null is what is not known, and a time without an end."""
        members = {name: _finite(value) for name, value in asdict(replace(self, log=None)).items() if name != "log"}
        listed = {"headroom_unknown": list(self.headroom_unknown), "missing": list(self.missing)}
        return {**members, "state": self.state.value, **listed}


@dataclass(frozen=True, slots=True)
class TopicLag:
    """The partitions of one topic together.

    Attributes:
        topic: the topic.
        partitions: the number of partitions.
        incomplete: the number of partitions with unknown lag.
        faults: the number of lost, deleted or recreated partitions, and of positions beyond the end.
        records_behind: the sum of known values; None if no value is known, or if the sum is 0 and other values are
            unknown.
        bytes_behind: the sum of known values; None if no value is known.
        seconds_behind: the maximum of known values; None if no value is known.
        headroom_s: the minimum of known values; None if no value is known.
        produced_per_s: the sum of known values; None if no value is known.
        consumed_per_s: the sum of known values; None if no value is known.
    """

    topic: str
    partitions: int
    incomplete: int
    faults: int
    records_behind: int | None
    bytes_behind: int | None
    seconds_behind: float | None
    headroom_s: float | None
    produced_per_s: float | None
    consumed_per_s: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the members as JSON has them; null is what is not known, and a time without an end."""
        return {name: _finite(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class LagReport:
    """The lag of a query's or a group's positions, by partition.

    Attributes:
        origin: the owner of the positions, in words.
        measured_at_ms: the time at which the ends of the logs were looked up, in ms since 1970-01-01 UTC.
        positions_at_ms: the time at which the positions were reached; None if it is not known.
        partitions: in the order of topics and numbers.
        missing: values that are unknown for all partitions, and the reasons, as sentences.
        elapsed_ms: the duration of the measurement.
        waiting: the steps of a continuous query with open windows, or other timers that wait for event time; each
            names the topic-partition that holds it back most.
    """

    origin: str
    measured_at_ms: int
    positions_at_ms: int | None
    partitions: tuple[PartitionLag, ...]
    missing: tuple[str, ...] = ()
    elapsed_ms: int = 0
    waiting: tuple[WaitingStep, ...] = ()

    def __iter__(self) -> Iterator[PartitionLag]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    @property
    def is_complete(self) -> bool:
        """Whether `records_behind` is known for every partition."""
        return all(each.is_complete for each in self.partitions)

    def worst(self, max_partitions: int | None = None) -> tuple[PartitionLag, ...]:
        """Return the partitions that need attention first: faults, unknown ones, then by time and records behind."""
        return tuple(sorted(self.partitions, key=_urgency)[:max_partitions])

    def topics(self) -> tuple[TopicLag, ...]:
        """Return the sums of each topic; the topic that is furthest behind comes first."""
        by_topic: dict[str, list[PartitionLag]] = {}
        for each in self.partitions:
            by_topic.setdefault(each.topic, []).append(each)
        found = [_sum(topic, partitions) for topic, partitions in by_topic.items()]
        return tuple(sorted(found, key=lambda each: (-each.faults, -(each.records_behind or 0), each.topic)))

    def reasons(self) -> tuple[tuple[str, int], ...]:
        """Return the missing information, each sentence once, with the number of its partitions."""
        counted = Counter(reason for each in self.partitions for reason in each.missing)
        return (*((reason, len(self.partitions)) for reason in self.missing), *counted.most_common())

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        return {
            "origin": self.origin,
            "measured_at_ms": self.measured_at_ms,
            "positions_at_ms": self.positions_at_ms,
            "elapsed_ms": self.elapsed_ms,
            "complete": self.is_complete,
            "missing": list(self.missing),
            "waiting": [asdict(each) for each in self.waiting],
            "topics": [each.to_json() for each in self.topics()],
            "partitions": [each.to_json() for each in self.partitions],
        }

    def to_arrow(self) -> pa.Table:
        """Return the partitions as a table with the columns of `operations.lag.columns.LAG_SCHEMA`."""
        import pyarrow as pa  # noqa: PLC0415 - Arrow only where it is asked for

        from pyspark_kafka._ops.operations.lag.columns import LAG_SCHEMA  # noqa: PLC0415

        return pa.Table.from_pylist([_row(each) for each in self.partitions], schema=LAG_SCHEMA)


def _row(each: PartitionLag) -> dict[str, Any]:
    """Return a partition by the names of columns; columns that are not attributes are computed."""
    members = {name: getattr(each, name) for name in each.__slots__}
    return members | {
        "state": each.state.value,
        "log_end": each.end,
        "position_time": _us(each.position_time_ms),
        "newest_time": _us(each.newest_time_ms),
        "headroom_reason": each.headroom_reason or None,
        "missing": "; ".join(each.missing) or None,
    }


def _us(time_ms: int | None) -> int | None:
    return None if time_ms is None or abs(time_ms) > _MAX_TIME_MS else time_ms * 1_000


def _urgency(each: PartitionLag) -> tuple[Any, ...]:
    seconds = each.seconds_behind
    return (
        each.state not in FAULTS,
        each.is_complete,
        0.0 if seconds is None else -seconds,
        -(each.records_behind or 0),
        each.topic,
        each.partition,
    )


def _sum(topic: str, partitions: list[PartitionLag]) -> TopicLag:
    behind = _total(each.records_behind for each in partitions)
    if not all(each.is_complete for each in partitions):
        # 0 would say that nothing is behind.
        behind = behind or None
    return TopicLag(
        topic=topic,
        partitions=len(partitions),
        incomplete=sum(not each.is_complete and each.state not in FAULTS for each in partitions),
        faults=sum(each.state in FAULTS for each in partitions),
        records_behind=behind,
        bytes_behind=_total(each.bytes_behind for each in partitions),
        seconds_behind=max(_known(each.seconds_behind for each in partitions), default=None),
        headroom_s=min(_known(each.headroom_s for each in partitions), default=None),
        produced_per_s=_total(each.produced_per_s for each in partitions),
        consumed_per_s=_total(each.consumed_per_s for each in partitions),
    )


def _known(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _total(values: Iterable[Any]) -> Any:
    known = _known(values)
    return sum(known) if known else None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and math.isinf(value) else value
