"""The headroom of unread records: the retention policy of a topic, and the remaining time.

A result is the earliest time at which brokers may delete a record, never a later one. Pure: no sockets, no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

CONFIG_NAMES = ("cleanup.policy", "retention.ms", "retention.bytes", "remote.storage.enable")
"""The configuration values of a topic that `parse_policy` reads."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """The rules by which brokers delete the oldest records of a topic.

    Attributes:
        deletes: whether they delete by age and size at all; a topic that is compacted only keeps the last value of
            each key forever.
        retention_ms: age in ms from which on records may be deleted; None: no limit.
        retention_bytes: size in bytes of a partition's log from which on its oldest records may be deleted; None: no
            limit.
        is_tiered: whether a part of the log may be in remote storage (KIP-405), which the size of a log on a broker's
            disk does not include.
    """

    deletes: bool = True
    retention_ms: int | None = None
    retention_bytes: int | None = None
    is_tiered: bool = False


def parse_policy(configs: Mapping[str, str | None]) -> RetentionPolicy:
    """Return the policy of a topic from its configuration values, as brokers return them.

    Args:
        configs: value by name, see `CONFIG_NAMES`. A missing name, or a value that is not a number, counts
            as no limit: a broker without it does not delete by it.

    Source: Kafka `LogConfig`; negative numbers are no limit.
    """
    policies = (configs.get("cleanup.policy") or "delete").split(",")
    return RetentionPolicy(
        deletes="delete" in {name.strip() for name in policies},
        retention_ms=_limit(configs.get("retention.ms")),
        retention_bytes=_limit(configs.get("retention.bytes")),
        is_tiered=configs.get("remote.storage.enable") == "true",
    )


def _limit(text: str | None) -> int | None:
    try:
        number = int(text or "")
    except ValueError:
        return None
    return None if number < 0 else number


class HeadroomReason(Enum):
    """The reason of a headroom. The values are for people and for JSON."""

    AGE = "retention.ms"
    """The record at the position becomes too old."""
    SIZE = "retention.bytes"
    """The log becomes too large."""
    LOST = "lost"
    """The log begins behind the position: records that were not read are gone."""
    CAUGHT_UP = "caught up"
    """No record waits, so none can be lost."""
    KEPT = "kept"
    """Brokers delete no records of this topic, or nothing is written that would make its log too large."""
    UNKNOWN = "unknown"
    """A limit applies, and figures for it are missing."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """The time for which the next record at a position is certain to stay.

    Attributes:
        ms: time in ms, 0 or more, until brokers may delete it; None: it stays (`CAUGHT_UP`, `KEPT`), or the time is
            unknown (`UNKNOWN`).
        reason: the limit that deletes it, or the reason for no time.
        unknown: limits that apply and could not be computed: the record may be deleted sooner by one of these. Names of
            configuration values, such as `retention.bytes`.
    """

    ms: int | None
    reason: HeadroomReason
    unknown: tuple[str, ...] = ()

    @property
    def stays(self) -> bool:
        """Whether the record is certain to stay, or does not exist yet."""
        return self.reason in (HeadroomReason.CAUGHT_UP, HeadroomReason.KEPT)


def headroom_ms(
    policy: RetentionPolicy,
    *,
    position: int,
    log_start: int,
    log_end: int,
    now_ms: int,
    record_ms: int | None = None,
    log_bytes: int | None = None,
    bytes_per_s: float | None = None,
) -> Headroom:
    """Return the time until brokers may delete the record at a position.

    It is the earliest time. Brokers delete whole segments, the oldest first, and check every few minutes
    (`log.retention.check.interval.ms`), so the record usually stays longer: until every record of its segment is too
    old, or until the log without its segment is still as large as the limit.

    By age it is exact: it depends on `now_ms` and the time of the record only. By size it is an estimate, which assumes
    the same size for records before and after the position, and a constant growth of the log.

    Args:
        policy: of the topic.
        position: next offset to read.
        log_start: first offset of the log.
        log_end: end of the log, exclusive.
        now_ms: the time, in ms since 1970.
        record_ms: timestamp of the first record at or after the position, in ms since 1970; None or negative: unknown.
        log_bytes: size of the log on its leader's disk; None: unknown.
        bytes_per_s: the growth of the log on disk; None: unknown. Not needed for a log that is already too large.

    Returns:
        The shorter time of both limits, as far as they can be computed.

    Source: Kafka `UnifiedLog.deleteRetentionMsBreachedSegments`, `deleteRetentionSizeBreachedSegments`.

    Example:
        >>> from pyspark_kafka._connector.planning.retention import RetentionPolicy
        >>> day = RetentionPolicy(retention_ms=86_400_000)
        >>> headroom_ms(day, position=7, log_start=0, log_end=9, now_ms=90_000_000, record_ms=7_200_000).ms
        3600000
    """
    if position >= log_end:
        return Headroom(None, HeadroomReason.CAUGHT_UP)
    if position < log_start:
        return Headroom(0, HeadroomReason.LOST)
    if not policy.deletes:
        return Headroom(None, HeadroomReason.KEPT)
    known: list[tuple[int, HeadroomReason]] = []
    unknown: list[str] = []
    if policy.retention_ms is not None:
        # Without a timestamp, brokers go by the time of the segment's file.
        if record_ms is None or record_ms < 0:
            unknown.append(HeadroomReason.AGE.value)
        else:
            known.append((max(0, record_ms + policy.retention_ms - now_ms), HeadroomReason.AGE))
    if policy.retention_bytes is not None:
        if log_bytes is None or policy.is_tiered:
            unknown.append(HeadroomReason.SIZE.value)
        else:
            # All bytes before the position may be deleted; if the rest alone is too large, the rate does not matter.
            unread = log_bytes * (log_end - position) // (log_end - log_start)
            free = policy.retention_bytes - unread
            if free <= 0:
                known.append((0, HeadroomReason.SIZE))
            elif bytes_per_s is None:
                unknown.append(HeadroomReason.SIZE.value)
            elif bytes_per_s > 0:
                # A log that hardly grows would have an infinite time.
                known.append((int(min(free / bytes_per_s * 1000, 2.0**62)), HeadroomReason.SIZE))
    if known:
        ms, reason = min(known, key=lambda limit: limit[0])
        return Headroom(ms, reason, tuple(unknown))
    return Headroom(None, HeadroomReason.UNKNOWN if unknown else HeadroomReason.KEPT, tuple(unknown))
