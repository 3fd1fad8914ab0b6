"""Planning: ranges and what is lost, shares of a limit, limits to offsets."""

from __future__ import annotations

import pickle

import pytest

from pyspark_kafka.errors import DataLossError, OptionError
from pyspark_kafka.model import OffsetRange, TopicPartition
from pyspark_kafka.offsets import Earliest, Latest, SpecificOffsets
from pyspark_kafka.planning import (
    DataLoss,
    DataLossKind,
    Plan,
    data_loss_error,
    plan_ranges,
    rate_limit,
    resolve_offsets,
)

P = [TopicPartition("orders", number) for number in range(40)]
HINT = " Hint: Set failOnDataLoss to false to go on with what is left, or start with a new checkpointLocation."
LOST = (
    "Some data may have been lost because it is not in Kafka any more: it was removed by retention, or the topic was "
    "deleted before all of it was processed. "
)

BACK = "the topic may have been deleted and created again, or the start offset of the first batch is too high"


def test_shares_are_those_of_sparks_connector() -> None:
    # Measured on spark-sql-kafka-0-10 4.2.0: 101, 11 and 1 waiting with a limit of 10.
    latest = {P[0]: 101, P[1]: 11, P[2]: 1}
    first = rate_limit({}, dict.fromkeys(latest, 0), latest, 10)
    assert first == {P[0]: 8, P[1]: 1, P[2]: 1}
    assert rate_limit(first, {}, latest, 10) == {P[0]: 17, P[1]: 2, P[2]: 1}


def test_a_limit_above_what_is_there_takes_all_of_it() -> None:
    assert rate_limit({P[0]: 5}, {}, {P[0]: 10}, 2**63 - 1) == {P[0]: 10}


def test_nothing_waiting_keeps_the_latest_offsets() -> None:
    assert rate_limit({P[0]: 5, P[1]: 9}, {}, {P[0]: 5, P[1]: 3}, 10) == {P[0]: 5, P[1]: 3}


def test_a_new_partition_begins_at_its_earliest_offset() -> None:
    assert rate_limit({P[0]: 0}, {P[1]: 100}, {P[0]: 100, P[1]: 200}, 10) == {P[0]: 5, P[1]: 105}


def test_a_known_partition_begins_at_its_start_whatever_its_earliest_offset() -> None:
    assert rate_limit({P[0]: 50}, {P[0]: 10}, {P[0]: 100}, 10) == {P[0]: 60}


def test_a_partition_that_nothing_is_known_of_keeps_its_latest_offset() -> None:
    assert rate_limit({P[0]: 0}, {}, {P[0]: 100, P[1]: 200}, 10) == {P[0]: 10, P[1]: 200}


def test_a_partition_that_went_back_keeps_its_end_for_planning_to_report() -> None:
    assert rate_limit({P[0]: 0, P[1]: 50}, {}, {P[0]: 100, P[1]: 20}, 10) == {P[0]: 10, P[1]: 20}


def test_many_small_partitions_take_more_than_the_limit_and_all_move_on() -> None:
    latest = dict.fromkeys(P, 1)
    assert rate_limit(dict.fromkeys(P, 0), {}, latest, 3) == latest


def test_a_deleted_partition_is_not_in_the_result() -> None:
    assert rate_limit({P[0]: 0, P[1]: 0}, {}, {P[0]: 9}, 3) == {P[0]: 3}


def test_shares_are_exact_beyond_64_bits_and_where_floating_point_is_not() -> None:
    ends = rate_limit({}, {P[0]: 0, P[1]: 0}, {P[0]: 2**62, P[1]: 2**62}, 2**63 - 1)
    assert ends == {P[0]: 2**62 - 1, P[1]: 2**62 - 1}
    # 0.29 * 100 is 28.999… in doubles.
    assert rate_limit({P[0]: 0, P[1]: 0}, {}, {P[0]: 29, P[1]: 71}, 100) == {P[0]: 29, P[1]: 71}


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_without_progress_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="at least 1 offset"):
        rate_limit({P[0]: 0}, {}, {P[0]: 1}, limit)


