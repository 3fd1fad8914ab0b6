"""What a batch read plans, over a cluster of offsets in memory."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kit.fixtures.offsets import ScriptedOffsets
from kit.texts import said
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest, RangeEdge, SpecificOffsets, SpecificTimestamps
from pyspark_kafka._client.options import BatchReadOptions, ConnectionOptions, Subscription
from pyspark_kafka._connector.planning.open_ends import NO_END, OpenEnds
from pyspark_kafka._connector.planning.record_filter import NOTHING, RecordFilter
from pyspark_kafka._connector.source.driver.batch import KafkaBatch
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka.errors import DataLossError, OptionError

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def tasks(record_filter: RecordFilter | None = None, **options: Any) -> list[KafkaInputPartition]:
    connection = ConnectionOptions((("not-asked", 9092),))
    batch = KafkaBatch(BatchReadOptions(connection, Subscription("subscribe", ("t",)), **options), SOURCE_SCHEMA)
    if record_filter is not None:
        batch.narrow(record_filter)
    return [partition for partition in batch.planInputPartitions() if isinstance(partition, KafkaInputPartition)]


def planned(record_filter: RecordFilter | None = None, **options: Any) -> list[str]:
    return [str(task.offset_range) for task in tasks(record_filter, **options)]


def test_batch_reads_whole_logs_and_empty_partitions_by_default(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (3, 10), B: (5, 5)}
    assert tasks() == [
        KafkaInputPartition(OffsetRange(A, 3, 10), open_ends=OpenEnds(0, NO_END)),
        KafkaInputPartition(OffsetRange(B, 5, 5), open_ends=OpenEnds(0, NO_END)),
    ]


def test_ends_that_options_leave_open_stay_open_and_numbers_and_times_do_not(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (3, 10), B: (5, 9)}

    def open_ends(**options: Any) -> list[OpenEnds | None]:
        return [task.open_ends for task in tasks(**options)]

    mixed: dict[str, Any] = {
        "starting": SpecificOffsets({A: 4}, {"t": Earliest()}),
        "ending": SpecificOffsets({A: Latest(), B: 8}),
    }
    # The offset of a partition takes precedence over that of its topic.
    assert open_ends(**mixed) == [OpenEnds(None, NO_END), OpenEnds(0, None)]
    assert open_ends(starting=AtTimestamp(6), ending=AtTimestamp(99)) == [None, None]
    assert open_ends(starting=AtTimestamp(6)) == [OpenEnds(None, NO_END)] * 2
    assert open_ends(ending=AtTimestamp(8)) == [OpenEnds(0, None)] * 2


def test_a_split_leaves_open_ends_with_the_first_and_the_last_part(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (3, 13), B: (5, 5)}
    assert tasks(max_records_per_partition=4) == [
        KafkaInputPartition(OffsetRange(A, 3, 6), open_ends=OpenEnds(start_from=0, strict=False)),
        KafkaInputPartition(OffsetRange(A, 6, 9)),
        KafkaInputPartition(OffsetRange(A, 9, 13), open_ends=OpenEnds(end_by=NO_END, strict=False)),
        KafkaInputPartition(OffsetRange(B, 5, 5), open_ends=OpenEnds(0, NO_END)),
    ]


def test_a_log_that_ages_out_while_it_is_looked_up_is_no_start_behind_an_end(
    offsets: ScriptedOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets.logs = {A: (3, 10)}
    monkeypatch.setattr(offsets, "fetch_earliest_offsets", lambda _: {A: 12})
    (task,) = tasks()
    assert task.open_ends == OpenEnds(0, NO_END)
    with pytest.raises(OptionError, match=r"RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET\].* t-0 \[12, 10\)"):
        tasks(ending=SpecificOffsets({A: 10}))


@pytest.mark.parametrize(
    ("record_filter", "expected"),
    [
        (RecordFilter(partitions=frozenset({1})), ["t-1 [5, 20)"]),
        (RecordFilter(offset_from=8, offset_by=15), ["t-0 [8, 10)", "t-1 [8, 15)"]),
        # Records may come to where the filter looks until a task runs.
        (RecordFilter(offset_from=15), ["t-0 [15, 15)", "t-1 [15, 20)"]),
        (RecordFilter(offset_by=5), ["t-0 [0, 5)", "t-1 [5, 5)"]),
        (RecordFilter(offset_from=8, offset_by=8), list[str]()),
        (NOTHING, list[str]()),
        # The record at an offset has the offset for its timestamp; the first partition has none as late as 12.
        (RecordFilter(not_before_ms=12), ["t-0 [10, 10)", "t-1 [12, 20)"]),
        (RecordFilter(not_before_ms=12, offset_from=14), ["t-0 [14, 14)", "t-1 [14, 20)"]),
        (RecordFilter(not_before_ms=-1), ["t-0 [0, 10)", "t-1 [5, 20)"]),
    ],
)
def test_records_that_a_filter_refuses_are_not_read(
    offsets: ScriptedOffsets, record_filter: RecordFilter, expected: list[str]
) -> None:
    offsets.logs = {A: (0, 10), B: (5, 20)}
    assert planned(record_filter) == expected


def test_a_filter_bounds_what_an_open_end_can_become(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10)}
    (task,) = tasks(RecordFilter(offset_from=2, offset_by=12))
    assert task == KafkaInputPartition(OffsetRange(A, 2, 10), open_ends=OpenEnds(2, 12))
    # An end that an option fixed stays an end to check against, one that a filter made does not.
    ending = SpecificOffsets({A: 8})
    assert tasks(RecordFilter(offset_by=9), ending=ending)[0].open_ends == OpenEnds(0, None, strict=True)
    assert tasks(RecordFilter(offset_by=7), ending=ending)[0].open_ends == OpenEnds(0, None, strict=False)
    assert tasks(RecordFilter(offset_from=8), ending=ending) == []


def test_a_time_is_looked_up_after_the_ends_and_only_where_the_filter_looks(
    offsets: ScriptedOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets.logs = {A: (0, 10), B: (5, 20)}
    asked: list[TopicPartition] = []
    monkeypatch.setattr(offsets, "by_time", lambda where, _: asked.append(where))
    assert planned(RecordFilter(not_before_ms=12, partitions=frozenset({1}))) == ["t-1 [20, 20)"]
    assert asked == [B]
    assert offsets.asked == ["partitions", "latest", "earliest", "timestamps"]


def test_options_that_do_not_fit_are_refused_under_any_filter(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (0, 20)}
    with pytest.raises(OptionError, match="KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED"):
        planned(RecordFilter(partitions=frozenset({0})), starting=SpecificOffsets({A: 1}))


def test_ends_are_looked_up_before_starts(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (3, 10)}
    planned()
    assert offsets.asked == ["partitions", "latest", "earliest"]


def test_offsets_by_partition_are_taken_as_they_are(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (0, 20)}
    starting, ending = SpecificOffsets({A: 4, B: 20}), SpecificOffsets({A: 6, B: Latest()})
    assert planned(starting=starting, ending=ending) == ["t-0 [4, 6)", "t-1 [20, 20)"]


def test_a_start_behind_its_end_names_every_such_range(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (0, 20)}
    with pytest.raises(OptionError) as caught:
        planned(starting=SpecificOffsets({A: 7, B: 30}), ending=SpecificOffsets({A: 6, B: 20}))
    assert said(caught.value) == (
        "[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] The start is after the end of t-0 [7, 6), t-1 [30, 20). "
        "Nothing was read. Hint: Check the starting and ending options, and whether the topic was recreated."
    )


def test_an_end_behind_the_log_is_data_loss_before_any_task_waits_for_it(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10)}
    with pytest.raises(DataLossError) as caught:
        planned(ending=SpecificOffsets({A: 25}))
    assert said(caught.value) == (
        "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Offsets [10, 25) of t-0 [0, 25) cannot be read: the log of t-0 "
        "ends at 10; 15 offsets are missing. Nothing was read. Hint: Check 'endingOffsets', or set "
        "failOnDataLoss to false to read the rest."
    )


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_end_that_is_only_not_visible_is_planned(offsets: ScriptedOffsets, *, fail_on_data_loss: bool) -> None:
    """An open transaction hides it from `read_committed`: the task waits for it."""
    offsets.logs, offsets.log_ends = {A: (0, 10), B: (0, 10)}, {A: 25, B: 10}
    assert planned(ending=SpecificOffsets({A: 25, B: 10}), fail_on_data_loss=fail_on_data_loss) == [
        "t-0 [0, 25)",
        "t-1 [0, 10)",
    ]


@pytest.mark.parametrize(("start", "expected"), [(4, ["t-0 [4, 10)"]), (10, list[str]()), (15, list[str]())])
def test_rest_of_the_range_is_read_if_loss_is_tolerated(
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
    with pytest.raises(OptionError, match=rf"Option '{option}Offsets'.*names t-1"):
        planned(None, **{option: SpecificOffsets({A: 1, B: 1})})


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
    offsets: ScriptedOffsets, starting: RangeEdge, ending: RangeEdge, expected: list[str]
) -> None:
    # The record at an offset has the offset for its timestamp.
    offsets.logs = {A: (0, 10), B: (5, 20)}
    assert planned(starting=starting, ending=ending) == expected


def test_a_start_without_a_record_of_the_time_is_an_error_or_the_end(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (5, 20)}
    with pytest.raises(OptionError, match=r"NO_OFFSET_FOR_TIMESTAMP\].*'startingTimestamp' .* 1 of 2 .*: t-0 since"):
        planned(starting=AtTimestamp(12))
    assert planned(starting=AtTimestamp(12), start_at_latest_without_match=True) == [
        "t-0 [10, 10)",
        "t-1 [12, 20)",
    ]


def test_records_that_come_between_the_look_ups_are_not_a_start_behind_an_end(
    offsets: ScriptedOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets.logs = {A: (0, 10)}
    monkeypatch.setattr(offsets, "by_time", lambda *_: 12)
    assert planned(starting=AtTimestamp(1)) == ["t-0 [10, 10)"]


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
    offsets: ScriptedOffsets, starting: RangeEdge, ending: RangeEdge, option: str
) -> None:
    offsets.logs = {A: (0, 10), B: (0, 20)}
    with pytest.raises(OptionError, match=rf"KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED\].*'{option}'"):
        planned(starting=starting, ending=ending)


def test_a_read_from_earliest_to_latest_is_split_by_what_there_is(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (3, 13)}
    assert planned(max_records_per_partition=4) == ["t-0 [3, 6)", "t-0 [6, 9)", "t-0 [9, 13)"]
    assert planned(min_partitions=2) == ["t-0 [3, 8)", "t-0 [8, 13)"]
    assert planned(min_partitions=1, max_records_per_partition=10) == ["t-0 [3, 13)"]


def test_partitions_share_a_task_and_then_no_end_stays_open(offsets: ScriptedOffsets) -> None:
    c = TopicPartition("t", 2)
    offsets.logs = {A: (3, 13), B: (5, 5), c: (0, 6)}
    assert tasks(max_partitions_per_task=2) == [KafkaInputPartition(OffsetRange(A, 3, 13), (OffsetRange(c, 0, 6),))]
    assert tasks(max_partitions_per_task=2, max_records_per_partition=15) == [
        KafkaInputPartition(OffsetRange(A, 3, 13)),
        KafkaInputPartition(OffsetRange(c, 0, 6)),
    ]
    offsets.logs[A] = (0, 99_995)
    assert len(tasks(max_partitions_per_task=2)) == 2
    offsets.logs[A] = (0, 99_994)
    assert len(tasks(max_partitions_per_task=2)) == 1
