"""Fetch and OffsetForLeaderEpoch: what the logs of the cluster hold, and scripts with other responses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka.protocol.consumer import FetchResponse, OffsetForLeaderEpochResponse

from kit.fakes.logs import OFFSET_OUT_OF_RANGE, PartitionLog

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from kit.fakes.logs import Batch
    from kit.fakes.tcp_cluster import TcpCluster

UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID = 3, 100
READ_COMMITTED = 1


@dataclass
class PartitionView:
    """What a fetch finds in one partition.

    Attributes:
        batches: from the one that holds the offset asked for.
        leader: id and epoch of the leader, where the code says that it is another one.
    """

    code: int = 0
    high_watermark: int = -1
    last_stable: int = -1
    start: int = -1
    batches: list[bytes] = field(default_factory=list)
    aborted: list[tuple[int, int]] = field(default_factory=list)
    leader: tuple[int, int] | None = None


def fetch(cluster: TcpCluster, request: Any) -> Any:
    """Answer from the logs."""
    names = {topic_id: name for name, topic_id in cluster.topic_ids.items()}
    committed = request.isolation_level == READ_COMMITTED

    def view(topic: Any, asked: Any) -> PartitionView:
        # Newer requests name topics by id only.
        name = topic.topic or names.get(topic.topic_id)
        log = cluster.logs.get((name or "", asked.partition))
        if log is None:
            return PartitionView(UNKNOWN_TOPIC_ID if name is None else UNKNOWN_TOPIC)
        if not log.start <= asked.fetch_offset <= log.end:
            return PartitionView(OFFSET_OUT_OF_RANGE)
        end = log.last_stable if committed else log.end
        aborted = log.aborted_in(asked.fetch_offset, end) if committed else []
        batches = log.from_offset(asked.fetch_offset, end)
        return PartitionView(0, log.end, log.last_stable, log.start, batches, aborted)

    return fetch_response(request, view)


def fetch_response(request: Any, view: Callable[[Any, Any], PartitionView]) -> Any:
    """Fill partitions in the order asked, as a broker does that keeps to the limits of a request.

    The first one that has records gets a whole batch whatever the limits; the others get what fits, the last batch cut
    off, and nothing where not one whole batch fits.
    """
    topic_class = FetchResponse.FetchableTopicResponse
    left, first, responses = request.max_bytes, True, []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            found = view(topic, asked)
            records = b"".join(found.batches)[: max(0, min(left, asked.partition_max_bytes))]
            if found.batches and len(records) < len(found.batches[0]):
                records = found.batches[0] if first else b""
            first = first and not records
            left -= len(records)
            entry = topic_class.PartitionData(
                partition_index=asked.partition,
                error_code=found.code,
                high_watermark=found.high_watermark,
                last_stable_offset=found.last_stable,
                log_start_offset=found.start,
                aborted_transactions=[
                    topic_class.PartitionData.AbortedTransaction(producer_id=producer_id, first_offset=offset)
                    for producer_id, offset in found.aborted
                ],
                preferred_read_replica=-1,
                records=records,
            )
            if found.leader is not None:
                leader_id, leader_epoch = found.leader
                entry.current_leader = topic_class.PartitionData.LeaderIdAndEpoch(
                    leader_id=leader_id, leader_epoch=leader_epoch
                )
            partitions.append(entry)
        responses.append(topic_class(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions))
    return FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=responses)


@dataclass
class FetchScript:
    """Builds answers to fetches of one partition from whatever is passed; callable as a script."""

    records: bytes = b""
    error_code: int = 0
    high_watermark: int = 1_000_000
    last_stable_offset: int = 1_000_000
    log_start_offset: int = 0
    preferred_read_replica: int = -1
    throttle_time_ms: int = 0
    aborted: tuple[tuple[int, int], ...] = ()

    def __call__(self, request: Any) -> Any:
        topic_class = FetchResponse.FetchableTopicResponse
        asked = request.topics[0]
        partition = topic_class.PartitionData(
            partition_index=asked.partitions[0].partition,
            error_code=self.error_code,
            high_watermark=self.high_watermark,
            last_stable_offset=self.last_stable_offset,
            log_start_offset=self.log_start_offset,
            aborted_transactions=[
                topic_class.PartitionData.AbortedTransaction(producer_id=pid, first_offset=first)
                for pid, first in self.aborted
            ],
            preferred_read_replica=self.preferred_read_replica,
            records=self.records,
        )
        return FetchResponse(
            throttle_time_ms=self.throttle_time_ms,
            error_code=0,
            session_id=0,
            responses=[topic_class(topic=asked.topic, topic_id=asked.topic_id, partitions=[partition])],
        )


@dataclass
class LogScript:
    """Answers fetches of one partition from a list of batches, as a broker does: the whole batch with the offset first.

    Attributes:
        batches: (base offset, next base offset, bytes), ascending.
        per_answer: how many batches an answer holds.
    """

    batches: list[Batch]
    per_answer: int = 1

    def __call__(self, request: Any) -> Any:
        offset = request.topics[0].partitions[0].fetch_offset
        found = [data for _, end, data in self.batches if end > offset][: self.per_answer]
        end = self.batches[-1][1] if self.batches else 0
        return FetchScript(b"".join(found), high_watermark=end, last_stable_offset=end)(request)


@dataclass
class BrokerLog:
    """Answers fetches of any number of partitions from batches, as `fetch_response` says.

    Attributes:
        batches: (base offset, next base offset, bytes) ascending, by topic and partition.
        visible: the high watermark and last stable offset, where it is not the end of the log.
        errors: the code, leader and leader epoch that a partition is refused with.
        nodes: addresses that come with an answer with errors.
    """

    batches: dict[tuple[str, int], list[Batch]]
    topic_ids: dict[str, uuid.UUID]
    visible: dict[tuple[str, int], int] = field(default_factory=dict)
    errors: dict[tuple[str, int], tuple[int, int, int]] = field(default_factory=dict)
    nodes: list[tuple[int, str, int]] = field(default_factory=list)

    def __call__(self, request: Any) -> Any:
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}

        def view(topic: Any, asked: Any) -> PartitionView:
            key = (topic.topic or names[topic.topic_id], asked.partition)
            log = PartitionLog(self.batches[key])
            end = self.visible.get(key, log.end)
            if key in self.errors:
                code, *leader = self.errors[key]
                return PartitionView(code, end, end, 0, leader=(leader[0], leader[1]))
            return PartitionView(0, end, end, 0, log.from_offset(asked.fetch_offset, end))

        response = fetch_response(request, view)
        if self.nodes:
            response.node_endpoints = [
                FetchResponse.NodeEndpoint(node_id=node_id, host=host, port=port, rack=None)
                for node_id, host, port in self.nodes
            ]
        return response


def epoch_end(end_offset: int, leader_epoch: int = 0, error_code: int = 0) -> Callable[[Any], Any]:
    """Return a script that answers every partition of an OffsetForLeaderEpoch request the same."""

    def answer(request: Any) -> Any:
        topic_class = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
        return OffsetForLeaderEpochResponse(
            throttle_time_ms=0,
            topics=[
                topic_class(
                    topic=topic.topic,
                    partitions=[
                        topic_class.EpochEndOffset(
                            error_code=error_code,
                            partition=partition.partition,
                            leader_epoch=leader_epoch,
                            end_offset=end_offset,
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )

    return answer
