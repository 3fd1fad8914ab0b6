"""When a stream has a batch, where it starts by time, how it is split, and how an available-now run ends."""

from __future__ import annotations

from typing import Any

import pytest

from kit.fakes.clock import Clock
from kit.fixtures.offsets import ScriptedOffsets, ranges, stream_of
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, KafkaSourceOffset, SpecificTimestamps
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka.connector import (
    CompositeReadLimit,
    Offset,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    ReportsSourceMetrics,
)
from pyspark_kafka.errors import OptionError, PlanningError

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ALL = ReadAllAvailable()
MIN = ReadMinRows(10, 60_000)
MIN_MAX = CompositeReadLimit((MIN, ReadMaxRows(15)))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ALL),
        ({"max_offsets_per_trigger": 9}, ReadMaxRows(9)),
        ({"min_offsets_per_trigger": 9}, ReadMinRows(9, 900_000)),
        (
            {"min_offsets_per_trigger": 9, "max_offsets_per_trigger": 10, "max_trigger_delay_ms": 5},
            CompositeReadLimit((ReadMinRows(9, 5), ReadMaxRows(10))),
        ),
    ],
)
def test_the_default_limit_is_what_the_options_say(options: dict[str, Any], expected: ReadLimit) -> None:
    assert stream_of(**options).getDefaultReadLimit() == expected


@pytest.mark.parametrize("limit", [MIN, MIN_MAX])
def test_the_first_batch_of_a_run_does_not_wait(offsets: ScriptedOffsets, clock: Clock, limit: ReadLimit) -> None:
    offsets.logs = {A: (0, 1)}
    assert stream_of(clock=clock).latestOffset(KafkaSourceOffset({A: 0}), limit) == KafkaSourceOffset({A: 1})


@pytest.mark.parametrize("limit", [MIN, MIN_MAX])
def test_a_batch_waits_until_there_are_enough_offsets(offsets: ScriptedOffsets, clock: Clock, limit: ReadLimit) -> None:
    stream, start = stream_of(clock=clock), KafkaSourceOffset({A: 0, B: 0})
    offsets.logs = {A: (0, 0), B: (0, 0)}
    stream.latestOffset(start, limit)
    offsets.logs = {A: (0, 6), B: (0, 3)}
    assert stream.latestOffset(start, limit) is start
    # The ends are reported all the same.
    assert stream.reportLatestOffset() == KafkaSourceOffset({A: 6, B: 3})
    offsets.logs = {A: (0, 6), B: (0, 4)}
    assert stream.latestOffset(start, limit) == KafkaSourceOffset({A: 6, B: 4})


def test_a_batch_waits_no_longer_than_the_delay(offsets: ScriptedOffsets, clock: Clock) -> None:
    stream, start = stream_of(clock=clock), KafkaSourceOffset({A: 0})
    offsets.logs = {A: (0, 0)}
    stream.latestOffset(start, MIN)
    offsets.logs = {A: (0, 1)}
    clock.now += 59.9
    assert stream.latestOffset(start, MIN) is start
    clock.now += 0.1
    assert stream.latestOffset(start, MIN) == KafkaSourceOffset({A: 1})
    # It counts from the last batch, not from the first.
    offsets.logs = {A: (0, 2)}
    clock.now += 59.9
    position = KafkaSourceOffset({A: 1})
    assert stream.latestOffset(position, MIN) is position


def test_a_delay_that_passes_without_records_counts_again(offsets: ScriptedOffsets, clock: Clock) -> None:
    stream, start = stream_of(clock=clock), KafkaSourceOffset({A: 3})
    offsets.logs = {A: (0, 3)}
    for _ in range(2):
        assert stream.latestOffset(start, MIN) == start
        clock.now += 60
    assert stream.latestOffset(start, MIN) == start
    offsets.logs = {A: (0, 4)}
    clock.now += 59
    assert stream.latestOffset(start, MIN) is start


def test_batch_waits_for_ever_without_a_delay(offsets: ScriptedOffsets, clock: Clock) -> None:
    stream, start = stream_of(clock=clock), KafkaSourceOffset({A: 0})
    offsets.logs = {A: (0, 0)}
    stream.latestOffset(start, ReadMinRows(10))
    offsets.logs = {A: (0, 9)}
    clock.now += 1e9
    assert stream.latestOffset(start, ReadMinRows(10)) is start


