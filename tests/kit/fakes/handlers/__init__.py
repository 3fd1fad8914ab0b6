"""How the TCP fake answers each request without a script: a file for a kind of request, as a broker would answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kit.fakes.handlers.admin import log_dirs, topic_configs
from kit.fakes.handlers.fetch import epoch_end, fetch
from kit.fakes.handlers.groups import offset_commit, offset_fetch
from kit.fakes.handlers.list_offsets import list_offsets
from kit.fakes.handlers.metadata import api_versions, metadata
from kit.fakes.handlers.produce import produce
from kit.fakes.handlers.transactions import (
    add_offsets,
    add_partitions,
    commit_offsets,
    end_transaction,
    find_coordinator,
    init_producer_id,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from kit.fakes.tcp_cluster import TcpCluster

HANDLERS: dict[str, Callable[[TcpCluster, Any], Any]] = {
    "AddOffsetsToTxnRequest": add_offsets,
    "AddPartitionsToTxnRequest": add_partitions,
    "ApiVersionsRequest": api_versions,
    "DescribeConfigsRequest": topic_configs,
    "DescribeLogDirsRequest": log_dirs,
    "EndTxnRequest": end_transaction,
    "FetchRequest": fetch,
    "FindCoordinatorRequest": find_coordinator,
    "InitProducerIdRequest": init_producer_id,
    "ListOffsetsRequest": list_offsets,
    "MetadataRequest": metadata,
    "OffsetCommitRequest": offset_commit,
    "OffsetFetchRequest": offset_fetch,
    # Unless a test says otherwise, leaders cannot tell.
    "OffsetForLeaderEpochRequest": lambda _, request: epoch_end(-1, -1)(request),
    "ProduceRequest": produce,
    "TxnOffsetCommitRequest": commit_offsets,
}
