"""What a stream plans, over a cluster of offsets in memory."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest

from kit.costs import processor_s
from kit.fixtures.offsets import ScriptedOffsets, ranges, stream_of
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Earliest, KafkaSourceOffset, Latest, RangeEdge, SpecificOffsets
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka.connector import (
    CompositeReadLimit,
    InputPartition,
    Offset,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.errors import CheckpointError, DataLossError, OptionError, TransportError

A, B, C = (TopicPartition("t", number) for number in range(3))
ALL = ReadAllAvailable()


@pytest.mark.parametrize(
    ("starting", "expected", "asked"),
    [
        (Earliest(), {A: 5, B: 0}, ["partitions", "earliest"]),
        (Latest(), {A: 50, B: 7}, ["partitions", "latest"]),
        (SpecificOffsets({A: 20, B: Latest()}), {A: 20, B: 7}, ["partitions", "earliest", "latest"]),
        (SpecificOffsets(topics={"t": Earliest()}), {A: 5, B: 0}, ["partitions", "earliest", "latest"]),
        (SpecificOffsets({A: Earliest()}, {"t": Latest()}), {A: 5, B: 7}, ["partitions", "earliest", "latest"]),
        # Whether the log has it is found out by reading.
        (SpecificOffsets({A: 1_000, B: 0}), {A: 1_000, B: 0}, ["partitions", "earliest", "latest"]),
    ],
)
def test_the_initial_offset_is_what_the_option_says_and_no_more_is_looked_up(
    offsets: ScriptedOffsets, starting: RangeEdge, expected: dict[TopicPartition, int], asked: list[str]
) -> None:
    offsets.logs = {A: (5, 50), B: (0, 7)}
    assert stream_of(starting=starting).initialOffset() == KafkaSourceOffset(expected)
    assert offsets.asked == asked


@pytest.mark.parametrize("starting", [SpecificOffsets({A: 1}), SpecificOffsets({A: 1, B: 1, C: 1})])
def test_a_start_for_other_partitions_than_there_are_is_refused(offsets: ScriptedOffsets, starting: RangeEdge) -> None:
    offsets.logs = {A: (5, 50), B: (0, 7)}
    stream = stream_of(starting=starting)
    start = stream.initialOffset()
    with pytest.raises(OptionError, match=r"KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED\].*'startingOffsets'"):
        stream.latestOffset(start, ALL)


def test_a_start_that_is_kept_beside_the_checkpoint_is_refused_at_once(
    offsets: ScriptedOffsets, tmp_path: Path
) -> None:
    offsets.logs = {A: (5, 50), B: (0, 7)}
    with pytest.raises(OptionError, match="KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED"):
        stream_of(starting=SpecificOffsets({A: 1}), checkpoint_location=str(tmp_path)).initialOffset()


def test_the_default_limit_is_the_option(offsets: ScriptedOffsets) -> None:
    assert offsets.asked == []
    assert stream_of().getDefaultReadLimit() == ALL
    assert stream_of(max_offsets_per_trigger=9).getDefaultReadLimit() == ReadMaxRows(9)


def test_batch_without_a_limit_ends_at_the_ends_of_the_logs(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 50), B: (0, 7)}
    # The option sets the default limit only: the limit of the engine applies.
    stream = stream_of(max_offsets_per_trigger=1)
    assert stream.latestOffset(KafkaSourceOffset({A: 10}), ALL) == KafkaSourceOffset({A: 50, B: 7})
    assert stream.reportLatestOffset() == KafkaSourceOffset({A: 50, B: 7})


def test_a_limit_is_shared_and_new_partitions_begin_at_their_first_offset(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 90), B: (100, 110)}
    stream = stream_of(fail_on_data_loss=False)
    assert stream.latestOffset(KafkaSourceOffset({A: 0}), ReadMaxRows(10)) == KafkaSourceOffset({A: 9, B: 101})
    # What is reported is where the log ends, not where the batch does.
    assert stream.reportLatestOffset() == KafkaSourceOffset({A: 90, B: 110})


def test_limited_batches_reach_the_end_and_stay_there(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 25), B: (0, 3)}
    stream, position = stream_of(), KafkaSourceOffset({A: 0, B: 0})
    for _ in range(20):
        end = stream.latestOffset(position, ReadMaxRows(7))
        assert isinstance(end, KafkaSourceOffset)
        position = end
    assert position == KafkaSourceOffset({A: 25, B: 3})


@pytest.mark.parametrize("limit", [ALL, ReadMaxRows(5)])
def test_end_without_partitions_is_the_start_and_never_empty(offsets: ScriptedOffsets, limit: ReadLimit) -> None:
    start = KafkaSourceOffset({A: 4})
    stream = stream_of(fail_on_data_loss=False)
    assert offsets.logs == {}
    assert stream.latestOffset(start, limit) is start
    assert stream.reportLatestOffset() is None


def test_a_limit_that_is_unknown_is_refused(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 1)}
    with pytest.raises(NotImplementedError, match="read limit"):
        stream_of().latestOffset(KafkaSourceOffset({A: 0}), ReadLimit())


@pytest.mark.parametrize("limit", [ALL, ReadMaxRows(1_000)])
def test_available_now_ends_at_what_there_is_at_the_first_question(offsets: ScriptedOffsets, limit: ReadLimit) -> None:
    offsets.logs = {A: (0, 10)}
    stream = stream_of()
    stream.prepareForTriggerAvailableNow()
    # No snapshot yet: an uncommitted batch of a former run is planned first.
    assert offsets.asked == []
    offsets.logs = {A: (0, 20)}
    assert stream.latestOffset(KafkaSourceOffset({A: 0}), limit) == KafkaSourceOffset({A: 20})
    offsets.logs = {A: (0, 30), B: (0, 5)}
    assert stream.latestOffset(KafkaSourceOffset({A: 20}), limit) == KafkaSourceOffset({A: 20})
    assert stream.reportLatestOffset() == KafkaSourceOffset({A: 20})
    assert offsets.asked.count("latest") == 1


def test_available_now_keeps_to_its_end_over_limited_batches(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10)}
    stream = stream_of()
    stream.prepareForTriggerAvailableNow()
    position: Offset = KafkaSourceOffset({A: 0})
    ends = []
    for _ in range(5):
        position = stream.latestOffset(position, ReadMaxRows(4))
        ends.append(json.loads(position.json())["t"]["0"])
        offsets.logs = {A: (0, 100)}
    assert ends == [4, 8, 10, 10, 10]


def test_other_triggers_look_every_time(offsets: ScriptedOffsets) -> None:
    stream = stream_of()
    for end in (10, 20, 30):
        offsets.logs = {A: (0, end)}
        assert stream.latestOffset(KafkaSourceOffset({A: 0}), ALL) == KafkaSourceOffset({A: end})


def test_a_batch_has_one_task_for_each_partition_with_something_to_read(offsets: ScriptedOffsets) -> None:
    stream = stream_of()
    start, end = KafkaSourceOffset({A: 1, B: 4, C: 0}), KafkaSourceOffset({A: 9, B: 4, C: 2})
    assert ranges(stream, start, end) == ["t-0 [1, 9)", "t-2 [0, 2)"]
    # Asked for the ids of topics, as this run has not given that end; never for offsets.
    assert offsets.asked == ["partitions"]


def test_batch_with_an_end_of_this_run_is_planned_without_requests(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 9), B: (0, 4)}
    stream = stream_of()
    start = KafkaSourceOffset({A: 1, B: 4})
    end = stream.latestOffset(start, ReadAllAvailable())
    offsets.asked.clear()
    # Spark hands the end back as text.
    assert ranges(stream, start, stream.deserializeOffset(end.json())) == ["t-0 [1, 9)"]
    assert offsets.asked == []


def test_a_new_partition_is_read_from_its_beginning(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 9), B: (0, 4)}
    assert ranges(stream_of(), KafkaSourceOffset({A: 9}), KafkaSourceOffset({A: 9, B: 4})) == ["t-1 [0, 4)"]


def test_planning_again_gives_the_same_whatever_the_log_has_now(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (0, 4)}
    start, end = KafkaSourceOffset({A: 2}), KafkaSourceOffset({A: 10, B: 4})
    first = stream_of().planInputPartitions(start, end)
    offsets.logs = {A: (3, 5_000), B: (0, 700), C: (0, 1)}
    stream = stream_of()
    stream.prepareForTriggerAvailableNow()
    assert stream.planInputPartitions(start, end) == first
    assert [pickle.loads(pickle.dumps(partition)) for partition in first] == first  # noqa: S301 - our own bytes


LOSSES = [
    pytest.param({A: 5, B: 5}, {A: 9}, {A: (0, 9)}, "PARTITIONS_DELETED", ["t-0 [5, 9)"], id="deleted"),
    pytest.param({A: 5, B: 5}, {A: 9, B: 2}, {}, "PARTITION_OFFSET_CHANGED", ["t-0 [5, 9)"], id="went back"),
    pytest.param(
        {A: 5},
        {A: 9, B: 8},
        {B: (3, 8)},
        "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
        ["t-0 [5, 9)", "t-1 [3, 8)"],
        id="new and trimmed",
    ),
    pytest.param(
        {A: 5}, {A: 9, B: 8}, {}, "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS", ["t-0 [5, 9)"], id="new and gone"
    ),
]


@pytest.mark.parametrize(("start", "end", "logs", "kind", "tolerated"), LOSSES)
def test_lost_records_are_an_error_or_a_warning_as_the_option_says(
    offsets: ScriptedOffsets,
    caplog: pytest.LogCaptureFixture,
    start: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
    logs: dict[TopicPartition, tuple[int, int]],
    kind: str,
    tolerated: list[str],
) -> None:
    offsets.logs = logs
    with pytest.raises(DataLossError) as caught:
        stream_of().planInputPartitions(KafkaSourceOffset(start), KafkaSourceOffset(end))
    assert caught.value.condition == f"KAFKA_DATA_LOSS.{kind}"
    assert "t-1" in str(caught.value)
    assert "failOnDataLoss" in str(caught.value)
    assert caplog.records == []
    with caplog.at_level(logging.WARNING):
        planned = ranges(stream_of(fail_on_data_loss=False), KafkaSourceOffset(start), KafkaSourceOffset(end))
    assert planned == tolerated
    (warning,) = caplog.records
    assert kind in warning.getMessage()
    assert "t-1" in warning.getMessage()


REFUSED = [
    pytest.param({A: 5, B: 5}, {A: (0, 9)}, "PARTITIONS_DELETED", id="missing"),
    pytest.param({A: 5, B: 5}, {A: (0, 5)}, "PARTITIONS_DELETED", id="missing, and nothing new"),
    pytest.param({A: 5}, {}, "PARTITIONS_DELETED", id="all missing"),
    pytest.param({A: 5, B: 5}, {A: (0, 9), B: (0, 2)}, "PARTITION_OFFSET_CHANGED", id="went back"),
    pytest.param(
        {A: 5}, {A: (0, 5), B: (3, 8)}, "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO", id="new and trimmed"
    ),
]
LIMITS = [
    ALL,
    ReadMaxRows(1),
    ReadMaxBytes(100),
    CompositeReadLimit((ReadMinRows(1, 60_000), ReadMaxRows(2))),
]


@pytest.mark.parametrize("available_now", [False, True])
@pytest.mark.parametrize("limit", LIMITS, ids=repr)
@pytest.mark.parametrize(("start", "logs", "kind"), REFUSED)
def test_lost_records_are_refused_before_the_engine_keeps_an_end(
    offsets: ScriptedOffsets,
    start: dict[TopicPartition, int],
    logs: dict[TopicPartition, tuple[int, int]],
    kind: str,
    limit: ReadLimit,
    *,
    available_now: bool,
) -> None:
    """The engine plans an end that it keeps again and again, also when the cause of the refusal is gone."""
    offsets.logs = logs
    stream = stream_of()
    if available_now:
        stream.prepareForTriggerAvailableNow()
    with pytest.raises(DataLossError) as caught:
        stream.latestOffset(KafkaSourceOffset(start), limit)
    assert caught.value.condition == f"KAFKA_DATA_LOSS.{kind}"
    assert "Nothing more was read, and no micro-batch was planned. Hint: If the subscription or the" in str(
        caught.value
    )
    # The same position in the cluster as it was before.
    offsets.logs = {A: (0, 9), B: (0, 8)}
    following = stream_of()
    end = following.latestOffset(KafkaSourceOffset({A: 5, B: 5}), ALL)
    assert ranges(following, KafkaSourceOffset({A: 5, B: 5}), end) == ["t-0 [5, 9)", "t-1 [5, 8)"]


def test_topics_that_are_new_to_the_query_are_named_once(
    offsets: ScriptedOffsets, caplog: pytest.LogCaptureFixture
) -> None:
    """One that was read before, and comes back into the subscription, is read once more."""
    other = TopicPartition("u", 0)
    offsets.logs = {A: (0, 9), B: (0, 2), other: (0, 3)}
    stream = stream_of("t", "u", starting=Earliest())
    with caplog.at_level(logging.WARNING):
        stream.latestOffset(stream.initialOffset(), ALL)
        end = stream.latestOffset(KafkaSourceOffset({A: 5}), ALL)
        stream.latestOffset(end, ALL)
    assert caplog.messages == ["Topics that are new to the query are read from their beginning: u."]


def test_missing_partition_that_exists_left_the_subscription(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 9)}
    offsets.unsubscribed = (B,)
    with pytest.raises(DataLossError) as caught:
        stream_of().latestOffset(KafkaSourceOffset({A: 5, B: 5}), ALL)
    assert str(caught.value).startswith(
        "[KAFKA_DATA_LOSS.PARTITIONS_DELETED] Partitions that the query has read are not in its subscription. t-1: the "
        "partition was read up to 5, and has left the subscription; it exists in the cluster. Nothing more"
    )


def test_missing_partition_is_refused_although_the_cluster_does_not_explain_it(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 9)}
    offsets.failures = [TransportError("no answer", condition="CONNECTION_CLOSED")]
    with pytest.raises(DataLossError, match=r"t-1: the partition was read up to 5, and has been deleted or left"):
        stream_of().latestOffset(KafkaSourceOffset({A: 5, B: 5}), ALL)


def test_log_that_went_back_in_a_run_is_the_log_of_the_same_topic(offsets: ScriptedOffsets) -> None:
    stream, start = stream_of(), KafkaSourceOffset({A: 5})
    offsets.logs = {A: (0, 9)}
    end = stream.latestOffset(start, ALL)
    assert offsets.known_ids == {}
    offsets.logs = {A: (0, 7)}
    with pytest.raises(DataLossError, match=r"any more: the log of the same topic was cut, or the start .* 2 offsets"):
        stream.latestOffset(end, ALL)
    # The first look of a run cannot compare ids.
    with pytest.raises(DataLossError, match="the topic may have been recreated"):
        stream_of().latestOffset(end, ALL)


PAST = [
    pytest.param(
        {A: 5, B: 5},
        {A: 9},
        r"t-1: the query has read up to 5, the plan lacks the partition, and the subscription has it",
        id="missing",
    ),
    pytest.param(
        {A: 5, B: 5},
        {A: 9, B: 2},
        r"t-1: the query has read up to 5, the plan ends at 2, and the log reaches 5",
        id="went back",
    ),
]


@pytest.mark.parametrize(("start", "end", "text"), PAST)
def test_planned_loss_that_is_past_has_an_error_that_names_the_way_out(
    offsets: ScriptedOffsets, start: dict[TopicPartition, int], end: dict[TopicPartition, int], text: str
) -> None:
    """Checkpoints of earlier versions, and of Spark's connector, have such plans."""
    offsets.logs = {A: (0, 9), B: (0, 5)}
    with pytest.raises(DataLossError) as caught:
        stream_of().planInputPartitions(KafkaSourceOffset(start), KafkaSourceOffset(end))
    assert text in str(caught.value)
    assert "The records are not lost" in str(caught.value)
    assert "`pyspark-kafka checkpoint rewind CHECKPOINT --batch N`, with the last number in" in str(caught.value)


