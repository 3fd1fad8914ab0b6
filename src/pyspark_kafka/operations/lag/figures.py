"""The figures of one partition, from what brokers tell about its log. Pure: no sockets, no clock. Layer: operations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka.operations.lag.values import LagState, PartitionLag
from pyspark_kafka.planning.retention import HeadroomReason, RetentionPolicy, headroom_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.operations.lag.values import LagReport

# Of a topic whose rules are not known: what is caught up or lost already is so under any.
_ANY = RetentionPolicy()
_NO_TIME = "the time of the record at its position: the record has no timestamp"


@dataclass(frozen=True, slots=True)
class Log:
    """What is known about the log of a partition.

    Attributes:
        start: its first offset.
        end: its end, exclusive.
        newest_ms: the latest time of its records, in ms since 1970; None or negative: unknown.
        size: its bytes on the disk of the leader; None: unknown.
        policy: when brokers delete its records; None: unknown.
        position_time_ms: the time of the record at the position, in ms since 1970; None or negative: unknown.
    """

    start: int
    end: int
    newest_ms: int | None = None
    size: int | None = None
    policy: RetentionPolicy | None = None
    position_time_ms: int | None = None


def partition_lag(
    topic_partition: TopicPartition,
    position: int,
    log: Log,
    *,
    now_ms: int,
    consumed_per_s: float | None = None,
    missing: tuple[str, ...] = (),
) -> PartitionLag:
    """Return how far a position is behind, by one look.

    Args:
        topic_partition: the partition.
        position: the next offset to read.
        log: the partition's log.
        now_ms: the time, in ms since 1970.
        consumed_per_s: records read per second, as far as that is known already.
        missing: what could not be found out.
    """
    log = replace(log, newest_ms=_time(log.newest_ms))
    if position > log.end:
        reason = f"its position {position} lies beyond the end {log.end}: the log was cut, or the topic recreated"
        return PartitionLag(
            *topic_partition,
            state=LagState.BEYOND_END,
            position=position,
            log_start=log.start,
            end=log.end,
            newest_time_ms=log.newest_ms,
            consumed_per_s=consumed_per_s,
            missing=(*missing, reason),
        )
    first = max(position, log.start)
    behind, lost = log.end - first, first - position
    if behind and log.position_time_ms is not None and _time(log.position_time_ms) is None:
        log, missing = replace(log, position_time_ms=None), (*missing, _NO_TIME)
    seconds: float | None = 0.0
    produced = None
    if behind:
        seconds = None if log.position_time_ms is None else max(0, now_ms - log.position_time_ms) / 1000
        produced = behind / seconds if seconds else None
    headroom = _headroom(position, log, None, now_ms)
    return PartitionLag(
        *topic_partition,
        state=LagState.LOST if lost else LagState.KNOWN,
        position=position,
        log_start=log.start,
        end=log.end,
        records_behind=behind,
        records_lost=lost,
        bytes_behind=share(log, behind),
        seconds_behind=seconds,
        position_time_ms=log.position_time_ms if behind else None,
        newest_time_ms=log.newest_ms,
        produced_per_s=produced,
        consumed_per_s=consumed_per_s,
        catch_up_s=catch_up_s(behind, produced, consumed_per_s),
        headroom_s=headroom.seconds,
        headroom_reason=headroom.reason,
        headroom_unknown=headroom.unknown,
        missing=(*missing, *headroom.sentences),
        log=log,
    )


def share(log: Log, records: int) -> int | None:
    """Return about how many bytes some of a log's records take; None if its size is not known."""
    if not records:
        return 0
    return None if log.size is None else log.size * records // (log.end - log.start)


def catch_up_s(behind: int, produced_per_s: float | None, consumed_per_s: float | None) -> float | None:
    """Return the time in s until nothing is behind; infinite if no more is read than written; None if not known."""
    if not behind:
        return 0.0
    if produced_per_s is None or consumed_per_s is None:
        return None
    gained = consumed_per_s - produced_per_s
    return behind / gained if gained > 0 else math.inf


