"""The identity of an idempotent producer: a number that the brokers give, under which they recognize duplicates.

Layer: client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka.client.wire.messages import InitProducerIdRequest
from pyspark_kafka.client.wire.versions import MAX_INIT_VERSION
from pyspark_kafka.errors import ProtocolError

if TYPE_CHECKING:
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline

# Without a transactional id the time means nothing; Java sends the same.
_NO_TIMEOUT_MS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """What the cluster knows a producer by."""

    producer_id: int
    producer_epoch: int


def request_identity(client: KafkaClient) -> ProducerIdentity:
    """Get a new identity, for one producer without transactions.

    Runs on: executor; blocks at most `api_timeout_ms`.

    Raises:
        AccessError: this user may not write idempotently.
        ProtocolError: the cluster does not know idempotent producers.
        DeadlineError: no identity in time.
        TransportError: no broker can be reached.

    Source: KIP-98.
    """

    def attempt(step: Deadline) -> ProducerIdentity:
        connection = client.any_connection(step)
        if not connection.supports(InitProducerIdRequest):
            raise ProtocolError(
                f"{connection.address} does not give out producer ids, so a write cannot be idempotent. "
                "Nothing was written.",
                condition="UNSUPPORTED_VERSION",
                hint="Set option 'kafka.enable.idempotence' to false; retries may then write records twice.",
                facts={"broker": connection.address},
            )
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        response = connection.call(request, step, max_version=MAX_INIT_VERSION)
        if response.error_code != ErrorCode.NONE:
            raise broker_error(
                response.error_code,
                f"Asking {connection.address} for a producer id failed",
                consequence="Nothing was written.",
                broker=connection.address,
            )
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    return client.retrying("Asking for a producer id", client.deadline(), attempt)
