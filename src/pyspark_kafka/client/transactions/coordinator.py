"""FindCoordinator: which broker keeps the state of a transactional id. Layer: client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.client.cluster.any_broker import call_any_broker
from pyspark_kafka.client.wire.messages import ErrorCode, FindCoordinatorRequest, InitProducerIdRequest, broker_error
from pyspark_kafka.client.wire.versions import MAX_FIND_VERSION
from pyspark_kafka.errors import ProtocolError

if TYPE_CHECKING:
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline

_TRANSACTION_KEY = 1


def find_coordinator(client: KafkaClient, transactional_id: str, deadline: Deadline) -> int:
    """Ask any broker for the coordinator of a transactional id, once; return its broker id.

    Runs on: driver; blocks.

    Raises:
        AccessError: the user may not describe the transactional id.
        BrokerError: the coordinator is not available now, or the broker refused.
        ProtocolError: the brokers know no transactions (condition UNSUPPORTED_VERSION).
        DeadlineError: no response in time.
        TransportError: no broker can be reached.
    """
    request = FindCoordinatorRequest(key=transactional_id, key_type=_TRANSACTION_KEY)
    response, connection = call_any_broker(client, request, deadline, max_version=MAX_FIND_VERSION)
    if not connection.supports(InitProducerIdRequest):
        raise ProtocolError(
            f"{connection.address} knows no transactions. Nothing was written.",
            condition="UNSUPPORTED_VERSION",
            hint="Exactly-once writes need Kafka 0.11 or newer.",
            facts={"broker": connection.address},
        )
    if response.error_code != ErrorCode.NONE:
        raise broker_error(
            response.error_code,
            f"Looking up the coordinator of transactional id '{transactional_id}' at {connection.address} failed",
            transactional_id=transactional_id,
            broker=connection.address,
        )
    return int(response.node_id)
