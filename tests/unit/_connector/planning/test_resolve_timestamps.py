"""From times to offsets."""

from __future__ import annotations

import pytest

from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, SpecificTimestamps
from pyspark_kafka._connector.planning import resolve_timestamps, timestamps_to_look_up
from pyspark_kafka.errors import DataLossError, OptionError

A, B, C = (TopicPartition("t", number) for number in range(3))
NEW_YEAR = 1_767_225_600_000


def test_time_for_all_partitions_is_looked_up_in_each() -> None:
    assert timestamps_to_look_up(AtTimestamp(5), [B, A], option="o") == {A: 5, B: 5}
    assert timestamps_to_look_up(AtTimestamp(5), [], option="o") == {}
    assert timestamps_to_look_up(SpecificTimestamps({B: 6, A: 5}), [A, B], option="o") == {A: 5, B: 6}


@pytest.mark.parametrize(
    ("named", "difference"),
    [
        ([A], "leaves out t-1"),
        ([A, B, C], "names t-2, which do not exist or are not read here"),
        ([A, C], "names t-2, which do not exist or are not read here and leaves out t-1"),
    ],
)
def test_times_by_partition_name_exactly_what_is_read(named: list[TopicPartition], difference: str) -> None:
    with pytest.raises(OptionError) as caught:
        timestamps_to_look_up(SpecificTimestamps(dict.fromkeys(named, 5)), [A, B], option="endingOffsetsByTimestamp")
    assert said(caught.value) == (
        "[KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED] Option 'endingOffsetsByTimestamp' must name exactly the "
        f"partitions that are read: it {difference}. Nothing was read. Hint: Name every partition, or set one time for "
        "all with startingTimestamp or endingTimestamp. Partitions may also have been created or deleted meanwhile."
    )


def resolve(
    found: dict[TopicPartition, int], latest: dict[TopicPartition, int], *, latest_without_match: bool
) -> dict[TopicPartition, int]:
    return resolve_timestamps(
        {A: NEW_YEAR, B: NEW_YEAR + 1},
        found,
        latest,
        option="startingTimestamp",
        latest_without_match=latest_without_match,
    )


@pytest.mark.parametrize("latest_without_match", [True, False])
def test_found_offset_is_taken(latest_without_match: bool) -> None:
    assert resolve({A: 5, B: 0}, {}, latest_without_match=latest_without_match) == {A: 5, B: 0}
    assert resolve({A: 5, B: 0}, {A: 9, B: 9}, latest_without_match=latest_without_match) == {A: 5, B: 0}


def test_records_written_after_the_ends_were_looked_up_are_left_behind_them() -> None:
    # Else a start would lie behind an end of `latest`, which is an error.
    assert resolve({A: 12, B: 0}, {A: 9, B: 9}, latest_without_match=True) == {A: 9, B: 0}


def test_partition_without_a_record_starts_at_its_end_if_asked_for() -> None:
    assert resolve({B: 3}, {A: 9, B: 9}, latest_without_match=True) == {A: 9, B: 3}


def test_partition_without_a_record_is_an_error_otherwise() -> None:
    with pytest.raises(OptionError) as caught:
        resolve({A: 5}, {A: 9, B: 9}, latest_without_match=False)
    assert said(caught.value) == (
        "[NO_OFFSET_FOR_TIMESTAMP] There is no record of the time of option 'startingTimestamp' or later in 1 of 2 "
        "topic-partitions: t-1 since 2026-01-01T00:00:00.001Z (1767225600001). Nothing was read. Hint: Set "
        "startingOffsetsByTimestampStrategy to latest to start such partitions at their end, or set an earlier time."
    )


def test_a_partition_that_disappeared_meanwhile_is_reported() -> None:
    with pytest.raises(DataLossError, match=r"INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS\].* t-0:"):
        resolve({}, {B: 9}, latest_without_match=True)


def test_many_partitions_are_counted() -> None:
    timestamps = {TopicPartition("t", number): 1 for number in range(30)}
    with pytest.raises(OptionError, match=r"30 of 30 topic-partitions: t-0 since .* and 10 more\."):
        resolve_timestamps(timestamps, {}, {}, option="startingTimestamp", latest_without_match=False)