def _time(time_ms: int | None) -> int | None:
    """Return a timestamp; None for those of records that have none, which brokers and clients write as -1."""
    return None if time_ms is None or time_ms < 0 else time_ms


@dataclass(frozen=True, slots=True)
class _KnownHeadroom:
    seconds: float | None
    reason: str
    unknown: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


def _headroom(position: int, log: Log, produced_per_s: float | None, now_ms: int) -> _KnownHeadroom:
    """Return the time until brokers may delete the record at a position, why, and what is not known of it.

    Args:
        position: the next offset to read.
        log: the partition's log.
        produced_per_s: records written per second between two looks; None: there was one look. The time of a record is
            no measure of it: a producer may have sent any.
        now_ms: the time, in ms since 1970.
    """
    if log.policy is None and log.start <= position < log.end:
        return _KnownHeadroom(None, HeadroomReason.UNKNOWN.value)
    bytes_per_s = None
    if log.size is not None and produced_per_s is not None and log.end > log.start:
        bytes_per_s = produced_per_s * log.size / (log.end - log.start)
    found = headroom_ms(
        log.policy or _ANY,
        position=position,
        log_start=log.start,
        log_end=log.end,
        now_ms=now_ms,
        record_ms=log.position_time_ms,
        log_bytes=log.size,
        bytes_per_s=bytes_per_s,
    )
    stays = found.reason in (HeadroomReason.CAUGHT_UP, HeadroomReason.KEPT)
    seconds = math.inf if stays else None if found.ms is None else found.ms / 1000
    sentences = tuple(f"the headroom by {name}: {_why(name, log)}" for name in found.unknown)
    return _KnownHeadroom(seconds, found.reason.value, found.unknown, sentences)


def _why(name: str, log: Log) -> str:
    if name == HeadroomReason.SIZE.value and _lacks_only_rate(log):
        return "it needs the rate of writing between two looks"
    return "figures for it are not known"


def _lacks_only_rate(log: Log) -> bool:
    return log.size is not None and log.policy is not None and not log.policy.is_tiered


def wants_rate(report: LagReport) -> bool:
    """Return whether a second look would tell the headroom by size of a partition, which this report does not know."""
    return any(
        HeadroomReason.SIZE.value in each.headroom_unknown and each.log is not None and _lacks_only_rate(each.log)
        for each in report.partitions
    )


def with_rates(report: LagReport, before: LagReport) -> LagReport:
    """Return a report with the rates between an earlier look and this one, and the headroom by size that follows.

    A partition whose position or end went back between both, or that one of the reports does not know, keeps its rates.
    """
    seconds = (report.measured_at_ms - before.measured_at_ms) / 1000
    earlier: Mapping[TopicPartition, PartitionLag] = {each.topic_partition: each for each in before.partitions}
    if seconds <= 0:
        return report
    now_ms = report.measured_at_ms
    partitions = tuple(_rated(each, earlier.get(each.topic_partition), seconds, now_ms) for each in report.partitions)
    return replace(report, partitions=partitions)


def _rated(lag: PartitionLag, before: PartitionLag | None, seconds: float, now_ms: int) -> PartitionLag:
    if before is None or None in (lag.position, lag.end, before.position, before.end, lag.records_behind):
        return lag
    read = (lag.position or 0) - (before.position or 0)
    written = (lag.end or 0) - (before.end or 0)
    if read < 0 or written < 0:
        return lag
    produced, consumed = written / seconds, read / seconds
    if lag.log is not None:
        former = _headroom(lag.position or 0, lag.log, None, now_ms).sentences
        headroom = _headroom(lag.position or 0, lag.log, produced, now_ms)
        lag = replace(
            lag,
            headroom_s=headroom.seconds,
            headroom_reason=headroom.reason,
            headroom_unknown=headroom.unknown,
            missing=(*(each for each in lag.missing if each not in former), *headroom.sentences),
        )
    return replace(
        lag,
        produced_per_s=produced,
        consumed_per_s=consumed,
        catch_up_s=catch_up_s(lag.records_behind or 0, produced, consumed),
    )
