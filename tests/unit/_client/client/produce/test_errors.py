"""The producer against a cluster in memory: errors that end delivery, and what they say."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kit.fakes.memory_cluster import (
    LOST_REPLY,
    ORDERS_0,
    ORDERS_1,
    SILENCE,
    Fault,
    MemoryCluster,
    batch_of,
    make_producer,
    numbers,
    send_numbered,
)
from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka.errors import AccessError, ConnectorError, DeliveryError, ProtocolError, TransportError


def failure(cluster: MemoryCluster, *, count: int = 1, **options: Any) -> ConnectorError:
    def deliver() -> None:
        with make_producer(cluster, **options) as producer:
            send_numbered(producer, ORDERS_0, *range(count), size=300_000)
            producer.flush()

    with pytest.raises(ConnectorError) as raised:
        deliver()
    return raised.value


def test_message_too_large_names_the_option_and_the_topic_s_limit_and_the_sizes() -> None:
    cluster = MemoryCluster()
    cluster.faults.append(Fault(appends=False, code=10))
    error = failure(cluster, count=2)
    assert isinstance(error, DeliveryError)
    size = len(batch_of(b"0", size=300_000))
    assert said(error) == (
        "[MESSAGE_TOO_LARGE] Writing to orders-0 at broker-0:9092 failed: the broker refused a record batch of 1 "
        f"records and {size} bytes with MESSAGE_TOO_LARGE (10). Option 'kafka.max.request.size' allows 1048576 bytes; "
        "the topic allows less. Records of orders-0: delivered 0, not delivered 2, unknown 0. Records of this task, "
        "all topic-partitions: delivered 0, not delivered 2, unknown 0. Hint: Raise max.message.bytes of the topic "
        "(message.max.bytes of the brokers is its default), or lower option 'kafka.max.request.size' so that record "
        "batches stay below it."
    )


def test_batch_above_max_request_size_is_not_sent() -> None:
    cluster = MemoryCluster()
    error = failure(cluster, max_request_size=1_000)
    assert re.search(
        r"^\[RECORD_BATCH_TOO_LARGE\] .* has 300\d+ bytes; option 'kafka.max.request.size' allows 1000", str(error)
    )
    assert cluster.requests == []


def test_refused_access_is_an_access_error_naming_topic_and_counts() -> None:
    cluster = MemoryCluster()
    cluster.faults.extend([None, Fault(appends=False, code=29)])
    error = failure(cluster, count=2)
    assert isinstance(error, AccessError)
    assert str(error).startswith("[TOPIC_AUTHORIZATION_FAILED] Writing to orders-0 at broker-0:9092 failed: ")
    assert "Records of orders-0: delivered 1, not delivered 1, unknown 0." in str(error)
    assert "Missing right: WRITE on topic 'orders'." in str(error)
    assert said(error).endswith("--operation Write --topic orders`.")


def test_invalid_records_are_named_in_the_broker_s_words() -> None:
    cluster = MemoryCluster()
    bad = tuple((index, "no key") for index in range(7))
    cluster.faults.append(
        Fault(appends=False, code=87, message="One or more records have been rejected", record_errors=bad)
    )
    error = failure(cluster)
    assert error.condition == "INVALID_RECORD"
    assert 'The broker said: "One or more records have been rejected".' in str(error)
    assert "Refused: record 0 of the batch: no key; record 1 of the batch: no key;" in str(error)
    assert "; and 2 more. " in str(error)


@pytest.mark.parametrize(
    ("code", "name"), [(47, "INVALID_PRODUCER_EPOCH"), (48, "INVALID_TXN_STATE"), (90, "PRODUCER_FENCED")]
)
def test_transaction_ended_by_others_is_named_in_the_error(code: int, name: str) -> None:
    cluster = MemoryCluster()
    cluster.faults.append(Fault(appends=False, code=code))
    identity = TransactionIdentity(cluster.producer_id, 0, Generation.V2)
    error = failure(cluster, transaction=OpenTransaction("the-sink", identity))
    assert error.condition == name
    assert "The transaction of 'the-sink' has been ended" in str(error)
    assert "Nothing of it becomes visible." in str(error)
    assert "lost" not in str(error)
    assert "'kafka.transaction.timeout.ms'" in error.hint


@pytest.mark.parametrize(("code", "name"), [(59, "UNKNOWN_PRODUCER_ID"), (47, "INVALID_PRODUCER_EPOCH")])
def test_forgotten_producer_is_fatal_and_the_text_says_what_is_unknown(code: int, name: str) -> None:
    cluster = MemoryCluster()
    cluster.faults.extend([LOST_REPLY, Fault(appends=False, code=code)])
    error = failure(cluster)
    assert error.condition == name
    assert (
        "It does not know producer 4711 (epoch 0) any more, so it cannot tell whether this batch (sequence 0, "
        "attempt 2) is already in the log."
    ) in str(error)
    assert "delivered 0, not delivered 0, unknown 1." in str(error)
    # A sequence that starts over could write the batch twice.
    assert len(cluster.requests) == 2


def test_gap_that_no_failed_batch_explains_is_fatal() -> None:
    cluster = MemoryCluster()
    cluster.faults.extend([None, Fault(appends=False, code=45)])
    error = failure(cluster, count=2)
    assert error.condition == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert "Sequence 1 does not follow what the broker holds of producer 4711 (epoch 0)" in str(error)


def test_fatal_response_for_one_partition_counts_the_others_of_the_same_response() -> None:
    cluster = MemoryCluster(partitions=3)
    cluster.latency_s = 0.01
    cluster.faults.extend([None, Fault(appends=False, code=87, only=1)])
    with make_producer(cluster) as producer:
        for partition in range(3):
            send_numbered(producer, TopicPartition("orders", partition), partition)
        with pytest.raises(DeliveryError, match=r"all topic-partitions: delivered 2, not delivered 1, unknown 0\."):
            producer.flush()


def test_delivery_is_given_up_at_its_deadline_naming_broker_and_last_failure() -> None:
    cluster = MemoryCluster()
    cluster.faults.extend([None, *[Fault(appends=False, code=19, message="ISR is 1")] * 1_000])
    started = cluster.clock.now
    error = failure(cluster, count=3, delivery_timeout_ms=30_000)
    assert 30 <= cluster.clock.now - started < 32
    assert isinstance(error, DeliveryError)
    assert re.match(
        r"\[DELIVERY_TIMED_OUT\] Writing to orders-0 at broker-0:9092 failed: a record batch of 1 records and \d+ "
        r"bytes was not acknowledged within 30000 ms \(option 'kafka\.delivery\.timeout\.ms'\), after \d+ attempts\. "
        r"Last failure: broker-0:9092 did not take a record batch for orders-0: the broker answered "
        r'NOT_ENOUGH_REPLICAS \(19\)\. The broker said: "ISR is 1"\. '
        r"Records of orders-0: delivered 1, not delivered 2, unknown 0\.",
        str(error),
    )


def test_silent_broker_leaves_the_records_unknown() -> None:
    cluster = MemoryCluster()
    cluster.faults.extend([SILENCE] * 1_000)
    started = cluster.clock.now
    error = failure(cluster, delivery_timeout_ms=50_000, request_timeout_ms=20_000)
    assert 50 <= cluster.clock.now - started < 51
    assert error.condition == "DELIVERY_TIMED_OUT"
    assert "delivered 0, not delivered 0, unknown 1" in str(error)
    assert len(cluster.requests) == 3
    assert all(connection.closed for connection in cluster.opened)


def test_topic_that_never_was_fails_after_15_seconds_naming_it() -> None:
    cluster = MemoryCluster()
    started = cluster.clock.now
    with make_producer(cluster) as producer:
        producer.send_batch(TopicPartition("typo", 0), batch_of(b"a"), 1)
        with pytest.raises(
            DeliveryError, match=r"^\[UNKNOWN_TOPIC\] Writing to typo-0 failed: topic 'typo' does not exist, or"
        ):
            producer.flush()
    assert 15 <= cluster.clock.now - started < 17


def test_partition_that_is_not_there_fails_after_15_seconds_telling_how_many_there_are() -> None:
    cluster = MemoryCluster(partitions=2)
    with make_producer(cluster) as producer:
        producer.send_batch(TopicPartition("orders", 2), batch_of(b"a"), 1)
        with pytest.raises(
            DeliveryError,
            match=r"^\[UNKNOWN_PARTITION\] Writing to orders-2 failed: topic 'orders' has no partition 2; it has 2,",
        ) as caught:
            producer.flush()
    assert "If the rows have no such column, run the query again: the topic was recreated" in caught.value.hint


def test_topic_that_is_known_late_is_written_to() -> None:
    cluster = MemoryCluster()
    cluster.topic_codes.extend([3] * 5)
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
    assert cluster.values(0) == numbers(1)


def test_topic_that_was_there_is_waited_for_until_the_delivery_deadline() -> None:
    cluster = MemoryCluster()
    with make_producer(cluster, delivery_timeout_ms=60_000) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        cluster.topic = "gone"
        cluster.leaders.clear()
        started = cluster.clock.now
        send_numbered(producer, ORDERS_0, 2)
        with pytest.raises(DeliveryError, match=r"^\[DELIVERY_TIMED_OUT\] Writing to orders-0 .* does not exist"):
            producer.flush()
        assert cluster.clock.now - started >= 60


def test_topic_that_may_not_be_described_is_an_access_error() -> None:
    cluster = MemoryCluster()
    cluster.topic_codes.append(29)
    error = failure(cluster)
    assert isinstance(error, AccessError)
    assert str(error).startswith(
        "[TOPIC_AUTHORIZATION_FAILED] Writing to orders-0 failed, looking up its leader (records of this task: "
        "delivered 0, not delivered 1, unknown 0): Looking up topic 'orders' failed"
    )
    assert "Missing right: DESCRIBE on topic 'orders' (WRITE includes it), unless there is no such topic" in str(error)
    assert "--operation Write --topic orders`." in str(error)


def test_failure_that_does_not_pass_ends_delivery_at_once() -> None:
    cluster = MemoryCluster()
    cluster.borrow_errors.append(
        TransportError("The certificate of broker-0:9092 was not accepted.", condition="TLS_FAILED", hint="Check it.")
    )
    started = cluster.clock.now
    error = failure(cluster)
    assert isinstance(error, DeliveryError)
    assert cluster.clock.now == started
    assert str(error).startswith(
        "[TLS_FAILED] Writing to orders-0 failed: connecting to broker-0:9092: The certificate of broker-0:9092 was not"
    )


def test_refused_credentials_end_delivery_at_once() -> None:
    cluster = MemoryCluster()
    cluster.borrow_errors.append(
        AccessError("broker-0:9092 refused the user.", code=58, condition="SASL_AUTHENTICATION_FAILED")
    )
    assert said(failure(cluster)) == (
        "[SASL_AUTHENTICATION_FAILED] Writing to orders-0 failed, connecting to broker-0:9092 (records of this task: "
        "delivered 0, not delivered 1, unknown 0): broker-0:9092 refused the user."
    )


def test_request_is_given_up_when_the_time_of_a_batch_in_it_is_over() -> None:
    cluster = MemoryCluster()
    cluster.faults.extend([None, SILENCE, SILENCE])
    with make_producer(cluster, delivery_timeout_ms=40_000, request_timeout_ms=100_000) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        started = cluster.clock.now
        send_numbered(producer, ORDERS_0, 2)
        cluster.clock.now += 5
        send_numbered(producer, ORDERS_1, 3)
        with pytest.raises(DeliveryError, match="orders-0"):
            producer.flush()
        # The five seconds were not spent in a call.
        assert 45 <= cluster.clock.now - started < 46


def test_producer_id_that_is_refused_is_an_access_error() -> None:
    cluster = MemoryCluster()
    cluster.init_codes.append(31)
    error = failure(cluster)
    assert isinstance(error, AccessError)
    assert "Missing right: IDEMPOTENT_WRITE on the cluster. Nothing was written." in str(error)
    assert "--operation Write --topic orders`. Brokers before Kafka 2.8 want IdempotentWrite" in str(error)


def test_cluster_without_producer_ids_is_named_with_the_option_to_set() -> None:
    cluster = MemoryCluster()
    cluster.gives_producer_ids = False
    error = failure(cluster)
    assert isinstance(error, ProtocolError)
    assert "Set option 'kafka.enable.idempotence' to false" in str(error)


def test_producer_id_is_requested_again_while_the_broker_cannot_assign_one() -> None:
    cluster = MemoryCluster()
    cluster.init_codes.extend([15, 14])
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
    assert cluster.values(0) == numbers(1)


def test_every_call_after_an_error_raises_the_same_error() -> None:
    cluster = MemoryCluster()
    cluster.latency_s = 0.01
    cluster.faults.append(Fault(appends=False, code=87))
    producer = make_producer(cluster)
    send_numbered(producer, ORDERS_0, 1)
    with pytest.raises(DeliveryError) as raised:
        producer.flush()
    for call in (
        producer.flush,
        producer.poll,
        lambda: producer.partition_count("orders"),
        lambda: send_numbered(producer, ORDERS_0, 2),
    ):
        with pytest.raises(DeliveryError) as again:
            call()
        assert again.value is raised.value
    assert producer.metrics.records == 0
    producer.close()


def test_interrupt_makes_the_producer_unusable_and_closes_its_connections() -> None:
    cluster = MemoryCluster()
    producer = make_producer(cluster)
    send_numbered(producer, ORDERS_0, 1)

    def interrupt() -> None:
        raise KeyboardInterrupt

    cluster.before_produce = interrupt
    with pytest.raises(KeyboardInterrupt):
        send_numbered(producer, ORDERS_0, 2, 3, size=400_000)
    with pytest.raises(ProtocolError, match=r"PRODUCER_INTERRUPTED.*KeyboardInterrupt.*delivered 1, "):
        producer.flush()
    assert all(connection.closed for connection in cluster.opened)
