"""The border to kafka-python: request and response classes, and, from `error_codes`, the table of broker error codes.

The rest of the package uses these names; only `error_codes.py` and `login/` import kafka-python
besides this module. Requests to administer a cluster are loaded when they are first used: queries seldom need them.
"""
# ruff: noqa: E402 - kafka-python's clients are not to be imported with its protocol

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.wire.kafka_package import defer_clients

defer_clients()

from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    ProduceResponse,
    TxnOffsetCommitRequest,
)
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error, error_kind

if TYPE_CHECKING:
    from kafka.protocol.admin import (
        CreateTopicsRequest,
        DescribeClusterRequest,
        DescribeConfigsRequest,
        DescribeLogDirsRequest,
        DescribeQuorumRequest,
        DescribeTransactionsRequest,
        ListTransactionsRequest,
    )

__all__ = [
    "AddOffsetsToTxnRequest",
    "AddPartitionsToTxnRequest",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "CreateTopicsRequest",
    "DescribeClusterRequest",
    "DescribeConfigsRequest",
    "DescribeLogDirsRequest",
    "DescribeQuorumRequest",
    "DescribeTransactionsRequest",
    "EndTxnRequest",
    "ErrorCode",
    "FetchRequest",
    "FetchResponse",
    "FindCoordinatorRequest",
    "HeartbeatRequest",
    "InitProducerIdRequest",
    "ListOffsetsRequest",
    "ListTransactionsRequest",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetCommitRequest",
    "OffsetFetchRequest",
    "OffsetForLeaderEpochRequest",
    "ProduceRequest",
    "ProduceResponse",
    "SaslAuthenticateRequest",
    "SaslHandshakeRequest",
    "TxnOffsetCommitRequest",
    "broker_error",
    "error_kind",
]


def __getattr__(name: str) -> Any:
    # Called for names that are not imported above: the names of TYPE_CHECKING.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("kafka.protocol.admin"), name)
