"""The errors of delivery: refused or late batches, and what happened to their records. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka._client.client.wire.messages import broker_error, error_kind
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.errors import AccessError, DeliveryError, TransportError

if TYPE_CHECKING:
    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.produce.batches.producer_batch import ProducerBatch, RecordCounts
    from pyspark_kafka._client.client.produce.batches.state import ProducerState
    from pyspark_kafka._client.client.produce.response import ProducePartitionResponse
    from pyspark_kafka.errors import ConnectorError

# How many refused records one text names; the broker lists every bad record of a batch.
_RECORDS_NAMED = 5

_SIZE_HINT = (
    "Raise max.message.bytes of the topic (message.max.bytes of the brokers is its default), or lower option "
    "'kafka.max.request.size' so that record batches stay below it."
)
_STATE_HINT = (
    "The log may have lost records (unclean leader election, retention, deleted records), or the brokers forgot this "
    "producer (producer.id.expiration.ms). A retry of the task starts with a new producer; it may write again what is "
    "counted as delivered or unknown."
)
# Codes in response to a write of a transaction that is not, or no longer, open for this producer.
_ENDED = frozenset({"INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "PRODUCER_FENCED"})
_ENDED_HINT = (
    "Where batches are large, or a function of a continuous query takes long for one, raise option "
    "'kafka.transaction.timeout.ms'; otherwise see that no other driver uses the "
    "same transactional id, and that nobody aborts its transactions."
)
_TOPIC_HINT = "Create the topic, or correct option 'topic' or column 'topic'; topics are not created by writing."
_HINTS: dict[int, str] = {
    ErrorCode.MESSAGE_TOO_LARGE: _SIZE_HINT,
    ErrorCode.RECORD_LIST_TOO_LARGE: "Raise segment.bytes of the topic, or lower option 'kafka.max.request.size'.",
    ErrorCode.INVALID_REQUIRED_ACKS: "Option 'kafka.acks' must be all, 1 or 0.",
    ErrorCode.INVALID_TIMESTAMP: "The topic bounds record times (message.timestamp.before.max.ms, "
    "message.timestamp.after.max.ms); correct the times, or use message.timestamp.type=LogAppendTime.",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "The topic's message format is too old for idempotent writes or "
    "headers; raise log.message.format.version, or set option 'kafka.enable.idempotence' to false.",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: _STATE_HINT,
    ErrorCode.UNKNOWN_PRODUCER_ID: _STATE_HINT,
    ErrorCode.INVALID_PRODUCER_EPOCH: _STATE_HINT,
    ErrorCode.INVALID_RECORD: "A compacted topic refuses records without a key; otherwise, see the broker's message.",
}


def rights_to_write(topic: str, transactional_id: str | None) -> tuple[Right, ...]:
    """Return what a Produce request needs."""
    write = Right("Write", "topic", topic)
    return (write,) if transactional_id is None else (write, Right("Write", "transactional-id", transactional_id))


def consequence(state: ProducerState, topic_partition: TopicPartition) -> str:
    """Return what happened to the records, as sentences: of the partition, and of this task."""
    here, everywhere = state.counts(topic_partition), state.counts()
    return f"Records of {topic_partition}: {here}. Records of this task, all topic-partitions: {everywhere}."


def _parameters(
    state: ProducerState, topic_partition: TopicPartition, broker: str | None, condition: str
) -> dict[str, object]:
    counts: RecordCounts = state.counts()
    return {
        "topic_partition": topic_partition,
        "broker": broker or "",
        "cause": condition,
        "delivered": counts.delivered,
        "not_delivered": counts.not_delivered,
        "unknown": counts.unknown,
    }


def _producer(state: ProducerState) -> str:
    return f"producer {state.sequences.producer_id} (epoch {state.sequences.producer_epoch})"


def refused(
    state: ProducerState,
    batch: ProducerBatch,
    response: ProducePartitionResponse,
    broker: str,
    *,
    max_request_size: int,
    transactional_id: str | None = None,
) -> ConnectorError:
    """Build the error for a batch that a broker has refused for good; call `state.refuse` first."""
    topic_partition = batch.topic_partition
    kind = error_kind(response.code)
    parameters = _parameters(state, topic_partition, broker, kind.name)
    what = (
        f"Writing to {topic_partition} at {broker} failed: the broker refused a record batch of {batch.record_count} "
        f"records and {batch.size} bytes"
    )
    access = broker_error(
        response.code,
        what,
        detail=response.message,
        consequence=consequence(state, topic_partition),
        hint=None,
        rights=rights_to_write(topic_partition.topic, transactional_id),
        **parameters,
    )
    if isinstance(access, AccessError):
        return access
    expected, hint = "", _HINTS.get(response.code, "See the broker's log for the reason.")
    if response.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
        expected = f" Option 'kafka.max.request.size' allows {max_request_size} bytes; the topic allows less."
    elif transactional_id is not None and kind.name in _ENDED:
        hint = _ENDED_HINT
        expected = (
            f" The transaction of '{transactional_id}' has been ended: after its timeout, by an operator, or by "
            "another driver that has taken over the transactional id. Nothing of it becomes visible."
        )
    elif response.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        expected = (
            f" Sequence {batch.base_sequence} does not follow what the broker holds of {_producer(state)}, although "
            "every earlier batch was acknowledged."
        )
    elif response.code in (ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH):
        expected = (
            f" It does not know {_producer(state)} any more, so it cannot tell whether this batch (sequence "
            f"{batch.base_sequence}, attempt {batch.attempts}) is already in the log."
        )
    said = f' The broker said: "{response.message}".' if response.message else ""
    named = "; ".join(
        f"record {index} of the batch: {text or 'no reason given'}"
        for index, text in response.record_errors[:_RECORDS_NAMED]
    )
    if len(response.record_errors) > _RECORDS_NAMED:
        named += f"; and {len(response.record_errors) - _RECORDS_NAMED} more"
    return DeliveryError(
        f"{what} with {kind.name} ({response.code}).{expected}{said}{f' Refused: {named}.' if named else ''} "
        f"{consequence(state, topic_partition)}",
        condition=kind.name,
        hint=hint,
        parameters=parameters,
    )


def expired(
    state: ProducerState, batch: ProducerBatch, timeout_ms: int, broker: str | None, cause: ConnectorError | None
) -> DeliveryError:
    """Build the error for a batch that was not acknowledged in time."""
    topic_partition = batch.topic_partition
    at = f" at {broker}" if broker else ""
    last = f" Last failure: {cause.message}" if cause is not None else ""
    hint = (
        "Check that the brokers run and that enough replicas are in sync; or raise option 'kafka.delivery.timeout.ms'."
    )
    if cause is not None and cause.hint:
        hint = f"{cause.hint} If it only takes longer: raise option 'kafka.delivery.timeout.ms'."
    return DeliveryError(
        f"Writing to {topic_partition}{at} failed: a record batch of {batch.record_count} records and {batch.size} "
        f"bytes was not acknowledged within {timeout_ms} ms (option 'kafka.delivery.timeout.ms'), after "
        f"{batch.attempts} attempts.{last} {consequence(state, topic_partition)}",
        condition="DELIVERY_TIMED_OUT",
        hint=hint,
        parameters=_parameters(state, topic_partition, broker, "" if cause is None else cause.condition),
    )


def no_such_partition(
    state: ProducerState, topic_partition: TopicPartition, waited_ms: int, known: int
) -> DeliveryError:
    """Build the error for a topic, or a partition of it, that the cluster does not know.

    Args:
        state: the batches.
        topic_partition: where a batch was to go.
        waited_ms: how long it was looked up.
        known: how many partitions the topic has; 0 if there is no such topic.
    """
    topic = topic_partition.topic
    what = (
        f"topic '{topic}' has no partition {topic_partition.partition}; it has {known}, numbered from 0"
        if known
        else f"topic '{topic}' does not exist, or this user may not describe it"
    )
    hint = (
        "Correct column 'partition', or add partitions to the topic. If the rows have no such column, run the query "
        "again: the topic was recreated with fewer partitions meanwhile."
        if known
        else _TOPIC_HINT
    )
    return DeliveryError(
        f"Writing to {topic_partition} failed: {what} (looked up for {waited_ms} ms). "
        f"{consequence(state, topic_partition)}",
        condition="UNKNOWN_PARTITION" if known else "UNKNOWN_TOPIC",
        hint=hint,
        parameters=_parameters(state, topic_partition, None, "UNKNOWN_TOPIC_OR_PARTITION"),
    )


def no_such_topic(
    records: RecordCounts, topic: str, waited_ms: int, *, cluster: str, nearest: str | None
) -> DeliveryError:
    """Build the error for a missing topic before anything was sent to it.

    Args:
        records: of the task.
        topic: the topic.
        waited_ms: how long it was looked up.
        cluster: which cluster lacks it, in words.
        nearest: a topic that was perhaps meant.
    """
    return DeliveryError(
        f"Writing to topic '{topic}' failed: it does not exist in {cluster}, or this user may not describe it (looked "
        f"up for {waited_ms} ms). Records of this task, all topic-partitions: {records}.",
        condition="UNKNOWN_TOPIC",
        hint=f"Did you mean '{nearest}'? If not: {_TOPIC_HINT}" if nearest else _TOPIC_HINT,
        parameters={"topic": topic},
    )


def refused_access(
    state: ProducerState, topic_partition: TopicPartition, step: str, cause: AccessError
) -> ConnectorError:
    """Build the error for credentials, or a right to see the topic, that were refused before anything was sent."""
    return cause.located(f"Writing to {topic_partition} failed, {step} (records of this task: {state.counts()})")


def unreachable(
    state: ProducerState, topic_partition: TopicPartition, step: str, cause: ConnectorError
) -> DeliveryError:
    """Build the error for a failure that does not pass (a certificate, a version)."""
    return DeliveryError(
        f"Writing to {topic_partition} failed: {step}: {cause.message} {consequence(state, topic_partition)}",
        condition=cause.condition,
        hint=cause.hint,
        parameters=_parameters(state, topic_partition, cause.parameters.get("broker"), cause.condition),
    )


def left_silent(broker: str, topic_partition: TopicPartition, silent_s: float) -> TransportError:
    """Build the reason why record batches are sent again for which a broker has sent no response."""
    return TransportError(
        f"{broker} has sent no response to a write for {silent_s:.1f} s, and leads {topic_partition} no longer.",
        condition="LEADER_SILENT",
        retriable=True,
        parameters={"broker": broker, "topic": topic_partition.topic, "partition": topic_partition.partition},
    )


def throttled(broker: str, seconds: float) -> TransportError:
    """Build the reason why a broker is sent nothing: the client has used up its quota."""
    return TransportError(
        f"{broker} throttles this client by a quota, and wants no request for {seconds:.0f} s more.",
        condition="BROKER_THROTTLES",
        hint="Raise the quota of this user or of option 'kafka.client.id' on the brokers (producer_byte_rate, "
        "request_percentage), or have fewer tasks and queries share it.",
        retriable=True,
        parameters={"broker": broker},
    )


def too_large(state: ProducerState, topic_partition: TopicPartition, size: int, max_request_size: int) -> DeliveryError:
    """Build the error for a batch above our own bound; it was not sent."""
    return DeliveryError(
        f"Writing to {topic_partition} failed: a record batch has {size} bytes; option 'kafka.max.request.size' allows "
        f"{max_request_size}. It was not sent. {consequence(state, topic_partition)}",
        condition="RECORD_BATCH_TOO_LARGE",
        hint="Raise option 'kafka.max.request.size', and max.message.bytes of the topic with it.",
        parameters=_parameters(state, topic_partition, None, "RECORD_BATCH_TOO_LARGE"),
    )