def test_a_batch_that_has_waited_keeps_its_upper_bound(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 90), B: (0, 60)}
    assert stream_of().latestOffset(KafkaSourceOffset({A: 0, B: 0}), MIN_MAX) == KafkaSourceOffset({A: 9, B: 6})


@pytest.mark.parametrize("limit", [ALL, CompositeReadLimit((MIN, ALL, ReadMaxRows(1)))])
def test_reading_all_takes_precedence_over_both_bounds(offsets: ScriptedOffsets, limit: ReadLimit) -> None:
    offsets.logs = {A: (0, 0)}
    stream, start = stream_of(min_offsets_per_trigger=10, max_offsets_per_trigger=1), KafkaSourceOffset({A: 0})
    stream.latestOffset(start, limit)
    offsets.logs = {A: (0, 5)}
    assert stream.latestOffset(start, limit) == KafkaSourceOffset({A: 5})


def test_a_new_run_does_not_wait_either(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 5)}
    start = KafkaSourceOffset({A: 4})
    assert [stream_of().latestOffset(start, MIN) for _ in range(2)] == [KafkaSourceOffset({A: 5})] * 2


def test_an_unknown_part_of_a_composite_is_refused(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 5)}
    with pytest.raises(NotImplementedError, match="read limit"):
        stream_of().latestOffset(KafkaSourceOffset({A: 0}), CompositeReadLimit((MIN, ReadLimit())))


def test_an_available_now_run_leaves_what_is_too_little_to_the_next_run(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 35)}
    stream = stream_of()
    stream.prepareForTriggerAvailableNow()
    position: Offset = KafkaSourceOffset({A: 0})
    ends = []
    for _ in range(4):
        position = stream.latestOffset(position, MIN_MAX)
        ends.append(position)
    # 15, 15, and the 5 that are left are fewer than 10; so does spark-sql-kafka-0-10 4.2.0.
    assert ends == [KafkaSourceOffset({A: 15}), *[KafkaSourceOffset({A: 30})] * 3]
    following = stream_of()
    following.prepareForTriggerAvailableNow()
    assert following.latestOffset(position, MIN_MAX) == KafkaSourceOffset({A: 35})


@pytest.mark.parametrize(
    ("starting", "latest_without_match", "expected", "asked"),
    [
        (AtTimestamp(6), False, {A: 10, B: 6}, ["partitions", "timestamps"]),
        (AtTimestamp(6), True, {A: 10, B: 6}, ["partitions", "latest", "timestamps"]),
        (SpecificTimestamps({A: 20, B: 0}), False, {A: 20, B: 0}, ["partitions", "timestamps"]),
        (AtTimestamp(40), True, {A: 40, B: 8}, ["partitions", "latest", "timestamps"]),
        (AtTimestamp(99), True, {A: 50, B: 8}, ["partitions", "latest", "timestamps"]),
    ],
)
def test_a_stream_starts_at_the_first_record_of_a_time(
    offsets: ScriptedOffsets,
    starting: AtTimestamp | SpecificTimestamps,
    latest_without_match: bool,
    expected: dict[TopicPartition, int],
    asked: list[str],
) -> None:
    # The record at an offset has the offset for its timestamp.
    offsets.logs = {A: (10, 50), B: (0, 8)}
    stream = stream_of(starting=starting, start_at_latest_without_match=latest_without_match)
    assert stream.initialOffset() == KafkaSourceOffset(expected)
    assert offsets.asked == asked


def test_a_stream_does_not_start_where_no_record_is_of_the_time(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (10, 50), B: (0, 8)}
    stream = stream_of(starting=AtTimestamp(40))
    start = stream.initialOffset()
    with pytest.raises(OptionError, match=r"NO_OFFSET_FOR_TIMESTAMP\].*'startingTimestamp'.*in 1 of 2 .*: t-1 since"):
        stream.latestOffset(start, ReadAllAvailable())


def test_times_of_other_partitions_than_there_are_are_refused(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (10, 50), B: (0, 8)}
    stream = stream_of(starting=SpecificTimestamps({A: 1}))
    start = stream.initialOffset()
    with pytest.raises(
        OptionError, match=r"KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED\].*'startingOffsetsByTimestamp'"
    ):
        stream.latestOffset(start, ReadAllAvailable())
    assert offsets.asked == ["partitions"]


