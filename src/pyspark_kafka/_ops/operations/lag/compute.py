"""The figures of one partition, from its log bounds. Pure: no sockets, no clock."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka._connector.planning.lag import catch_up_s
from pyspark_kafka._connector.planning.retention import HeadroomReason
from pyspark_kafka._ops.operations.lag.values import LagState, PartitionLag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._connector.planning.lag import Log
    from pyspark_kafka._ops.operations.lag.values import LagReport

_NO_TIME = "the time of the record at its position: the record has no timestamp"


def partition_lag(
    topic_partition: TopicPartition,
    position: int,
    log: Log,
    *,
    now_ms: int,
    consumed_per_s: float | None = None,
    missing: tuple[str, ...] = (),
) -> PartitionLag:
    """Return the lag of a position, by one measurement.

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
    behind, lost = log.records_behind(position), log.first_unread(position) - position
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
        bytes_behind=log.bytes_of(behind),
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


def _time(time_ms: int | None) -> int | None:
    """Return a timestamp; None for a record without one, which brokers and clients write as -1."""
    return None if time_ms is None or time_ms < 0 else time_ms


@dataclass(frozen=True, slots=True)
class _KnownHeadroom:
    seconds: float | None
    reason: str
    unknown: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


def _headroom(position: int, log: Log, produced_per_s: float | None, now_ms: int) -> _KnownHeadroom:
    found = log.headroom(position, now_ms, produced_per_s)
    if found is None:
        return _KnownHeadroom(None, HeadroomReason.UNKNOWN.value)
    seconds = math.inf if found.stays else None if found.ms is None else found.ms / 1000
    sentences = tuple(f"the headroom by {name}: {_why(name, log)}" for name in found.unknown)
    return _KnownHeadroom(seconds, found.reason.value, found.unknown, sentences)


def _why(name: str, log: Log) -> str:
    if name == HeadroomReason.SIZE.value and log.lacks_only_rate:
        return "it needs the rate of writing between two looks"
    return "figures for it are not known"


def wants_rate(report: LagReport) -> bool:
    """Return whether a second look would tell the headroom by size of a partition, which this report does not know."""
    return any(
        HeadroomReason.SIZE.value in each.headroom_unknown and each.log is not None and each.log.lacks_only_rate
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
