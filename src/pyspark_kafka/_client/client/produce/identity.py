"""The writer's identity: none, one that a broker has returned, or a transaction's owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.wire.api_versions import MAX_INIT_VERSION, MAX_PRODUCE_VERSION
from pyspark_kafka._client.client.wire.completeness import response_incomplete
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka._client.client.wire.messages import InitProducerIdRequest
from pyspark_kafka._client.client.wire.missing_rights import Right, ask_for
from pyspark_kafka.errors import AccessError, ProtocolError

if TYPE_CHECKING:
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction, TransactionIdentity
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.client.waiting.outage import OutageRetry
    from pyspark_kafka._client.options import ProducerOptions

# Without a transactional id the time means nothing; Java sends the same.
_NO_TIMEOUT_MS = 2**31 - 1
_OLD_BROKER_HINT = (
    "Brokers before Kafka 2.8 want IdempotentWrite on the cluster as well (--cluster instead of --topic). Or set "
    "option 'kafka.enable.idempotence' to false; retries may then write records twice."
)


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """The number under which brokers recognize the duplicates of a producer, and its epoch."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class WriteMode:
    """Idempotent or not, of a transaction or not: everything about a producer that hangs on it.

    Attributes:
        idempotent: whether batches carry an identity and sequences. Without them a retry may duplicate records and, as
            several requests are in flight, reorder them; with acks=0 nothing is known of delivery at all.
        transaction: what the batches are part of; they carry its identity.
    """

    idempotent: bool
    transaction: OpenTransaction | None = None

    @classmethod
    def of(cls, options: ProducerOptions, transaction: OpenTransaction | None) -> WriteMode:
        """Return the mode that options require; a transaction is always idempotent."""
        return cls((options.idempotence and options.acks == -1) or transaction is not None, transaction)

    @property
    def transactional_id(self) -> str | None:
        """The name of the transaction's owner."""
        return None if self.transaction is None else self.transaction.name

    @property
    def max_produce_version(self) -> int:
        """The newest version of Produce requests to write with."""
        return MAX_PRODUCE_VERSION if self.transaction is None else self.transaction.max_produce_version

    def fetch_identity(
        self, client: KafkaClient, outage_retry: OutageRetry, topic: str
    ) -> ProducerIdentity | TransactionIdentity:
        """Return the identity of an idempotent producer: the transaction's, or a new one of the cluster.

        An outage is waited out by `outage_retry`; see `request_identity`.
        """
        if self.transaction is not None:
            return self.transaction.identity
        return outage_retry.call("asking for a producer id", lambda: request_identity(client, topic))


def request_identity(client: KafkaClient, topic: str) -> ProducerIdentity:
    """Fetch a new identity, for one producer without transactions.

    Runs on: executor; blocks at most `api_timeout_ms`.

    Args:
        client: the cluster.
        topic: one that is to be written to, for the error of a missing right.

    Raises:
        AccessError: this user may not write idempotently.
        ProtocolError: the cluster does not know idempotent producers.
        DeadlineError: no identity in time.
        TransportError: no broker can be reached.

    Source: KIP-98.
    """

    def attempt(step: Deadline) -> ProducerIdentity:
        connection = client.any_broker.connect(step)
        if not connection.supports(InitProducerIdRequest):
            raise ProtocolError(
                f"{connection.address} does not assign producer ids, so a write cannot be idempotent. "
                "Nothing was written.",
                condition="UNSUPPORTED_VERSION",
                hint="Set option 'kafka.enable.idempotence' to false; retries may then write records twice.",
                parameters={"broker": connection.address},
            )
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        response = connection.call(request, step, max_version=MAX_INIT_VERSION)
        if response.error_code != ErrorCode.NONE:
            error = broker_error(
                response.error_code,
                f"Asking {connection.address} for a producer id failed",
                consequence="Nothing was written.",
                rights=(Right("IdempotentWrite", "cluster"),),
                broker=connection.address,
            )
            if isinstance(error, AccessError):
                # Who may write to any topic may write idempotently (KIP-679), and that right is needed anyway.
                ask_for(error, [Right("Write", "topic", topic)], _OLD_BROKER_HINT)
            raise error
        if response.producer_id < 0 or response.producer_epoch < 0:
            # Batches with it would not be idempotent, and brokers would take them.
            raise response_incomplete("InitProducerId", connection.address, "has no producer id")
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    return client.retrying("Asking for a producer id", client.deadline(), attempt)
