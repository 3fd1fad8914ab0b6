"""Requests of transactions: broker 0 is the coordinator of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka.protocol.metadata import FindCoordinatorResponse
from kafka.protocol.producer import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdResponse,
    TxnOffsetCommitResponse,
)

if TYPE_CHECKING:
    from kit.fakes.tcp_cluster import TcpCluster

UNKNOWN_TOPIC, INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED = 3, 48, 49, 90
OPERATION_NOT_ATTEMPTED = 55
# From these versions on, the end of a transaction raises the epoch, and positions take their group in (KIP-890).
END_THAT_RAISES, COMMIT_THAT_JOINS = 5, 5


@dataclass
class Transaction:
    """What the coordinator knows of a transactional id."""

    producer_id: int
    epoch: int = 0
    partitions: set[tuple[str, int]] = field(default_factory=set)
    # Position and metadata of each partition, by group that has joined.
    positions: dict[str, dict[tuple[str, int], tuple[int, str | None]]] = field(default_factory=dict)


def init_producer_id(cluster: TcpCluster, request: Any) -> Any:
    """Return a new producer id, or fence the owner of a transactional id and abort what it left open."""
    name = request.transactional_id
    if name is None:
        producer_id, epoch = cluster.new_producer_id(), 0
    elif name in cluster.transactions:
        transaction = cluster.transactions[name]
        transaction.epoch += 1
        _end(cluster, transaction, commit=False)
        producer_id, epoch = transaction.producer_id, transaction.epoch
    else:
        cluster.transactions[name] = Transaction(cluster.new_producer_id())
        producer_id, epoch = cluster.transactions[name].producer_id, 0
    return InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=producer_id, producer_epoch=epoch)


def find_coordinator(cluster: TcpCluster, request: Any) -> Any:
    """Name broker 0."""
    host, port = cluster.elsewhere.get(0) or cluster.address(0)
    found = FindCoordinatorResponse.Coordinator
    keys = getattr(request, "coordinator_keys", None) or [request.key]
    return FindCoordinatorResponse(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        node_id=0,
        host=host,
        port=port,
        coordinators=[
            found(key=key, node_id=0, host=host, port=port, error_code=0, error_message=None) for key in keys
        ],
    )


def add_partitions(cluster: TcpCluster, request: Any) -> Any:
    """Take partitions into the transaction of their owner."""
    code = _owner_error(cluster, request, "v3_and_below_")
    asked = [(topic.name, number) for topic in request.v3_and_below_topics for number in topic.partitions]
    unknown = {key for key in asked if key not in cluster.logs}
    if not code and not unknown:
        cluster.transactions[request.v3_and_below_transactional_id].partitions.update(asked)
    result_class = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    partition_class = result_class.AddPartitionsToTxnPartitionResult

    def code_of(key: tuple[str, int]) -> int:
        return code or (UNKNOWN_TOPIC if key in unknown else OPERATION_NOT_ATTEMPTED if unknown else 0)

    return AddPartitionsToTxnResponse(
        throttle_time_ms=0,
        results_by_topic_v3_and_below=[
            result_class(
                name=topic.name,
                results_by_partition=[
                    partition_class(partition_index=number, partition_error_code=code_of((topic.name, number)))
                    for number in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ],
    )


def add_offsets(cluster: TcpCluster, request: Any) -> Any:
    """Take a group into the transaction of its owner."""
    code = _owner_error(cluster, request)
    if not code:
        cluster.transactions[request.transactional_id].positions.setdefault(request.group_id, {})
    return AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=code)


def commit_offsets(cluster: TcpCluster, request: Any) -> Any:
    """Take positions that count when the transaction is committed; its group has joined."""
    code = _owner_error(cluster, request)
    transaction = cluster.transactions.get(request.transactional_id)
    if not code and transaction is not None and request.version >= COMMIT_THAT_JOINS:
        transaction.positions.setdefault(request.group_id, {})
    if not code and (transaction is None or request.group_id not in transaction.positions):
        code = INVALID_TXN_STATE
    topic_class = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    topics = []
    for topic in request.topics:
        entries = []
        for each in topic.partitions:
            if transaction is not None and not code:
                key = (topic.name, each.partition_index)
                transaction.positions[request.group_id][key] = (each.committed_offset, each.committed_metadata)
            entries.append(
                topic_class.TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            )
        topics.append(topic_class(name=topic.name, partitions=entries))
    return TxnOffsetCommitResponse(throttle_time_ms=0, topics=topics)


def end_transaction(cluster: TcpCluster, request: Any) -> Any:
    """Write the control records; newer requests get the epoch of the next transaction."""
    code = _owner_error(cluster, request)
    producer_id, epoch = -1, -1
    if not code:
        transaction = cluster.transactions[request.transactional_id]
        raises = request.version >= END_THAT_RAISES
        if not transaction.partitions and not transaction.positions and (not raises or request.committed):
            code = INVALID_TXN_STATE
        else:
            transaction.epoch += raises
            _end(cluster, transaction, commit=request.committed)
            producer_id, epoch = transaction.producer_id, transaction.epoch
    return EndTxnResponse(throttle_time_ms=0, error_code=code, producer_id=producer_id, producer_epoch=epoch)


def _owner_error(cluster: TcpCluster, request: Any, prefix: str = "") -> int:
    transaction = cluster.transactions.get(getattr(request, f"{prefix}transactional_id"))
    if transaction is None or getattr(request, f"{prefix}producer_id") != transaction.producer_id:
        return INVALID_PRODUCER_ID_MAPPING
    return PRODUCER_FENCED if getattr(request, f"{prefix}producer_epoch") != transaction.epoch else 0


def _end(cluster: TcpCluster, transaction: Transaction, *, commit: bool) -> None:
    # Partitions that were deleted meanwhile get none.
    for key in sorted(transaction.partitions & cluster.logs.keys()):
        cluster.logs[key].end_transaction(transaction.producer_id, transaction.epoch, commit=commit)
    for group, positions in transaction.positions.items() if commit else ():
        cluster.groups[group].update(positions)
    transaction.partitions.clear()
    transaction.positions.clear()
