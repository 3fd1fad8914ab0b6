"""Where endless ranges start, and which partitions share a task."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.planning.continuous import end_plan, plan_continuous, share_partitions
from pyspark_kafka._connector.planning.data_loss import DataLoss, DataLossKind

A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)

partitions = st.sets(st.builds(TopicPartition, st.text(min_size=1, max_size=3), st.integers(0, 40)), max_size=60)


def test_known_partitions_continue_and_new_ones_start_at_their_first_offset() -> None:
    plan = plan_continuous({B: 7, A: 5}, [A, B, C], {C: 30})
    assert list(plan.starts.items()) == [(A, 5), (B, 7), (C, 30)]
    assert plan.findings == ()


def test_missing_partitions_are_reported_and_left_out() -> None:
    plan = plan_continuous({A: 5, C: 9}, [A], {})
    assert plan.starts == {A: 5}
    assert plan.findings == (DataLoss(DataLossKind.PARTITIONS_DELETED, C, expected_offset=9),)
    (finding,) = plan_continuous({C: 9}, [], {}, group_id="g").findings
    assert finding.kind is DataLossKind.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT


def test_new_partition_that_is_gone_again_is_left_out() -> None:
    plan = plan_continuous({A: 5}, [A, B], {})
    assert plan.starts == {A: 5}
    assert plan.findings == ()


def test_plan_ends_where_the_logs_ended_and_leaves_out_what_is_newer() -> None:
    plan = end_plan({A: 5, B: 7, C: 0}, [A, B], {A: 9, B: 7})
    assert plan.starts == {A: 5, B: 7}
    assert plan.ends == {A: 9, B: 7}
    assert plan.findings == ()
    assert not plan.is_read
    assert end_plan({A: 9, B: 7, C: 4}, [A, B], {A: 9, B: 7, C: 4}).is_read


def test_known_partition_without_an_end_keeps_its_position() -> None:
    plan = end_plan({A: 5, B: 7}, [A, B], {A: 9})
    assert plan.starts == {A: 5, B: 7}
    assert plan.ends == {A: 9, B: 7}


def test_log_that_ends_before_the_position_is_a_loss_and_one_that_begins_behind_its_end_is_not() -> None:
    plan = end_plan({A: 5, C: 30}, [A], {A: 3, C: 20})
    assert plan.findings == (DataLoss(DataLossKind.PARTITION_OFFSET_CHANGED, A, expected_offset=5, found_offset=3),)
    assert plan.starts == plan.ends == {A: 3, C: 30}


def test_each_partition_has_a_task_of_its_own_by_default() -> None:
    assert share_partitions([C, A, B]) == ((A,), (B,), (C,))
    assert share_partitions([]) == ()


@pytest.mark.parametrize("tasks", [1, 2, 31, 100])
def test_partitions_of_a_topic_go_round_the_tasks(tasks: int) -> None:
    groups = share_partitions([TopicPartition("t", number) for number in range(62)], tasks=tasks)
    assert len(groups) == min(tasks, 62)
    assert max(map(len, groups)) == -(-62 // tasks)


def test_topics_of_one_partition_leave_no_task_idle() -> None:
    topics = [TopicPartition(f"topic-{number}", 0) for number in range(50)]
    assert list(map(len, share_partitions(topics, tasks=50))) == [1] * 50


@given(partitions, st.integers(1, 12))
def test_groups_hold_each_partition_once_and_are_at_most_the_tasks(found: set[TopicPartition], tasks: int) -> None:
    groups = share_partitions(found, tasks=tasks)
    assert Counter(tp for group in groups for tp in group) == Counter(found)
    assert len(groups) == min(tasks, len(found))
    assert not groups or max(map(len, groups)) - min(map(len, groups)) <= 1
    assert all(group == tuple(sorted(group)) and group for group in groups)


@given(partitions, st.integers(1, 12))
def test_groups_without_a_number_of_tasks_have_at_most_the_partitions_that_may_share(
    found: set[TopicPartition], max_partitions: int
) -> None:
    groups = share_partitions(found, max_partitions=max_partitions)
    assert Counter(tp for group in groups for tp in group) == Counter(found)
    assert all(0 < len(group) <= max_partitions for group in groups)