def test_planned_loss_names_the_checkpoint_and_the_batch_if_they_are_known(
    offsets: ScriptedOffsets, tmp_path: Path
) -> None:
    offsets.logs = {A: (0, 9), B: (0, 5)}
    (tmp_path / "commits").mkdir()
    for number in (9, 10):
        (tmp_path / "commits" / str(number)).touch()
    stream = stream_of(checkpoint_location=str(tmp_path))
    with pytest.raises(DataLossError) as caught:
        stream.planInputPartitions(KafkaSourceOffset({A: 5, B: 5}), KafkaSourceOffset({A: 9}))
    assert f"`pyspark-kafka checkpoint rewind {tmp_path} --batch 10` and start the query again." in str(caught.value)


def test_planned_new_partition_that_left_the_subscription_is_not_lost(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 9)}
    offsets.unsubscribed = (B,)
    with pytest.raises(DataLossError, match="t-1: the plan has it as a new partition, and the subscription lacks it"):
        stream_of().planInputPartitions(KafkaSourceOffset({A: 5}), KafkaSourceOffset({A: 9, B: 3}))


def test_a_checkpoints_offset_comes_back_as_it_was(offsets: ScriptedOffsets) -> None:
    stream = stream_of()
    offset = KafkaSourceOffset({TopicPartition("t", 10): 3, TopicPartition("t", 2): 5})
    assert offset.json() == '{"t":{"2":5,"10":3}}'
    assert stream.deserializeOffset(offset.json()) == offset
    with pytest.raises(CheckpointError, match="CHECKPOINT_OFFSET_INVALID"):
        stream.deserializeOffset('{"t":{"0":-1}}')
    assert offsets.asked == []


