"""Whether a micro-batch of an available-now run fits the snapshot at which the run ends. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.errors import PlanningError, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._base.model import TopicPartition

_HINT = (
    "Start the query again: it continues from its checkpoint, and the cause may have passed. Use a new "
    "checkpointLocation if a topic was deleted or recreated."
)


def check_available_now(
    end: Mapping[TopicPartition, int],
    snapshot: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> None:
    """Raise if the end of a micro-batch does not fit the snapshot of the run, or the logs as they are now.

    Always an error, for any value of `failOnDataLoss`: an available-now run must end at its snapshot.

    Args:
        end: the end of the micro-batch.
        snapshot: the ends of all partitions at the beginning of the run.
        latest: the ends now.

    Raises:
        PlanningError: with one of the conditions MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED,
            END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED,
            LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW,
            END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW.

    Source: Spark `KafkaMicroBatchStream.verifyEndOffsetForTriggerAvailableNow`.
    """
    if end.keys() != snapshot.keys():
        only_end, only_snapshot = sorted(end.keys() - snapshot.keys()), sorted(snapshot.keys() - end.keys())
        raise _error(
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED",
            "The end of the batch and the snapshot of the run have different topic-partitions: only in the end "
            f"{_list(only_end)}; only in the snapshot {_list(only_snapshot)}",
            [*only_end, *only_snapshot],
        )
    _check_ends(
        end,
        snapshot,
        "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED",
        "The batch ends behind the snapshot of the run",
    )
    lost = sorted(end.keys() - latest.keys())
    if lost:
        raise _error(
            "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW",
            f"Topic-partitions of the batch are gone: {_list(lost)}",
            lost,
        )
    _check_ends(
        end,
        latest,
        "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW",
        "The batch ends behind the logs, which went back since the run began",
    )


def _check_ends(
    end: Mapping[TopicPartition, int], bound: Mapping[TopicPartition, int], condition: str, sentence: str
) -> None:
    beyond = sorted(topic_partition for topic_partition in end if end[topic_partition] > bound[topic_partition])
    if beyond:
        listed = _list(beyond, lambda tp: f"{tp} ends at {end[tp]}, expected at most {bound[tp]}")
        raise _error(condition, f"{sentence}: {listed}", beyond)


def _error(condition: str, sentence: str, partitions: list[TopicPartition]) -> PlanningError:
    return PlanningError(
        f"{sentence}. The batch has read nothing.",
        condition=condition,
        hint=_HINT,
        retriable=True,
        parameters={"topic_partitions": _list(partitions), "count": len(partitions)},
    )


def _list(partitions: list[TopicPartition], describe: Callable[[TopicPartition], str] = str) -> str:
    return listed(partitions, describe) or "none"