def test_a_batch_is_split_as_the_options_say_and_again_in_the_same_way(offsets: ScriptedOffsets) -> None:
    start, end = KafkaSourceOffset({A: 0, B: 0}), KafkaSourceOffset({A: 10, B: 3})
    assert ranges(stream_of(max_records_per_partition=4), start, end) == [
        "t-0 [0, 3)",
        "t-0 [3, 6)",
        "t-0 [6, 10)",
        "t-1 [0, 3)",
    ]
    wished = [ranges(stream_of(min_partitions=4), start, end) for _ in range(2)]
    assert wished == [["t-0 [0, 3)", "t-0 [3, 6)", "t-0 [6, 10)", "t-1 [0, 3)"]] * 2
    # Asked once for the ids of topics, as this run has not given that end; never for offsets.
    assert offsets.asked == ["partitions"] * 3


@pytest.mark.usefixtures("offsets")
def test_partitions_share_a_task_and_again_in_the_same_way() -> None:
    start, end = KafkaSourceOffset({A: 0, B: 0}), KafkaSourceOffset({A: 10, B: 3})
    for _ in range(2):
        assert stream_of(max_partitions_per_task=2).planInputPartitions(start, end) == [
            KafkaInputPartition(OffsetRange(A, 0, 10), (OffsetRange(B, 0, 3),))
        ]


def test_ends_are_compared_with_what_the_query_knows(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 5)}
    stream_of().latestOffset(KafkaSourceOffset({A: 4}), ALL)
    assert offsets.known == {A: 4}


def prepared(offsets: ScriptedOffsets) -> tuple[KafkaMicroBatchStream, Offset, Offset]:
    """A run that is to end at t-0: 10, t-1: 5."""
    offsets.logs = {A: (0, 10), B: (0, 5)}
    stream, start = stream_of(), KafkaSourceOffset({A: 0, B: 0})
    stream.prepareForTriggerAvailableNow()
    return stream, start, stream.latestOffset(start, ALL)


def test_a_batch_of_an_available_now_run_is_checked_against_what_there_is(offsets: ScriptedOffsets) -> None:
    stream, start, end = prepared(offsets)
    offsets.logs = {A: (0, 12), B: (0, 5), TopicPartition("t", 2): (0, 1)}
    assert ranges(stream, start, end) == ["t-0 [0, 10)", "t-1 [0, 5)"]
    assert offsets.known == {A: 10, B: 5}


@pytest.mark.parametrize(
    ("logs", "condition"),
    [
        ({A: (0, 10)}, "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW"),
        (
            {A: (0, 9), B: (0, 5)},
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW",
        ),
    ],
)
def test_an_available_now_run_fails_when_what_it_promised_is_gone(
    offsets: ScriptedOffsets, logs: dict[TopicPartition, tuple[int, int]], condition: str
) -> None:
    stream, start, end = prepared(offsets)
    offsets.logs = logs
    with pytest.raises(PlanningError) as caught:
        stream.planInputPartitions(start, end)
    assert caught.value.condition == condition


@pytest.mark.parametrize(
    ("end", "condition"),
    [
        ({A: 10}, "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED"),
        ({A: 11, B: 5}, "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED"),
    ],
)
def test_an_available_now_run_refuses_an_end_that_is_not_its_own(
    offsets: ScriptedOffsets, end: dict[TopicPartition, int], condition: str
) -> None:
    stream, start, _ = prepared(offsets)
    with pytest.raises(PlanningError) as caught:
        stream.planInputPartitions(start, KafkaSourceOffset(end))
    assert caught.value.condition == condition


def test_figures_are_about_the_ends_that_the_last_batch_saw(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 90), B: (0, 60)}
    stream, start = stream_of(), KafkaSourceOffset({A: 0, B: 0})
    assert isinstance(stream, ReportsSourceMetrics)
    assert stream.metrics(start) == {}
    end = stream.latestOffset(start, ReadMaxRows(15))
    offsets.logs = {A: (0, 1_000), B: (0, 1_000)}
    assert stream.metrics(None) == {}
    assert stream.metrics(end) == {
        "minOffsetsBehindLatest": "54",
        "maxOffsetsBehindLatest": "81",
        "avgOffsetsBehindLatest": "67.5",
    }


def test_batch_without_a_bound_leaves_nothing_behind(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 90), B: (0, 60)}
    stream = stream_of()
    end = stream.latestOffset(KafkaSourceOffset({A: 0}), ALL)
    assert list(stream.metrics(end).values()) == ["0", "0", "0.0"]
