"""What a batch read plans, over a cluster of offsets in memory."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from pyspark_kafka.errors import DataLossError, OptionError
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.offsets import AtTimestamp, Latest, OffsetRangeLimit, SpecificOffsets, SpecificTimestamps
from pyspark_kafka.options import BatchReadOptions, ConnectionOptions, Subscription
from pyspark_kafka.source.batch import KafkaBatch
from pyspark_kafka.source.columns import SOURCE_SCHEMA
from pyspark_kafka.source.partition_reader import KafkaInputPartition

if TYPE_CHECKING:
    from unit.source.conftest import ScriptedOffsets

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def planned(**options: Any) -> list[str]:
    connection = ConnectionOptions((("not-asked", 9092),))
    batch = KafkaBatch(BatchReadOptions(connection, Subscription("subscribe", ("t",)), **options), SOURCE_SCHEMA)
    found = []
    for partition in batch.planInputPartitions():
        assert isinstance(partition, KafkaInputPartition)
        found.append(str(partition.offset_range))
    return found


def test_everything_there_is_by_default_without_partitions_that_are_empty(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (3, 10), B: (5, 5)}
    assert planned() == ["t-0 [3, 10)"]


def test_ends_are_looked_up_before_starts(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (3, 10)}
    planned()
    assert offsets.asked == ["partitions", "latest", "earliest"]


def test_offsets_by_partition_are_taken_as_they_are(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (0, 20)}
    starting, ending = SpecificOffsets({A: 4, B: 20}), SpecificOffsets({A: 6, B: Latest()})
    assert planned(starting=starting, ending=ending) == ["t-0 [4, 6)"]


def test_a_start_behind_its_end_names_every_such_range(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (0, 20)}
    with pytest.raises(OptionError) as caught:
        planned(starting=SpecificOffsets({A: 7, B: 30}), ending=SpecificOffsets({A: 6, B: 20}))
    assert str(caught.value) == (
        "[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] The start lies behind the end of t-0 [7, 6), t-1 [30, 20). "
        "Nothing was read. Hint: check the starting and ending options; was the topic deleted and made again?"
    )


def test_an_end_behind_the_log_is_data_loss_before_any_task_waits_for_it(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10)}
    with pytest.raises(DataLossError) as caught:
        planned(ending=SpecificOffsets({A: 25}))
    assert str(caught.value) == (
        "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Offsets [10, 25) of t-0 [0, 25) cannot be read: the log of t-0 "
        "ends at 10. Nothing was read. Hint: check 'endingOffsets', or set failOnDataLoss=false to read what is there."
    )


@pytest.mark.parametrize(("start", "expected"), [(4, ["t-0 [4, 10)"]), (10, list[str]()), (15, list[str]())])
def test_what_is_there_is_read_where_loss_is_tolerated(
    offsets: ScriptedOffsets, caplog: pytest.LogCaptureFixture, start: int, expected: list[str]
) -> None:
    offsets.logs = {A: (0, 10)}
    with caplog.at_level(logging.WARNING):
        found = planned(starting=SpecificOffsets({A: start}), ending=SpecificOffsets({A: 25}), fail_on_data_loss=False)
    assert found == expected
    (warning,) = caplog.records
    assert f"Offsets [{max(start, 10)}, 25) of t-0 [{start}, 25) cannot be read" in warning.getMessage()


@pytest.mark.parametrize("option", ["starting", "ending"])
def test_offsets_of_other_partitions_name_the_option(offsets: ScriptedOffsets, option: str) -> None:
    offsets.logs = {A: (0, 10)}
    with pytest.raises(OptionError, match=rf"option '{option}Offsets'.*names t-1"):
        planned(**{option: SpecificOffsets({A: 1, B: 1})})


def test_a_subscription_without_partitions_reads_nothing(offsets: ScriptedOffsets) -> None:
    assert planned() == []
    assert offsets.asked[0] == "partitions"


@pytest.mark.parametrize(
    ("starting", "ending", "expected"),
    [
        (AtTimestamp(4), AtTimestamp(8), ["t-0 [4, 8)", "t-1 [5, 8)"]),
        (AtTimestamp(4), Latest(), ["t-0 [4, 10)", "t-1 [5, 20)"]),
        (SpecificTimestamps({A: 0, B: 6}), SpecificOffsets({A: 5, B: Latest()}), ["t-0 [0, 5)", "t-1 [6, 20)"]),
        # Without a record of the time, a partition ends where its log does.
        (SpecificOffsets({A: 9, B: 7}), AtTimestamp(15), ["t-0 [9, 10)", "t-1 [7, 15)"]),
        (SpecificOffsets({A: 9, B: 7}), SpecificTimestamps({A: 99, B: 7}), ["t-0 [9, 10)"]),
    ],
)
def test_a_read_goes_from_the_first_record_of_a_time_to_before_that_of_another(
    offsets: ScriptedOffsets, starting: OffsetRangeLimit, ending: OffsetRangeLimit, expected: list[str]
) -> None:
    # The record at an offset has the offset for its timestamp.
    offsets.logs = {A: (0, 10), B: (5, 20)}
    assert planned(starting=starting, ending=ending) == expected


def test_a_start_without_a_record_of_the_time_is_an_error_or_the_end(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (5, 20)}
    with pytest.raises(OptionError, match=r"NO_OFFSET_FOR_TIMESTAMP\].*'startingTimestamp' .* 1 of 2 .*: t-0 since"):
        planned(starting=AtTimestamp(12))
    assert planned(starting=AtTimestamp(12), start_at_latest_without_match=True) == ["t-1 [12, 20)"]


def test_records_that_come_between_the_look_ups_are_not_a_start_behind_an_end(
    offsets: ScriptedOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets.logs = {A: (0, 10)}
    monkeypatch.setattr(offsets, "by_time", lambda *_: 12)
    assert planned(starting=AtTimestamp(1)) == []


def test_a_start_later_than_its_end_is_refused(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10)}
    with pytest.raises(OptionError, match=r"RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET\].* t-0 \[8, 4\)"):
        planned(starting=AtTimestamp(8), ending=AtTimestamp(4))


@pytest.mark.parametrize(
    ("starting", "ending", "option"),
    [
        (SpecificTimestamps({A: 1}), Latest(), "startingOffsetsByTimestamp"),
        (AtTimestamp(1), SpecificTimestamps({A: 1}), "endingOffsetsByTimestamp"),
    ],
)
def test_times_of_other_partitions_than_there_are_are_refused(
    offsets: ScriptedOffsets, starting: OffsetRangeLimit, ending: OffsetRangeLimit, option: str
) -> None:
    offsets.logs = {A: (0, 10), B: (0, 20)}
    with pytest.raises(OptionError, match=rf"KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED\].*'{option}'"):
        planned(starting=starting, ending=ending)


def test_a_read_from_earliest_to_latest_is_split_by_what_there_is(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (3, 13), B: (5, 5)}
    assert planned(max_records_per_partition=4) == ["t-0 [3, 6)", "t-0 [6, 9)", "t-0 [9, 13)"]
    assert planned(min_partitions=2) == ["t-0 [3, 8)", "t-0 [8, 13)"]
    assert planned(min_partitions=1, max_records_per_partition=10) == ["t-0 [3, 13)"]
