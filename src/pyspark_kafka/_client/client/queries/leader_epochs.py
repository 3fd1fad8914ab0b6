"""OffsetForLeaderEpoch: whether the log below a position is still the log that was read.

`fetch/fetcher.py` decides when to send it, `_connector/source/executor/range_decoder.py` what to do about a cut log.
`_connector/source/driver/offset_reader.py` checks whether a log has a position that is not visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.fanout import call_brokers
from pyspark_kafka._client.client.wire.messages import ErrorCode, OffsetForLeaderEpochRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka.errors import ConnectorError

_CONSUMER = -1
# Before version 3 (Kafka 2.3), only principals that may act as a broker of the cluster have the right.
_FIRST_FOR_READERS = 3
_REFUSED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


@dataclass(frozen=True, slots=True)
class EpochQuestion:
    """A question for the leader of a partition: where does an epoch end?

    Attributes:
        topic_partition: the partition.
        current_epoch: the leader's epoch as known; the broker refuses if its own is another.
        epoch: the epoch of the last batch that was read.
    """

    topic_partition: TopicPartition
    current_epoch: int
    epoch: int


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The end of an epoch's records in the leader's log.

    Attributes:
        error_code: why the leader returns no end; 0 if it does.
        end_offset: the offset after the last record of the epoch, or of the last epoch before it that the leader
            has; -1 if the leader cannot return it.
    """

    error_code: int
    end_offset: int


_CANNOT_TELL = EpochEnd(ErrorCode.NONE, -1)


def fetch_epoch_ends(
    client: KafkaClient, questions: Mapping[int, Iterable[EpochQuestion]], deadline: Deadline
) -> dict[TopicPartition, EpochEnd | ConnectorError]:
    """Return where the epochs of positions end, requested from all leaders at the same time.

    Runs on: executor, once for each change of leaders; blocks for one round trip.

    Args:
        client: the cluster.
        questions: by leader.
        deadline: for all of them.

    Returns:
        For each question the end, or why the leader could not be reached. A broker that is too old, or that refuses
        this user, returns none: end offset -1. A partition that is not in the response counts as not led by it.

    Source: KIP-320; Java `OffsetsForLeaderEpochRequest.supportsTopicPermission`.
    """
    asked = {leader_id: list(each) for leader_id, each in questions.items()}
    requests = {leader_id: _build_request(each) for leader_id, each in asked.items()}
    found: dict[TopicPartition, EpochEnd | ConnectorError] = {}
    for leader_id, done in call_brokers(client, requests, deadline, min_version=_FIRST_FOR_READERS).items():
        wanted = [question.topic_partition for question in asked[leader_id]]
        if done.error is None:
            found.update(_parse_response(done.response, wanted))
        elif done.error.condition == "UNSUPPORTED_VERSION":
            found.update(dict.fromkeys(wanted, _CANNOT_TELL))
        else:
            found.update(dict.fromkeys(wanted, done.error))
    return found


def fetch_log_ends(
    client: KafkaClient, partitions: Iterable[TopicPartition], deadline: Deadline
) -> dict[TopicPartition, int]:
    """Return the ends of the leaders' logs, with the records that no reader sees yet.

    The end of the leader's own epoch is the end of its log. It is not before an offset that a reader had: records that
    were visible once are in the log of every leader that was in sync. Leaders are the remembered ones:
    fetch metadata before. A partition whose leader or its epoch is unknown, or that the response leaves out, is
    left out.

    Runs on: driver; blocks for one round trip.

    Source: KIP-101, KIP-320.
    """
    questions: dict[int, list[EpochQuestion]] = {}
    for topic_partition in partitions:
        leader = client.cached_leader(topic_partition)
        if leader is not None and leader.leader_epoch >= 0:
            question = EpochQuestion(topic_partition, leader.leader_epoch, leader.leader_epoch)
            questions.setdefault(leader.leader_id, []).append(question)
    found = fetch_epoch_ends(client, questions, deadline)
    return {
        topic_partition: end.end_offset
        for topic_partition, end in found.items()
        if isinstance(end, EpochEnd) and end.error_code == ErrorCode.NONE and end.end_offset >= 0
    }


def _build_request(questions: list[EpochQuestion]) -> Any:
    topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    by_topic: dict[str, list[Any]] = {}
    for question in questions:
        by_topic.setdefault(question.topic_partition.topic, []).append(
            topic_class.OffsetForLeaderPartition(
                partition=question.topic_partition.partition,
                current_leader_epoch=question.current_epoch,
                leader_epoch=question.epoch,
            )
        )
    return OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=[topic_class(topic=name, partitions=entries) for name, entries in by_topic.items()],
    )


def _parse_response(response: Any, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, EpochEnd]:
    found = {topic_partition: EpochEnd(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1) for topic_partition in wanted}
    left = set(found)
    for topic in response.topics:
        for entry in topic.partitions:
            topic_partition = TopicPartition(topic.topic, entry.partition)
            if topic_partition not in left:
                if topic_partition in found:
                    # There twice: the right entry is unknown.
                    found[topic_partition] = EpochEnd(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
                continue
            left.discard(topic_partition)
            if entry.error_code in _REFUSED:
                # Whether the user may read, the fetch finds out; a refused check is no reason to end the read.
                found[topic_partition] = _CANNOT_TELL
            else:
                # An epoch of -1 with an offset is as undecided as no offset.
                end_offset = entry.end_offset if entry.leader_epoch >= 0 else -1
                found[topic_partition] = EpochEnd(entry.error_code, end_offset)
    return found
