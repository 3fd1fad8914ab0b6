"""The retention of a topic, and the time until brokers may delete the record at a position."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyspark_kafka._connector.planning.retention import (
    CONFIG_NAMES,
    Headroom,
    HeadroomReason,
    RetentionPolicy,
    headroom_ms,
    parse_policy,
)

HOUR = 3_600_000
DAY = RetentionPolicy(retention_ms=24 * HOUR)
NOW = 1_000 * 24 * HOUR
BEHIND: dict[str, Any] = {"position": 50, "log_start": 0, "log_end": 100, "now_ms": NOW}


def test_age_leaves_the_time_until_the_record_is_too_old() -> None:
    assert headroom_ms(DAY, **BEHIND, record_ms=NOW - 23 * HOUR) == Headroom(HOUR, HeadroomReason.AGE)


def test_record_that_is_too_old_may_go_at_once() -> None:
    assert headroom_ms(DAY, **BEHIND, record_ms=NOW - 30 * HOUR) == Headroom(0, HeadroomReason.AGE)


def test_record_of_the_future_stays_until_it_is_old() -> None:
    assert headroom_ms(DAY, **BEHIND, record_ms=NOW + HOUR).ms == 25 * HOUR


@pytest.mark.parametrize("record_ms", [None, -1])
def test_age_is_unknown_without_a_timestamp(record_ms: int | None) -> None:
    found = headroom_ms(DAY, **BEHIND, record_ms=record_ms)
    assert found == Headroom(None, HeadroomReason.UNKNOWN, ("retention.ms",))


def test_position_at_the_end_can_lose_nothing() -> None:
    ahead = BEHIND | {"position": 100}
    assert headroom_ms(DAY, **ahead, record_ms=0) == Headroom(None, HeadroomReason.CAUGHT_UP)
    # Neither can that in a log that lost all its records.
    assert headroom_ms(DAY, **(ahead | {"log_start": 100})).reason is HeadroomReason.CAUGHT_UP


def test_position_before_the_log_has_lost_records_even_if_the_topic_keeps_all_now() -> None:
    gone = BEHIND | {"log_start": 51}
    assert headroom_ms(RetentionPolicy(), **gone) == Headroom(0, HeadroomReason.LOST)


def test_compacted_topic_keeps_its_records_whatever_its_limits_are() -> None:
    policy = RetentionPolicy(deletes=False, retention_ms=1, retention_bytes=1)
    found = headroom_ms(policy, **BEHIND, record_ms=0, log_bytes=1_000, bytes_per_s=1.0)
    assert found == Headroom(None, HeadroomReason.KEPT)


def test_topic_without_limits_keeps_its_records() -> None:
    assert headroom_ms(RetentionPolicy(), **BEHIND) == Headroom(None, HeadroomReason.KEPT)


def test_size_leaves_the_time_until_the_unread_bytes_are_the_limit() -> None:
    # 500 bytes of 1,000 are unread; 100 more may come, at 10 bytes/s.
    policy = RetentionPolicy(retention_bytes=600)
    found = headroom_ms(policy, **BEHIND, log_bytes=1_000, bytes_per_s=10.0)
    assert found == Headroom(10_000, HeadroomReason.SIZE)


def test_log_with_more_unread_bytes_than_its_limit_has_no_headroom() -> None:
    policy = RetentionPolicy(retention_bytes=500)
    assert headroom_ms(policy, **BEHIND, log_bytes=1_000, bytes_per_s=0.0) == Headroom(0, HeadroomReason.SIZE)


def test_log_that_does_not_grow_keeps_its_records() -> None:
    policy = RetentionPolicy(retention_bytes=600)
    assert headroom_ms(policy, **BEHIND, log_bytes=1_000, bytes_per_s=0.0) == Headroom(None, HeadroomReason.KEPT)


def test_slowly_growing_log_has_a_finite_headroom() -> None:
    policy = RetentionPolicy(retention_bytes=2**62)
    found = headroom_ms(policy, **BEHIND, log_bytes=1_000, bytes_per_s=5e-324)
    assert found.ms == 2**62


@pytest.mark.parametrize("figures", [{"log_bytes": 10}, {"bytes_per_s": 1.0}, {}])
def test_size_is_unknown_without_its_figures_and_age_still_counts(figures: dict[str, Any]) -> None:
    both = replace(DAY, retention_bytes=600)
    found = headroom_ms(both, **BEHIND, record_ms=NOW - 23 * HOUR, **figures)
    assert found == Headroom(HOUR, HeadroomReason.AGE, ("retention.bytes",))
    alone = headroom_ms(RetentionPolicy(retention_bytes=600), **BEHIND, **figures)
    assert alone == Headroom(None, HeadroomReason.UNKNOWN, ("retention.bytes",))


def test_log_that_is_too_large_already_needs_no_rate() -> None:
    policy = RetentionPolicy(retention_bytes=500)
    assert headroom_ms(policy, **BEHIND, log_bytes=1_000) == Headroom(0, HeadroomReason.SIZE)


def test_size_is_unknown_where_a_part_of_the_log_is_elsewhere() -> None:
    policy = RetentionPolicy(retention_bytes=1, is_tiered=True)
    found = headroom_ms(policy, **BEHIND, log_bytes=1_000, bytes_per_s=1.0)
    assert found == Headroom(None, HeadroomReason.UNKNOWN, ("retention.bytes",))


def test_shorter_time_of_both_limits_counts() -> None:
    both = replace(DAY, retention_bytes=600)
    found = headroom_ms(both, **BEHIND, record_ms=NOW - 23 * HOUR, log_bytes=1_000, bytes_per_s=10.0)
    assert found == Headroom(10_000, HeadroomReason.SIZE)
    slow = headroom_ms(both, **BEHIND, record_ms=NOW - 23 * HOUR, log_bytes=1_000, bytes_per_s=0.001)
    assert slow == Headroom(HOUR, HeadroomReason.AGE)


@dataclass(frozen=True)
class Log:
    """A log as a broker has it: the timestamps of the records of each segment; each record takes `size` bytes."""

    segments: list[list[int]]
    size: int

    def end(self) -> int:
        return sum(map(len, self.segments))

    def start_after_deletion(self, policy: RetentionPolicy, now_ms: int) -> int:
        """Return the first offset after a broker has deleted all that it may, by the code of Kafka's `UnifiedLog`."""
        left = list(self.segments)
        if policy.retention_ms is not None:
            while left and now_ms - max(left[0]) > policy.retention_ms:
                left.pop(0)
        if policy.retention_bytes is not None:
            excess = sum(map(len, left)) * self.size - policy.retention_bytes
            while left and excess - len(left[0]) * self.size >= 0:
                excess -= len(left.pop(0)) * self.size
        return self.end() - sum(map(len, left))


