"""How far a position is behind: records, bytes, time, rates, and how long records stay."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.planning.lag import Log, catch_up_s
from pyspark_kafka._connector.planning.retention import RetentionPolicy
from pyspark_kafka._ops.operations.lag.compute import partition_lag, wants_rate, with_rates
from pyspark_kafka._ops.operations.lag.values import LagReport, LagState, PartitionLag

A = TopicPartition("orders", 3)
NOW = 1_767_225_600_000
HOUR = 3_600_000
OFFSETS = st.integers(0, 2**62)


def report(*partitions: PartitionLag, at_ms: int = NOW) -> LagReport:
    return LagReport("group 'g'", at_ms, None, partitions)


def test_position_within_the_log_has_records_bytes_and_seconds_behind() -> None:
    log = Log(100, 300, newest_ms=NOW - 1_000, size=20_000, position_time_ms=NOW - 30_000)
    found = partition_lag(A, 250, log, now_ms=NOW)
    assert (found.state, found.records_behind, found.records_lost) == (LagState.KNOWN, 50, 0)
    assert found.bytes_behind == 5_000
    assert found.seconds_behind == 30.0
    assert found.produced_per_s == pytest.approx(50 / 30)
    assert found.newest_time_ms == NOW - 1_000


def test_position_at_the_end_has_nothing_behind_and_nothing_to_lose() -> None:
    found = partition_lag(A, 300, Log(100, 300, size=9), now_ms=NOW)
    assert (found.records_behind, found.bytes_behind, found.seconds_behind, found.catch_up_s) == (0, 0, 0.0, 0.0)
    assert (found.headroom_s, found.headroom_reason) == (math.inf, "caught up")
    assert found.missing == ()


def test_position_before_the_log_has_lost_what_lies_between() -> None:
    found = partition_lag(A, 40, Log(100, 300, size=200, position_time_ms=NOW - 1), now_ms=NOW)
    assert (found.state, found.records_lost, found.records_behind, found.bytes_behind) == (LagState.LOST, 60, 200, 200)
    assert (found.headroom_s, found.headroom_reason) == (0.0, "lost")


def test_position_beyond_the_end_tells_what_is_known_of_the_log() -> None:
    found = partition_lag(A, 500, Log(100, 300), now_ms=NOW, missing=("something",))
    assert (found.state, found.records_behind, found.end) == (LagState.BEYOND_END, None, 300)
    assert found.missing[0] == "something"
    assert found.missing[1].startswith("its position 500 lies beyond the end 300: ")


def test_figures_are_none_if_neither_time_nor_size_is_known() -> None:
    found = partition_lag(A, 0, Log(0, 10), now_ms=NOW)
    assert (found.records_behind, found.bytes_behind, found.seconds_behind) == (10, None, None)
    assert (found.produced_per_s, found.catch_up_s, found.headroom_s) == (None, None, None)


def test_headroom_is_the_time_until_the_record_at_the_position_is_too_old() -> None:
    log = Log(0, 10, policy=RetentionPolicy(retention_ms=4 * HOUR), position_time_ms=NOW - HOUR)
    found = partition_lag(A, 5, log, now_ms=NOW)
    assert (found.headroom_s, found.headroom_reason) == (3 * 3_600.0, "retention.ms")


BY_SIZE = RetentionPolicy(retention_bytes=2_000_000)
NEEDS_TWO_LOOKS = "the headroom by retention.bytes: it needs the rate of writing between two looks"


@pytest.mark.parametrize("time_ms", [-1, 1_000, NOW - 10_000, NOW + HOUR, None])
def test_headroom_by_size_is_not_known_by_one_look_whatever_time_a_record_has(time_ms: int | None) -> None:
    log = Log(0, 10, size=1_000, policy=BY_SIZE, position_time_ms=time_ms)
    found = partition_lag(A, 0, log, now_ms=NOW, consumed_per_s=3.0)
    assert (found.headroom_s, found.headroom_reason) == (None, "unknown")
    assert found.headroom_unknown == ("retention.bytes",)
    assert found.missing[-1] == NEEDS_TWO_LOOKS
    assert wants_rate(report(found))


@pytest.mark.parametrize("policy", [BY_SIZE, replace(BY_SIZE, retention_ms=10**15)])
def test_headroom_by_size_is_that_of_the_rate_between_two_looks(policy: RetentionPolicy) -> None:
    # A backfill: its records are years old, and 10,000 of 100 bytes come each second.
    old = Log(0, 10, size=1_000, policy=policy, position_time_ms=1_000)
    before = report(partition_lag(A, 0, old, now_ms=NOW, missing=("something",)), at_ms=NOW)
    more = replace(old, end=10_010, size=1_001_000)
    after = report(
        partition_lag(A, 0, more, now_ms=NOW + 1_000, missing=("something",)),
        at_ms=NOW + 1_000,
    )
    (found,) = with_rates(after, before).partitions
    assert found.produced_per_s == 10_000
    assert found.headroom_s == pytest.approx(0.999)
    assert (found.headroom_reason, found.headroom_unknown) == ("retention.bytes", ())
    assert found.missing == ("something",)
    assert not wants_rate(report(found))


def test_log_that_is_too_large_already_has_no_headroom_at_the_first_look() -> None:
    log = Log(0, 10, size=3_000_000, policy=BY_SIZE, position_time_ms=-1)
    found = partition_lag(A, 0, log, now_ms=NOW)
    assert (found.headroom_s, found.headroom_reason) == (0.0, "retention.bytes")
    assert not wants_rate(report(found))


def test_second_look_is_of_no_use_where_the_size_is_not_known() -> None:
    found = partition_lag(A, 0, Log(0, 10, policy=BY_SIZE), now_ms=NOW)
    assert found.missing == ("the headroom by retention.bytes: figures for it are not known",)
    assert not wants_rate(report(found))


def test_record_without_a_timestamp_has_no_age() -> None:
    log = Log(0, 10, newest_ms=-1, policy=RetentionPolicy(retention_ms=HOUR), position_time_ms=-1)
    found = partition_lag(A, 0, log, now_ms=NOW)
    assert (found.seconds_behind, found.position_time_ms, found.newest_time_ms) == (None, None, None)
    assert (found.produced_per_s, found.headroom_s) == (None, None)
    assert found.missing[0] == "the time of the record at its position: the record has no timestamp"


def test_headroom_says_which_limit_could_not_be_computed() -> None:
    found = partition_lag(A, 0, Log(0, 10, policy=RetentionPolicy(retention_ms=HOUR)), now_ms=NOW)
    assert found.headroom_s is None
    assert found.missing == ("the headroom by retention.ms: figures for it are not known",)


def test_timestamp_in_the_future_counts_as_now() -> None:
    found = partition_lag(A, 0, Log(0, 10, position_time_ms=NOW + HOUR), now_ms=NOW)
    assert (found.seconds_behind, found.produced_per_s) == (0.0, None)


@given(
    position=OFFSETS,
    start=OFFSETS,
    records=OFFSETS,
    size=st.none() | OFFSETS,
    time_ms=st.none() | st.integers(-2, 2**45),
)
def test_figures_are_never_negative_and_add_up(
    position: int, start: int, records: int, size: int | None, time_ms: int | None
) -> None:
    log = Log(start, start + records, size=size, policy=RetentionPolicy(retention_ms=HOUR), position_time_ms=time_ms)
    found = partition_lag(A, position, log, now_ms=NOW)
    if position > log.end:
        assert found.state is LagState.BEYOND_END
        return
    assert found.records_behind is not None
    assert found.records_lost is not None
    assert found.records_behind + found.records_lost == log.end - position
    assert 0 <= found.records_behind <= records
    assert (found.state is LagState.LOST) == (found.records_lost > 0)
    for figure in (found.records_lost, found.bytes_behind, found.seconds_behind, found.headroom_s):
        assert figure is None or figure >= 0
    if size is not None:
        assert found.bytes_behind is not None
        assert found.bytes_behind <= size


@pytest.mark.parametrize(
    ("behind", "produced", "consumed", "expected"),
    [
        (0, None, None, 0.0),
        (100, 5.0, 15.0, 10.0),
        (100, 5.0, 5.0, math.inf),
        (100, 5.0, 1.0, math.inf),
        (100, None, 5.0, None),
    ],
)
def test_time_to_catch_up_is_endless_if_no_more_is_read_than_written(
    behind: int, produced: float | None, consumed: float | None, expected: float | None
) -> None:
    assert catch_up_s(behind, produced, consumed) == expected


def test_rates_of_two_looks_replace_those_of_one() -> None:
    before = report(partition_lag(A, 100, Log(0, 200), now_ms=NOW), at_ms=NOW)
    after = report(partition_lag(A, 150, Log(0, 220, position_time_ms=NOW), now_ms=NOW), at_ms=NOW + 10_000)
    (found,) = with_rates(after, before).partitions
    assert (found.produced_per_s, found.consumed_per_s) == (2.0, 5.0)
    assert found.catch_up_s == pytest.approx(70 / 3)


@pytest.mark.parametrize("position", [99, None])
def test_rates_stay_if_the_position_went_back_or_was_not_known(position: int | None) -> None:
    first = PartitionLag(*A) if position is None else partition_lag(A, 100, Log(0, 200), now_ms=NOW)
    after = report(partition_lag(A, 99, Log(0, 220), now_ms=NOW), at_ms=NOW + 10_000)
    assert with_rates(after, report(first)) == after


def test_rates_stay_if_the_log_went_back() -> None:
    before = report(partition_lag(A, 100, Log(0, 200), now_ms=NOW))
    after = report(partition_lag(A, 100, Log(0, 150), now_ms=NOW), at_ms=NOW + 10_000)
    assert with_rates(after, before) == after


def test_rates_stay_if_no_time_has_passed_between_two_looks() -> None:
    one = report(partition_lag(A, 1, Log(0, 2), now_ms=NOW))
    assert with_rates(one, one) == one
