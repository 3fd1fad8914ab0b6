"""Whether a batch of an available-now run fits the run."""

from __future__ import annotations

import pytest

from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.planning import check_available_now
from pyspark_kafka.errors import PlanningError

A, B, C = (TopicPartition("t", number) for number in range(3))
HINT = (
    " The batch has read nothing. Hint: Start the query again: it continues from its checkpoint, and the cause may "
    "have passed. Use a new checkpointLocation if a topic was deleted or recreated."
)


@pytest.mark.parametrize("end", [{A: 10, B: 5}, {A: 3, B: 5}, {A: 0, B: 0}])
def test_a_batch_up_to_the_snapshot_is_fine(end: dict[TopicPartition, int]) -> None:
    # New partitions and records since then are not its business.
    check_available_now(end, {A: 10, B: 5}, {A: 12, B: 5, C: 7})


REFUSED = [
    (
        {A: 10, C: 1},
        {A: 10, B: 5},
        {A: 10, B: 5, C: 1},
        (
            "[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED] The end of the batch and the snapshot of "
            "the run have different topic-partitions: only in the end t-2; only in the snapshot t-1."
        ),
    ),
    (
        {A: 10},
        {A: 10, B: 5},
        {A: 10, B: 5},
        (
            "[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED] The end of the batch and the snapshot of "
            "the run have different topic-partitions: only in the end none; only in the snapshot t-1."
        ),
    ),
    (
        {A: 11, B: 6},
        {A: 10, B: 6},
        {A: 99, B: 99},
        (
            "[END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED] The batch ends behind the snapshot of "
            "the run: t-0 ends at 11, expected at most 10."
        ),
    ),
    (
        {A: 10, B: 5},
        {A: 10, B: 5},
        {A: 10},
        "[LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW] Topic-partitions of the batch are gone: t-1.",
    ),
    (
        {A: 10, B: 5},
        {A: 10, B: 5},
        {A: 9, B: 4},
        (
            "[END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW] The batch ends "
            "behind the logs, which went back since the run began: t-0 ends at 10, expected at most 9, t-1 ends at 5, "
            "expected at most 4."
        ),
    ),
]


@pytest.mark.parametrize(("end", "snapshot", "latest", "text"), REFUSED)
def test_a_batch_that_does_not_fit_is_refused(
    end: dict[TopicPartition, int], snapshot: dict[TopicPartition, int], latest: dict[TopicPartition, int], text: str
) -> None:
    with pytest.raises(PlanningError) as caught:
        check_available_now(end, snapshot, latest)
    assert said(caught.value) == text + HINT
    assert caught.value.retriable


def test_many_partitions_are_counted() -> None:
    end = {TopicPartition("t", number): 1 for number in range(30)}
    with pytest.raises(PlanningError, match=r"are gone: t-0, .*, t-19 and 10 more\. The batch") as caught:
        check_available_now(end, end, {})
    assert caught.value.parameters["count"] == "30"