timestamps = st.integers(0, 1_000)
logs = st.builds(
    Log, st.lists(st.lists(timestamps, min_size=1, max_size=5), min_size=1, max_size=6), st.integers(1, 50)
)
limits = st.none() | st.integers(0, 1_500)
policies = st.builds(RetentionPolicy, retention_ms=limits, retention_bytes=limits)


@given(logs, policies, st.integers(0, 1_000), st.integers(0, 100), st.data())
def test_record_is_there_at_every_time_within_its_headroom(
    log: Log, policy: RetentionPolicy, now_ms: int, bytes_per_s: int, data: st.DataObject
) -> None:
    """Whatever the segments are, a broker that goes by Kafka's rule deletes no record before the time that was told."""
    start = log.start_after_deletion(policy, now_ms)
    assume(start < log.end())
    position = data.draw(st.integers(start, log.end() - 1))
    records = [timestamp for segment in log.segments for timestamp in segment]
    found = headroom_ms(
        policy,
        position=position,
        log_start=start,
        log_end=log.end(),
        now_ms=now_ms,
        record_ms=records[position],
        log_bytes=(log.end() - start) * log.size,
        bytes_per_s=bytes_per_s,
    )
    assert found.unknown == ()
    # The log grows as it was told; what comes is young.
    span = data.draw(st.integers(0, min(5_000, 5_000 if found.ms is None else found.ms)))
    assume(found.ms is None or span < found.ms)
    later = now_ms + span
    written = bytes_per_s * span // 1000 // log.size
    grown = replace(log, segments=[*log.segments, *([later] for _ in range(written))])
    assert grown.start_after_deletion(policy, later) <= position


@given(policies, st.integers(0, 3_000), st.integers(0, 1_000), st.integers(1, 500), st.data())
def test_headroom_never_grows_with_time_and_never_shrinks_with_a_longer_retention(
    policy: RetentionPolicy, now_ms: int, record_ms: int, later_ms: int, data: st.DataObject
) -> None:
    figures = {"position": 5, "log_start": 0, "log_end": 10, "record_ms": record_ms, "log_bytes": 300}

    def ms(policy: RetentionPolicy, now: int) -> float:
        found = headroom_ms(policy, **figures, now_ms=now, bytes_per_s=10.0).ms
        return float("inf") if found is None else found

    assert ms(policy, now_ms + later_ms) <= ms(policy, now_ms)
    more = data.draw(st.integers(0, 100))
    longer = replace(
        policy,
        retention_ms=None if policy.retention_ms is None else policy.retention_ms + more,
        retention_bytes=None if policy.retention_bytes is None else policy.retention_bytes + more,
    )
    assert ms(longer, now_ms) >= ms(policy, now_ms)


def test_policy_has_the_limits_of_a_topic() -> None:
    configs = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "1073741824"}
    assert parse_policy(configs) == RetentionPolicy(retention_ms=604_800_000, retention_bytes=1_073_741_824)
    assert set(configs) < set(CONFIG_NAMES)


@pytest.mark.parametrize("text", ["-1", "-2", "", None, "soon"])
def test_limit_without_a_number_is_no_limit(text: str | None) -> None:
    assert parse_policy({"retention.ms": text, "retention.bytes": text}) == RetentionPolicy()


def test_limit_of_zero_is_a_limit() -> None:
    assert parse_policy({"retention.ms": "0"}).retention_ms == 0


@pytest.mark.parametrize(
    ("text", "deletes"),
    [("delete", True), ("compact", False), ("compact,delete", True), ("delete, compact", True), (None, True)],
)
def test_policy_deletes_only_where_it_says_so(text: str | None, deletes: bool) -> None:
    assert parse_policy({"cleanup.policy": text}).deletes is deletes


def test_remote_storage_option_marks_a_tiered_topic() -> None:
    assert parse_policy({"remote.storage.enable": "true"}).is_tiered
    assert not parse_policy({"remote.storage.enable": "false"}).is_tiered
