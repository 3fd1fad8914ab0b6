"""InitProducerId, FindCoordinator, AddPartitionsToTxn and EndTxn: broker 0 is the coordinator of all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka.protocol.metadata import FindCoordinatorResponse
from kafka.protocol.producer import AddPartitionsToTxnResponse, EndTxnResponse, InitProducerIdResponse

if TYPE_CHECKING:
    from kit.fakes.tcp_cluster import TcpCluster

UNKNOWN_TOPIC, INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED = 3, 48, 49, 90
OPERATION_NOT_ATTEMPTED = 55
# From this version on, the end of a transaction raises the epoch (KIP-890).
END_THAT_RAISES = 5


@dataclass
class Transaction:
    """What the coordinator knows of a transactional id."""

    producer_id: int
    epoch: int = 0
    partitions: set[tuple[str, int]] = field(default_factory=set)


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


def end_transaction(cluster: TcpCluster, request: Any) -> Any:
    """Write the control records; newer requests get the epoch of the next transaction."""
    code = _owner_error(cluster, request)
    producer_id, epoch = -1, -1
    if not code:
        transaction = cluster.transactions[request.transactional_id]
        raises = request.version >= END_THAT_RAISES
        if not transaction.partitions and (not raises or request.committed):
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
    transaction.partitions.clear()
