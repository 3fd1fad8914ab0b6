"""The ranges of a micro-batch, and the partitions that are reported as lost."""

from __future__ import annotations

import pickle

import pytest

from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._connector.planning import (
    DataLoss,
    DataLossKind,
    Plan,
    plan_ranges,
)

P = [TopicPartition("orders", number) for number in range(40)]


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
