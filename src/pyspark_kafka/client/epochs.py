"""OffsetForLeaderEpoch: whether the log below a position is still the one that was read. Layer: client.

What must not live here: when to ask, and what is done about a log that was cut; `fetch_many` knows the first, the
source the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.protocol import ErrorCode, OffsetForLeaderEpochRequest
from pyspark_kafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.client.cluster import KafkaClient
    from pyspark_kafka.client.deadline import Deadline

_CONSUMER = -1


@dataclass(frozen=True, slots=True)
class EpochQuestion:
    """Where an epoch ends.

    Attributes:
        current_epoch: the leader's epoch as known; the broker refuses if it knows another.
        epoch: the epoch of the last batch that was read.
    """

    topic_partition: TopicPartition
    current_epoch: int
    epoch: int


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """Where the records of an epoch end in the leader's log.

    Attributes:
        end_offset: the offset after the last record of the epoch, or of the last epoch before it that the leader
            knows; -1 if the leader cannot tell.
    """

    error_code: int
    end_offset: int


def epoch_ends(
    client: KafkaClient, leader_id: int, questions: Iterable[EpochQuestion], deadline: Deadline
) -> dict[TopicPartition, EpochEnd]:
    """Ask a leader where the epochs of positions end.

    Runs on: executor, once for each change of a leader; blocks for one round trip.

    Returns:
        An answer for each question. A broker that is too old to be asked cannot tell; a partition that it left out of
        its answer it does not lead.

    Raises:
        TransportError, DeadlineError: the leader cannot be asked.

    Source: KIP-320.
    """
    asked = list(questions)
    connection = client.connection_to(leader_id, deadline)
    if not connection.supports(OffsetForLeaderEpochRequest):
        return {question.topic_partition: EpochEnd(ErrorCode.NONE, -1) for question in asked}
    topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    by_topic: dict[str, list[Any]] = {}
    for question in asked:
        by_topic.setdefault(question.topic_partition.topic, []).append(
            topic_class.OffsetForLeaderPartition(
                partition=question.topic_partition.partition,
                current_leader_epoch=question.current_epoch,
                leader_epoch=question.epoch,
            )
        )
    request = OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=[topic_class(topic=name, partitions=entries) for name, entries in by_topic.items()],
    )
    response = connection.call(request, deadline)
    found = {question.topic_partition: EpochEnd(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1) for question in asked}
    for topic in response.topics:
        for entry in topic.partitions:
            topic_partition = TopicPartition(topic.topic, entry.partition)
            if topic_partition in found:
                # An epoch of -1 with an offset is as undecided as no offset.
                end_offset = entry.end_offset if entry.leader_epoch >= 0 else -1
                found[topic_partition] = EpochEnd(entry.error_code, end_offset)
    return found