def test_a_plan_has_the_ranges_that_have_something_in_order() -> None:
    start = {P[2]: 0, P[10]: 5, P[1]: 7}
    assert plan_ranges(start, {P[10]: 6, P[2]: 9, P[1]: 7}, {}) == Plan(
        (OffsetRange(P[2], 0, 9), OffsetRange(P[10], 5, 6)), ()
    )


def test_a_new_partition_is_read_from_its_first_offset() -> None:
    assert plan_ranges({P[0]: 1}, {P[0]: 1, P[1]: 4}, {P[1]: 0}) == Plan((OffsetRange(P[1], 0, 4),), ())


@pytest.mark.parametrize("first", [1, 10])
def test_a_new_partition_that_begins_later_is_reported_and_read_from_there(first: int) -> None:
    plan = plan_ranges({}, {P[1]: 14}, {P[1]: first})
    assert plan.ranges == (OffsetRange(P[1], first, 14),)
    kind = DataLossKind.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO
    assert plan.findings == (DataLoss(kind, P[1], 0, first),)


def test_a_new_partition_without_first_offset_is_reported_and_left_out() -> None:
    plan = plan_ranges({}, {P[1]: 14}, {})
    assert plan == Plan((), (DataLoss(DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS, P[1]),))


def test_a_deleted_partition_is_reported() -> None:
    plan = plan_ranges({P[0]: 1, P[1]: 5}, {P[0]: 2}, {})
    assert plan == Plan((OffsetRange(P[0], 1, 2),), (DataLoss(DataLossKind.PARTITIONS_DELETED, P[1], 5),))


def test_a_partition_deleted_under_a_group_id_is_reported_with_it() -> None:
    plan = plan_ranges({P[0]: 1, P[1]: 5}, {P[0]: 2}, {}, group_id="g")
    kind = DataLossKind.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT
    assert plan == Plan((OffsetRange(P[0], 1, 2),), (DataLoss(kind, P[1], 5, group_id="g"),))


def test_a_partition_that_went_back_is_reported_and_not_read() -> None:
    plan = plan_ranges({P[0]: 10}, {P[0]: 4}, {})
    assert plan == Plan((), (DataLoss(DataLossKind.PARTITION_OFFSET_CHANGED, P[0], 10, 4),))


def test_a_plan_can_be_pickled() -> None:
    plan = plan_ranges({P[0]: 10, P[1]: 0}, {P[0]: 4, P[1]: 3}, {})
    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (
            DataLoss(DataLossKind.PARTITIONS_DELETED, P[3], 120),
            (
                f"[KAFKA_DATA_LOSS.PARTITIONS_DELETED] {LOST}orders-3: the partition was read up to 120 and has been "
                f"deleted. This batch has read nothing yet.{HINT}"
            ),
        ),
        (
            DataLoss(DataLossKind.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT, P[3], 120, group_id="g"),
            (
                f"[KAFKA_DATA_LOSS.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT] {LOST}orders-3: the partition was "
                "read up to 120 and has been deleted; option 'kafka.group.id' is 'g', but no consumer group is joined, "
                f"so no other query of the group can have taken it. This batch has read nothing yet.{HINT}"
            ),
        ),
        (
            DataLoss(DataLossKind.PARTITION_OFFSET_CHANGED, P[3], 120, 20),
            (
                "[KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED] Some data may have been lost because it is not in Kafka "
                f"any more: {BACK}. orders-3: the offset to go on from was 120, but the log now ends at 20, 100 "
                f"offsets [20, 120) missing. This batch has read nothing yet.{HINT}"
            ),
        ),
        (
            DataLoss(DataLossKind.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO, P[3], 0, 20),
            (
                f"[KAFKA_DATA_LOSS.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO] {LOST}orders-3: the new partition "
                f"starts from 20 instead of 0, 20 offsets [0, 20) missing. This batch has read nothing yet.{HINT}"
            ),
        ),
        (
            DataLoss(DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS, P[3]),
            (
                f"[KAFKA_DATA_LOSS.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS] {LOST}"
                f"orders-3: the first offset of the new "
                f"partition cannot be found, it may have been deleted. This batch has read nothing yet.{HINT}"
            ),
        ),
    ],
    ids=lambda value: value.kind.value if isinstance(value, DataLoss) else "text",
)
def test_each_kind_of_data_loss_has_its_text(finding: DataLoss, text: str) -> None:
    assert str(data_loss_error([finding])) == text