def test_an_offset_of_another_source_is_refused(offsets: ScriptedOffsets) -> None:
    class Foreign(Offset):
        def json(self) -> str:
            return "7"

    offsets.logs = {A: (0, 1)}
    with pytest.raises(CheckpointError, match=r"Expected an offset of a Kafka source, got 7\."):
        stream_of().planInputPartitions(Foreign(), KafkaSourceOffset({A: 1}))


def test_the_factory_carries_the_options_of_reading(offsets: ScriptedOffsets) -> None:
    factory = stream_of(fail_on_data_loss=False).createReaderFactory()
    copy = pickle.loads(pickle.dumps(factory))  # noqa: S301 - our own bytes
    assert copy == factory
    assert copy.fail_on_data_loss is False
    assert copy.schema == SOURCE_SCHEMA
    assert offsets.asked == []


def test_the_streams_name_is_that_of_progress_reports(offsets: ScriptedOffsets) -> None:
    assert repr(stream_of()) == "KafkaV2[Subscribe[t]]"
    assert offsets.asked == []


def test_commit_and_stop_send_no_request(offsets: ScriptedOffsets) -> None:
    stream = stream_of()
    stream.commit(KafkaSourceOffset({A: 1}))
    stream.stop()
    stream.stop()
    assert offsets.asked == []


def test_ranges_travel_as_plain_data() -> None:
    partition = KafkaInputPartition(OffsetRange(A, 0, 5))
    assert pickle.loads(pickle.dumps(partition)) == partition  # noqa: S301 - our own bytes


@pytest.mark.parametrize("most_ranges", [1, 100])
def test_ten_thousand_partitions_are_planned_in_less_than_a_second(offsets: ScriptedOffsets, most_ranges: int) -> None:
    partitions = [TopicPartition(f"t{number % 100}", number // 100) for number in range(10_000)]
    offsets.logs = dict.fromkeys(partitions, (0, 10))
    stream = stream_of(starting=Earliest(), max_partitions_per_task=most_ranges)
    start = stream.initialOffset()

    def plan() -> Sequence[InputPartition]:
        return stream.planInputPartitions(start, stream.deserializeOffset(stream.latestOffset(start, ALL).json()))

    assert len(plan()) == 10_000 // most_ranges
    assert processor_s(plan) < 1.0
