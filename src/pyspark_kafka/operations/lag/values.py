"""How far positions are behind, as values. Pure."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyspark_kafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from pyspark_kafka.planning.lag import Log


# Microseconds of later times do not fit in 64 bits.
_MAX_TIME_MS = (2**63 - 1) // 1_000


class LagState(Enum):
    """What a position stands for. The values are for people and for JSON."""

    KNOWN = "known"
    """The position lies in the log."""
    LOST = "lost"
    """The log begins behind the position: records that were not read are gone."""
    BEYOND_END = "beyond end"
    """The log ends before the position: it was cut, or the topic was recreated."""
    RECREATED = "recreated"
    """The topic's id differs from the id that was read."""
    GONE = "gone"
    """There is no such topic or partition, or this user may not describe it."""
    UNKNOWN = "unknown"
    """The log was not found out about; `PartitionLag.missing` says why."""


# States that are wrong for certain, whatever else could not be found out.
FAULTS = frozenset({LagState.LOST, LagState.BEYOND_END, LagState.RECREATED, LagState.GONE})


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a position in one topic-partition is behind the end of its log.

    None stands for what is not known. Times are those of the records' timestamps, in ms since 1970-01-01 UTC.

    Attributes:
        topic: the topic.
        partition: its number.
        state: what the position stands for.
        position: the next offset to read.
        log_start: the first offset of the log.
        end: the end of the log, exclusive; with `read_committed` the last stable offset.
        records_behind: offsets that are still to be read and that the log still has. Control records and those that a
            compaction has removed are counted: it is an upper bound of the records.
        records_lost: offsets before the log's start that were not read.
        bytes_behind: about how many bytes of the leader's disk they take: their share of the log, as if all records had
            one size; an estimate.
        seconds_behind: how old the record at the position is, in s, by the clock of this machine: the time that it
            has waited, if its timestamp is when it was written. 0 if nothing is behind; None if it has no timestamp.
        position_time_ms: the time of the record at the position, if one is behind.
        newest_time_ms: the latest time of all records of the log.
        produced_per_s: records written per second: between two looks; with one look, since the record at the position.
        consumed_per_s: records read per second: between two looks, or between the last batches of the checkpoint.
        catch_up_s: time in s until nothing is behind if both rates stay; infinite if no more is read than written.
        headroom_s: time in s until brokers may delete the record at the position. Infinite: it stays, or there is none.
            By `retention.bytes` it is known between two looks; with one, only that the log is too large already.
        headroom_reason: which limit deletes it, by its name such as `retention.ms`, or why there is no time.
        headroom_unknown: limits that apply and could not be computed, by their names: it may be deleted sooner.
        missing: what could not be found out, and why; sentences.
        log: what the figures were computed from; a later look needs it.
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
        """Whether it is known how many records are behind."""
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
        partitions: how many there are.
        incomplete: of how many it is not known how far they are behind.
        faults: how many are lost, gone, recreated, or have a position beyond the end.
        records_behind: of all that are known; None if none is, or if that is 0 and others are not known.
        bytes_behind: of all that are known; None if none is.
        seconds_behind: of the one that is furthest behind in time; None if that is not known of any.
        headroom_s: of the one with the least; None if that is not known of any.
        produced_per_s: of all that are known; None if none is.
        consumed_per_s: of all that are known; None if none is.
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
    """How far all positions of a query or of a group are behind, by partition.

    Attributes:
        origin: whose positions they are, in words.
        measured_at_ms: when the ends of the logs were looked up, in ms since 1970-01-01 UTC.
        positions_at_ms: when the positions were reached; None if that is not known.
        partitions: in the order of their topics and numbers.
        missing: what could not be found out about all of them, and why; sentences.
        elapsed_ms: how long it took.
    """

    origin: str
    measured_at_ms: int
    positions_at_ms: int | None
    partitions: tuple[PartitionLag, ...]
    missing: tuple[str, ...] = ()
    elapsed_ms: int = 0

    def __iter__(self) -> Iterator[PartitionLag]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    @property
    def is_complete(self) -> bool:
        """Whether it is known of every partition how many records are behind."""
        return all(each.is_complete for each in self.partitions)

    def worst(self, max_partitions: int | None = None) -> tuple[PartitionLag, ...]:
        """Return the partitions that need attention first: faults, unknown ones, then by time and records behind."""
        return tuple(sorted(self.partitions, key=_urgency)[:max_partitions])

    def topics(self) -> tuple[TopicLag, ...]:
        """Return the sums of each topic; the one that is furthest behind comes first."""
        by_topic: dict[str, list[PartitionLag]] = {}
        for each in self.partitions:
            by_topic.setdefault(each.topic, []).append(each)
        found = [_sum(topic, partitions) for topic, partitions in by_topic.items()]
        return tuple(sorted(found, key=lambda each: (-each.faults, -(each.records_behind or 0), each.topic)))

    def reasons(self) -> tuple[tuple[str, int], ...]:
        """Return what could not be found out, each sentence once, with the number of partitions that it is about."""
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
            "topics": [each.to_json() for each in self.topics()],
            "partitions": [each.to_json() for each in self.partitions],
        }

    def to_arrow(self) -> pa.Table:
        """Return the partitions as a table with the columns of `operations.lag.columns.LAG_SCHEMA`."""
        import pyarrow as pa  # noqa: PLC0415 - Arrow only where it is asked for

        from pyspark_kafka.operations.lag.columns import LAG_SCHEMA  # noqa: PLC0415

        return pa.Table.from_pylist([_row(each) for each in self.partitions], schema=LAG_SCHEMA)


def _row(each: PartitionLag) -> dict[str, Any]:
    """Return a partition by the names of columns; those of other names than its attributes are computed."""
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