def test_every_kind_has_a_sentence_of_its_own() -> None:
    sentences = {DataLoss(kind, P[0], 1, 2).describe() for kind in DataLossKind}
    assert len(sentences) == len(DataLossKind)


def test_several_kinds_are_all_named() -> None:
    error = data_loss_error(
        [
            DataLoss(DataLossKind.PARTITIONS_DELETED, P[0], 5),
            DataLoss(DataLossKind.PARTITION_OFFSET_CHANGED, P[1], 9, 1),
        ]
    )
    assert error.condition == "KAFKA_DATA_LOSS"
    assert "PARTITIONS_DELETED orders-0: " in str(error)
    assert "; PARTITION_OFFSET_CHANGED orders-1: " in str(error)
    assert error.facts["count"] == "2"


def test_what_may_have_happened_is_said_once_for_all_partitions() -> None:
    text = str(data_loss_error([DataLoss(DataLossKind.PARTITION_OFFSET_CHANGED, where, 9, 1) for where in P]))
    assert text.count(BACK) == 1
    assert len(text) < 2_500


def test_a_long_list_of_partitions_is_cut_and_counted() -> None:
    error = data_loss_error([DataLoss(DataLossKind.PARTITIONS_DELETED, where, 5) for where in P])
    assert "orders-19:" in str(error)
    assert "orders-20:" not in str(error)
    assert "; and 20 more partitions. " in str(error)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Earliest(), {P[0]: 1, P[1]: 2}),
        (Latest(), {P[0]: 11, P[1]: 12}),
        (SpecificOffsets({P[0]: 5, P[1]: Latest()}), {P[0]: 5, P[1]: 12}),
        (SpecificOffsets({P[0]: Earliest(), P[1]: 10**12}), {P[0]: 1, P[1]: 10**12}),
        (SpecificOffsets({}, {"orders": Earliest()}), {P[0]: 1, P[1]: 2}),
    ],
)
def test_limits_resolve_to_an_offset_for_each_assigned_partition(
    limit: Earliest | Latest | SpecificOffsets, expected: dict[TopicPartition, int]
) -> None:
    assert resolve_offsets(limit, P[:2], {P[0]: 1, P[1]: 2}, {P[0]: 11, P[1]: 12}) == expected


def test_topics_and_partitions_may_be_mixed() -> None:
    other = TopicPartition("other", 0)
    limit = SpecificOffsets({P[0]: 5}, {"other": Latest()})
    assert resolve_offsets(limit, [P[0], other], {}, {other: 7}) == {P[0]: 5, other: 7}


def test_partitions_that_are_not_the_assigned_ones_are_refused() -> None:
    with pytest.raises(OptionError) as caught:
        resolve_offsets(SpecificOffsets({P[0]: 1, P[2]: 1}), P[:2], {}, {}, option="endingOffsets")
    assert str(caught.value) == (
        "[KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED] The partitions of option 'endingOffsets' are not those that are "
        "read: it names orders-2, which do not exist or are not read here and says nothing about orders-1. Nothing was "
        "read. Hint: Name every partition, with -1 for latest and -2 for earliest where you do not mind, or "
        '{"<topic>":"earliest"} for a whole topic. Partitions may also have been created or deleted meanwhile.'
    )


def test_a_long_list_of_unnamed_partitions_is_cut_and_counted() -> None:
    with pytest.raises(OptionError, match="orders-19 and 20 more") as caught:
        resolve_offsets(SpecificOffsets({}), P, {}, {})
    assert "orders-20" not in str(caught.value)


def test_a_topic_without_partitions_is_refused_by_name() -> None:
    with pytest.raises(OptionError) as caught:
        resolve_offsets(SpecificOffsets({P[0]: 1}, {"gone": Earliest()}), P[:1], {}, {})
    assert caught.value.condition == "KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED"
    assert "Option 'startingOffsets' names the topics gone, of which no partition is read here." in str(caught.value)


def test_a_partition_that_disappears_meanwhile_is_data_loss() -> None:
    with pytest.raises(DataLossError, match=r"INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS.*orders-1:"):
        resolve_offsets(Earliest(), P[:2], {P[0]: 0}, {})
