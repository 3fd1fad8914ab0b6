"""The producer against a cluster in memory: faults between request and answer, moving leaders, errors that count."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from produce_fakes import LOST_REPLY, LOST_REQUEST, SILENCE, FakeCluster, Fault, batch_of
from pyspark_kafka.client.produce import IdempotentProducer, ProducerMetrics
from pyspark_kafka.client.producer_state import SequenceStamp
from pyspark_kafka.errors import AccessError, ConnectorError, DeliveryError, ProtocolError, TransportError
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.options.connection import ProducerOptions
from pyspark_kafka.records import patch_header

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)
NOT_LEADER = Fault(appends=False, code=6)


def make_producer(cluster: FakeCluster, buffer_bytes: int = 32 << 20, **options: Any) -> IdempotentProducer:
    return IdempotentProducer(
        cluster.as_client(),
        ProducerOptions(**options),
        buffer_bytes=buffer_bytes,
        clock=cluster.clock,
        sleep=cluster.clock.sleep,
    )


def send_numbered(producer: IdempotentProducer, topic_partition: TopicPartition, *numbers: int, size: int = 0) -> None:
    for number in numbers:
        producer.send(topic_partition, batch_of(b"%d" % number, size=size), 1)


def numbers(*values: int) -> list[bytes]:
    return [b"%d" % value for value in values]


def partitions_of(request: Any) -> list[int]:
    return [entry.index for topic in request.topic_data for entry in topic.partition_data]


# Delivery


def test_records_arrive_in_order_and_are_counted() -> None:
    cluster = FakeCluster()
    with make_producer(cluster) as producer:
        for number in range(30):
            producer.send(TopicPartition("orders", number % 2), batch_of(b"%d" % number, b"more"), 2)
        producer.flush()
        assert producer.metrics.records == 60
        assert producer.metrics.retries == 0
    for number in (0, 1):
        assert cluster.values(number)[::2] == numbers(*range(number, 30, 2))


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_every_version_delivers(version: int) -> None:
    cluster = FakeCluster()
    cluster.produce_version = version
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1, 2, 3)
        producer.flush()
    assert cluster.values(0) == numbers(1, 2, 3)


def test_small_batches_of_many_partitions_share_a_request() -> None:
    cluster = FakeCluster(partitions=50)
    cluster.latency_s = 0.01
    with make_producer(cluster) as producer:
        for number in range(50):
            send_numbered(producer, TopicPartition("orders", number), number)
        producer.flush()
    assert [len(partitions_of(request)) for _, request in cluster.requests] == [1, 49]


def test_request_has_at_most_one_batch_a_partition_and_at_most_max_request_size() -> None:
    cluster = FakeCluster(partitions=3)
    cluster.latency_s = 0.01
    with make_producer(cluster, max_request_size=2_500) as producer:
        for number in range(5):
            for partition in range(3):
                send_numbered(producer, TopicPartition("orders", partition), number, size=1_000)
        producer.flush()
    for _, request in cluster.requests:
        found = partitions_of(request)
        assert len(found) == len(set(found)) <= 2
    assert 2 in [len(partitions_of(request)) for _, request in cluster.requests]
    assert [cluster.values(partition) for partition in range(3)] == [numbers(*range(5))] * 3


@pytest.mark.parametrize("max_in_flight", [1, 3, 5])
def test_requests_under_way_are_bounded(max_in_flight: int) -> None:
    cluster = FakeCluster(partitions=12)
    cluster.faults.extend([SILENCE] * 100)
    with make_producer(cluster, max_in_flight=max_in_flight) as producer:
        for partition in range(12):
            send_numbered(producer, TopicPartition("orders", partition), 1, size=500_000)
        assert len(cluster.requests) == max_in_flight


def test_send_blocks_while_the_buffer_is_full() -> None:
    cluster = FakeCluster()
    cluster.latency_s = 0.01
    unanswered: list[int] = []
    with make_producer(cluster, buffer_bytes=10_000) as producer:
        for number in range(100):
            send_numbered(producer, ORDERS_0, number, size=3_000)
            unanswered.append(producer._state.unacknowledged_bytes)
        producer.flush()
    assert 6_000 < max(unanswered) <= 10_000
    assert cluster.values(0) == numbers(*range(100))


def test_batch_larger_than_the_buffer_is_sent_alone() -> None:
    cluster = FakeCluster()
    with make_producer(cluster, buffer_bytes=10) as producer:
        send_numbered(producer, ORDERS_0, 1, 2)
        producer.flush()
    assert cluster.values(0) == numbers(1, 2)


def test_poll_sends_what_waits_for_company() -> None:
    cluster = FakeCluster()
    cluster.latency_s = 0.01
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        send_numbered(producer, ORDERS_1, 2)
        assert len(cluster.requests) == 1
        producer.poll()
        assert cluster.values(1) == numbers(2)


def test_acks_1_sends_no_sequence_and_asks_for_no_producer_id() -> None:
    cluster = FakeCluster()
    cluster.init_codes.append(31)  # would fail
    with make_producer(cluster, acks=1) as producer:
        assert producer.next_stamp(ORDERS_0) == SequenceStamp(-1, -1, -1)
        send_numbered(producer, ORDERS_0, 1, 2)
        producer.flush()
    assert cluster.values(0) == numbers(1, 2)
    assert {request.acks for _, request in cluster.requests} == {1}
    assert not cluster.logs[ORDERS_0].last_sequences


def test_acks_0_waits_for_no_answer() -> None:
    cluster = FakeCluster()
    with make_producer(cluster, acks=0) as producer:
        send_numbered(producer, ORDERS_0, 1, 2)
        producer.flush()
        assert producer.metrics.records == 2
    assert cluster.values(0) == numbers(1, 2)


# Faults


@pytest.mark.parametrize(
    "fault",
    [
        LOST_REPLY,
        LOST_REQUEST,
        SILENCE,
        NOT_LEADER,
        Fault(appends=True, code=7),
        Fault(appends=False, code=19),
        Fault(appends=True, code=20),
        Fault(appends=True, code=46),
        Fault(appends=False, code=3),
        Fault(appends=False, code=56),
    ],
    ids=[
        "lost reply",
        "lost request",
        "silence",
        "NOT_LEADER",
        "REQUEST_TIMED_OUT",
        "NOT_ENOUGH_REPLICAS",
        "AFTER_APPEND",
        "DUPLICATE",
        "UNKNOWN_TOPIC",
        "STORAGE_ERROR",
    ],
)
@pytest.mark.parametrize("position", [0, 1, 3])
def test_one_fault_neither_loses_nor_duplicates_nor_reorders(fault: Fault, position: int) -> None:
    cluster = FakeCluster()
    cluster.faults.extend([*[None] * position, fault])
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, *range(12), size=300_000)
        producer.flush()
        assert producer.metrics.records == 12
        assert (producer.metrics.retries > 0) == (fault.code != 46)
    assert cluster.values(0) == numbers(*range(12))


FAULTS = [
    None,
    None,
    None,
    LOST_REPLY,
    LOST_REQUEST,
    SILENCE,
    NOT_LEADER,
    Fault(appends=False, code=19),
    Fault(appends=True, code=7),
    Fault(appends=False, code=19, only=0),
    Fault(throttle_ms=500),
]


@settings(max_examples=150, deadline=None)
@given(
    faults=st.lists(st.sampled_from(FAULTS), max_size=40),
    plan=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([10, 100_000, 700_000])), min_size=1, max_size=40),
    moves=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=10),
)
def test_every_partition_holds_what_was_sent_once_and_in_order(
    faults: list[Fault | None], plan: list[tuple[int, int]], moves: list[tuple[int, int]]
) -> None:
    cluster = FakeCluster(partitions=4, brokers=2)
    cluster.faults.extend(faults)
    waiting = list(moves)

    def move_leader() -> None:
        if waiting and len(cluster.requests) % 2:
            partition, broker_id = waiting.pop()
            cluster.leaders[TopicPartition("orders", partition)] = broker_id

    cluster.before_produce = move_leader
    expected: dict[int, list[bytes]] = {partition: [] for partition in range(4)}
    with make_producer(cluster, delivery_timeout_ms=10_000_000) as producer:
        for number, (partition, size) in enumerate(plan):
            send_numbered(producer, TopicPartition("orders", partition), number, size=size)
            expected[partition] += numbers(number)
        producer.flush()
    assert {partition: cluster.values(partition) for partition in range(4)} == expected


def test_batches_follow_a_moved_leader_in_order() -> None:
    cluster = FakeCluster(brokers=2)
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        cluster.leaders[ORDERS_0] = 1
        send_numbered(producer, ORDERS_0, 2, 3, 4)
        producer.flush()
    assert cluster.values(0) == numbers(1, 2, 3, 4)
    assert [broker_id for broker_id, _ in cluster.requests][-1] == 1


def test_partition_without_leader_is_waited_for_while_others_are_served() -> None:
    cluster = FakeCluster()
    cluster.leaders[ORDERS_0] = -1
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        send_numbered(producer, ORDERS_1, 2)
        producer.poll()
        assert cluster.values(1) == numbers(2)
        cluster.leaders[ORDERS_0] = 0
        producer.flush()
    assert cluster.values(0) == numbers(1)


def test_broker_that_cannot_be_reached_for_a_while_is_tried_again() -> None:
    cluster = FakeCluster()
    refused = TransportError("Broker broker-0:9092 cannot be reached.", condition="CONNECTION_FAILED", retriable=True)
    cluster.borrow_errors.extend([refused] * 3)
    cluster.metadata_errors.extend([refused] * 2)
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
    assert cluster.values(0) == numbers(1)


def test_leader_is_asked_for_again_when_its_broker_cannot_be_reached() -> None:
    cluster = FakeCluster(brokers=2)
    gone = TransportError("Broker broker-0:9092 cannot be reached.", condition="CONNECTION_FAILED", retriable=True)
    cluster.borrow_errors.append(gone)
    with make_producer(cluster) as producer:
        assert producer.partition_count("orders") == 2
        cluster.leaders[ORDERS_0] = 1
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
    assert [broker_id for broker_id, _ in cluster.requests] == [1]


def test_throttled_broker_gets_nothing_until_the_time_is_over() -> None:
    cluster = FakeCluster()
    cluster.faults.append(Fault(throttle_ms=40_000))
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        started = cluster.clock.now
        send_numbered(producer, ORDERS_0, 2)
        producer.flush()
        assert 40 <= cluster.clock.now - started < 41
        assert producer.metrics.retries == 0


def test_answer_that_leaves_a_partition_out_is_not_taken_for_success(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster()
    usual = cluster.produce

    def forgetful(*args: Any) -> Any:
        answer = usual(*args)
        answer.responses = [] if len(cluster.requests) == 1 else answer.responses
        return answer

    monkeypatch.setattr(cluster, "produce", forgetful)
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        assert producer.metrics == ProducerMetrics(1, producer.metrics.bytes, 1, retries=1)
    assert cluster.values(0) == numbers(1)


# Stamps


def test_batch_encoded_with_its_stamp_is_sent_as_it_is() -> None:
    cluster = FakeCluster()
    with make_producer(cluster) as producer:
        for number in range(3):
            data = batch_of(b"%d" % number, b"b")
            stamp = producer.reserve(ORDERS_0, 2) if number % 2 else producer.next_stamp(ORDERS_0)
            assert stamp == SequenceStamp(4711, 0, 2 * number)
            patch_header(
                data,
                producer_id=stamp.producer_id,
                producer_epoch=stamp.producer_epoch,
                base_sequence=stamp.base_sequence,
            )
            producer.send(ORDERS_0, bytes(data), 2)
        producer.flush()
    assert cluster.values(0)[::2] == numbers(0, 1, 2)


def test_batch_with_another_stamp_is_refused() -> None:
    data = batch_of(b"a")
    patch_header(data, producer_id=4711, producer_epoch=0, base_sequence=9)
    with (
        make_producer(FakeCluster()) as producer,
        pytest.raises(
            ProtocolError, match=r"SEQUENCE_STAMP_MISMATCH\] orders-0: .*base_sequence=9\), but .*=0\) is due"
        ),
    ):
        producer.send(ORDERS_0, data, 1)


def test_record_count_that_is_not_the_header_s_is_refused() -> None:
    with (
        make_producer(FakeCluster()) as producer,
        pytest.raises(ProtocolError, match=r"RECORD_BATCH_INVALID\] orders-0: a batch said to hold 2 records has 1"),
    ):
        producer.send(ORDERS_0, batch_of(b"a"), 2)


def test_read_only_bytes_are_copied_for_their_stamp_and_not_changed() -> None:
    cluster = FakeCluster()
    data = bytes(batch_of(b"a"))
    unchanged = bytes(bytearray(data))
    with make_producer(cluster) as producer:
        producer.send(ORDERS_0, memoryview(data), 1)
        producer.flush()
    assert data == unchanged
    assert cluster.values(0) == [b"a"]


def test_flush_refuses_when_a_reservation_was_not_used() -> None:
    with make_producer(FakeCluster()) as producer:
        producer.reserve(ORDERS_0, 5)
        with pytest.raises(ProtocolError, match=r"SEQUENCE_RESERVATION_UNUSED\] orders-0: sequences from 0 on"):
            producer.flush()


# Errors


def failure(cluster: FakeCluster, *, count: int = 1, **options: Any) -> ConnectorError:
    def deliver() -> None:
        with make_producer(cluster, **options) as producer:
            send_numbered(producer, ORDERS_0, *range(count), size=300_000)
            producer.flush()

    with pytest.raises(ConnectorError) as raised:
        deliver()
    return raised.value


def test_message_too_large_names_the_option_and_the_topic_s_limit_and_the_sizes() -> None:
    cluster = FakeCluster()
    cluster.faults.append(Fault(appends=False, code=10))
    error = failure(cluster, count=2)
    assert isinstance(error, DeliveryError)
    size = len(batch_of(b"0", size=300_000))
    assert str(error) == (
        "[MESSAGE_TOO_LARGE] Writing to orders-0 at broker-0:9092 failed: the broker refused a record batch of 1 "
        f"records and {size} bytes with MESSAGE_TOO_LARGE (10). Option 'kafka.max.request.size' allows 1048576 bytes; "
        "the topic allows less. Records of orders-0: delivered 0, not delivered 2, unknown 0. Records of this task, "
        "all topic-partitions: delivered 0, not delivered 2, unknown 0. Hint: raise max.message.bytes of the topic "
        "(message.max.bytes of the brokers is its default), or lower option 'kafka.max.request.size' so that record "
        "batches stay below it."
    )


def test_batch_above_max_request_size_is_not_sent() -> None:
    cluster = FakeCluster()
    error = failure(cluster, max_request_size=1_000)
    assert re.search(
        r"^\[RECORD_BATCH_TOO_LARGE\] .* has 300\d+ bytes; option 'kafka.max.request.size' allows 1000", str(error)
    )
    assert cluster.requests == []


def test_refused_access_is_an_access_error_naming_topic_and_counts() -> None:
    cluster = FakeCluster()
    cluster.faults.extend([None, Fault(appends=False, code=29)])
    error = failure(cluster, count=2)
    assert isinstance(error, AccessError)
    assert str(error).startswith("[TOPIC_AUTHORIZATION_FAILED] Writing to orders-0 at broker-0:9092 failed: ")
    assert "Records of orders-0: delivered 1, not delivered 1, unknown 0." in str(error)
    assert str(error).endswith("Hint: grant the principal WRITE on topic 'orders'.")


def test_invalid_records_are_named_in_the_broker_s_words() -> None:
    cluster = FakeCluster()
    bad = tuple((index, "no key") for index in range(7))
    cluster.faults.append(
        Fault(appends=False, code=87, message="One or more records have been rejected", record_errors=bad)
    )
    error = failure(cluster)
    assert error.condition == "INVALID_RECORD"
    assert 'The broker said: "One or more records have been rejected".' in str(error)
    assert "Refused: record 0 of the batch: no key; record 1 of the batch: no key;" in str(error)
    assert "; and 2 more. " in str(error)


@pytest.mark.parametrize(("code", "name"), [(59, "UNKNOWN_PRODUCER_ID"), (47, "INVALID_PRODUCER_EPOCH")])
def test_forgotten_producer_is_fatal_and_the_text_says_what_is_unknown(code: int, name: str) -> None:
    cluster = FakeCluster()
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
    cluster = FakeCluster()
    cluster.faults.extend([None, Fault(appends=False, code=45)])
    error = failure(cluster, count=2)
    assert error.condition == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert "Sequence 1 does not follow what the broker holds of producer 4711 (epoch 0)" in str(error)


def test_fatal_answer_for_one_partition_counts_the_others_of_the_same_answer() -> None:
    cluster = FakeCluster(partitions=3)
    cluster.latency_s = 0.01
    cluster.faults.extend([None, Fault(appends=False, code=87, only=1)])
    with make_producer(cluster) as producer:
        for partition in range(3):
            send_numbered(producer, TopicPartition("orders", partition), partition)
        with pytest.raises(DeliveryError, match=r"all topic-partitions: delivered 2, not delivered 1, unknown 0\."):
            producer.flush()


def test_delivery_is_given_up_at_its_deadline_naming_broker_and_last_failure() -> None:
    cluster = FakeCluster()
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
    cluster = FakeCluster()
    cluster.faults.extend([SILENCE] * 1_000)
    started = cluster.clock.now
    error = failure(cluster, delivery_timeout_ms=50_000, request_timeout_ms=20_000)
    assert 50 <= cluster.clock.now - started < 51
    assert error.condition == "DELIVERY_TIMED_OUT"
    assert "delivered 0, not delivered 0, unknown 1" in str(error)
    assert len(cluster.requests) == 3
    assert all(connection.closed for connection in cluster.connections)


def test_topic_that_never_was_fails_after_15_seconds_naming_it() -> None:
    cluster = FakeCluster()
    started = cluster.clock.now
    with make_producer(cluster) as producer:
        producer.send(TopicPartition("typo", 0), batch_of(b"a"), 1)
        with pytest.raises(
            DeliveryError, match=r"^\[UNKNOWN_TOPIC\] Writing to typo-0 failed: topic 'typo' does not exist, or"
        ):
            producer.flush()
    assert 15 <= cluster.clock.now - started < 17


def test_partition_that_is_not_there_fails_after_15_seconds_telling_how_many_there_are() -> None:
    cluster = FakeCluster(partitions=2)
    with make_producer(cluster) as producer:
        producer.send(TopicPartition("orders", 2), batch_of(b"a"), 1)
        with pytest.raises(
            DeliveryError,
            match=r"^\[UNKNOWN_PARTITION\] Writing to orders-2 failed: topic 'orders' has no partition 2; it has 2,",
        ):
            producer.flush()


def test_topic_that_is_known_late_is_written_to() -> None:
    cluster = FakeCluster()
    cluster.topic_codes.extend([3] * 5)
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
    assert cluster.values(0) == numbers(1)


def test_topic_that_was_there_is_waited_for_until_the_delivery_deadline() -> None:
    cluster = FakeCluster()
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
    cluster = FakeCluster()
    cluster.topic_codes.append(29)
    error = failure(cluster)
    assert isinstance(error, AccessError)
    assert str(error).startswith(
        "[TOPIC_AUTHORIZATION_FAILED] Writing to orders-0 failed, looking up its leader (records of this task: "
        "delivered 0, not delivered 1, unknown 0): Looking up topic 'orders' failed"
    )
    assert "WRITE" in str(error)


def test_failure_that_waiting_does_not_cure_ends_delivery_at_once() -> None:
    cluster = FakeCluster()
    cluster.borrow_errors.append(
        TransportError("The certificate of broker-0:9092 was not accepted.", condition="TLS_FAILED", hint="check it.")
    )
    started = cluster.clock.now
    error = failure(cluster)
    assert isinstance(error, DeliveryError)
    assert cluster.clock.now == started
    assert str(error).startswith(
        "[TLS_FAILED] Writing to orders-0 failed: connecting to broker-0:9092: The certificate of broker-0:9092 was not"
    )


def test_refused_credentials_end_delivery_at_once() -> None:
    cluster = FakeCluster()
    cluster.borrow_errors.append(
        AccessError("broker-0:9092 refused the user.", code=58, condition="SASL_AUTHENTICATION_FAILED")
    )
    assert str(failure(cluster)) == (
        "[SASL_AUTHENTICATION_FAILED] Writing to orders-0 failed, connecting to broker-0:9092 (records of this task: "
        "delivered 0, not delivered 1, unknown 0): broker-0:9092 refused the user."
    )


def test_request_is_given_up_when_the_time_of_a_batch_in_it_is_over() -> None:
    cluster = FakeCluster()
    cluster.faults.extend([None, SILENCE])
    with make_producer(cluster, delivery_timeout_ms=40_000, request_timeout_ms=100_000) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        started = cluster.clock.now
        send_numbered(producer, ORDERS_0, 2)
        cluster.clock.now += 5
        send_numbered(producer, ORDERS_1, 3)
        with pytest.raises(DeliveryError, match="orders-0"):
            producer.flush()
        assert 40 <= cluster.clock.now - started < 41


def test_producer_id_that_is_refused_is_an_access_error() -> None:
    cluster = FakeCluster()
    cluster.init_codes.append(31)
    error = failure(cluster)
    assert isinstance(error, AccessError)
    assert "Nothing was written." in str(error)


def test_cluster_without_producer_ids_is_told_with_the_option_to_set() -> None:
    cluster = FakeCluster()
    cluster.gives_producer_ids = False
    error = failure(cluster)
    assert isinstance(error, ProtocolError)
    assert "set option 'kafka.enable.idempotence' to false" in str(error)


def test_producer_id_is_asked_for_again_while_the_broker_cannot_give_one() -> None:
    cluster = FakeCluster()
    cluster.init_codes.extend([15, 14])
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
    assert cluster.values(0) == numbers(1)


def test_every_call_after_an_error_raises_the_same_error() -> None:
    cluster = FakeCluster()
    cluster.latency_s = 0.01
    cluster.faults.append(Fault(appends=False, code=87))
    producer = make_producer(cluster)
    send_numbered(producer, ORDERS_0, 1)
    with pytest.raises(DeliveryError) as raised:
        producer.flush()
    for call in (
        producer.flush,
        producer.poll,
        lambda: producer.reserve(ORDERS_0, 1),
        lambda: producer.next_stamp(ORDERS_0),
        lambda: producer.partition_count("orders"),
        lambda: send_numbered(producer, ORDERS_0, 2),
    ):
        with pytest.raises(DeliveryError) as again:
            call()
        assert again.value is raised.value
    assert producer.metrics.records == 0
    producer.close()


def test_interrupt_makes_the_producer_unusable_and_closes_its_connections() -> None:
    cluster = FakeCluster()
    producer = make_producer(cluster)
    send_numbered(producer, ORDERS_0, 1)

    def interrupt() -> None:
        raise KeyboardInterrupt

    cluster.before_produce = interrupt
    with pytest.raises(KeyboardInterrupt):
        send_numbered(producer, ORDERS_0, 2, 3, size=400_000)
    with pytest.raises(ProtocolError, match=r"PRODUCER_INTERRUPTED.*KeyboardInterrupt.*delivered 1, "):
        producer.flush()
    assert all(connection.closed for connection in cluster.connections)


# Life cycle


def test_close_gives_connections_back_and_may_be_called_again() -> None:
    cluster = FakeCluster(brokers=2)
    producer = make_producer(cluster)
    send_numbered(producer, ORDERS_0, 1)
    send_numbered(producer, ORDERS_1, 1)
    producer.flush()
    producer.close()
    producer.close()
    assert sorted(connection.broker_id for connection in cluster.given_back) == [0, 1]
    with pytest.raises(ProtocolError, match="PRODUCER_CLOSED"):
        producer.poll()


def test_nothing_is_connected_or_asked_before_the_first_batch() -> None:
    cluster = FakeCluster()
    with make_producer(cluster) as producer:
        producer.flush()
        producer.poll()
    assert cluster.connections == []
    assert cluster.lookups == 0


def test_partition_count_is_asked_once() -> None:
    cluster = FakeCluster(partitions=7)
    with make_producer(cluster) as producer:
        assert [producer.partition_count("orders") for _ in range(3)] == [7, 7, 7]
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
    assert cluster.lookups == 1


def test_partition_count_of_a_topic_that_is_not_there_fails_after_15_seconds() -> None:
    cluster = FakeCluster()
    started = cluster.clock.now
    with make_producer(cluster) as producer, pytest.raises(DeliveryError, match=r"\[UNKNOWN_TOPIC\] .*'typo'"):
        producer.partition_count("typo")
    assert 15 <= cluster.clock.now - started < 17


def test_partition_count_waits_for_a_topic_that_appears() -> None:
    cluster = FakeCluster(partitions=3)
    cluster.topic_codes.extend([3, 5])
    with make_producer(cluster) as producer:
        assert producer.partition_count("orders") == 3


# Batches too large for their topic


def large_batches(count: int, records: int = 40) -> list[tuple[bytearray, list[bytes]]]:
    """Give batches of records whose sizes differ much, and their values."""
    found = []
    for number in range(count):
        values = [b"%d-%d" % (number, row) + b"." * (row * row) for row in range(records)]
        found.append((batch_of(*values), [value.rstrip(b".") for value in values]))
    return found


@pytest.mark.parametrize("idempotence", [True, False])
@pytest.mark.parametrize("latency_s", [0.0, 0.01])
def test_batches_too_large_for_their_topic_are_cut_and_every_record_is_there_once(
    latency_s: float, *, idempotence: bool
) -> None:
    cluster = FakeCluster()
    cluster.max_message_bytes, cluster.latency_s = 4_000, latency_s
    sent = large_batches(8)
    with make_producer(cluster, idempotence=idempotence) as producer:
        for data, values in sent:
            producer.send(ORDERS_0, data, len(values))
            producer.send(ORDERS_1, batch_of(values[0]), 1)
        producer.flush()
        metrics = producer.metrics
    expected, found = [value for _, values in sent for value in values], cluster.values(0)
    # Without sequences nothing keeps a batch behind from being taken before one that is cut.
    assert found == expected if idempotence else sorted(found) == sorted(expected)
    assert cluster.values(1) == [values[0] for _, values in sent]
    assert metrics.records == 8 * 41
    # A refusal costs no pause.
    assert cluster.clock.now - 1_000 < 1


def test_batches_after_a_refused_one_are_cut_before_they_are_sent() -> None:
    cluster = FakeCluster()
    cluster.max_message_bytes = 4_000
    (first, values), *others = large_batches(4)
    with make_producer(cluster) as producer:
        producer.send(ORDERS_0, first, len(values))
        producer.flush()
        before = len(cluster.requests)
        for data, of_batch in others:
            producer.send(ORDERS_0, data, len(of_batch))
        producer.flush()
    sizes = [
        len(bytes(entry.records))
        for _, request in cluster.requests[before:]
        for topic in request.topic_data
        for entry in topic.partition_data
    ]
    assert max(sizes) <= 4_000
    assert cluster.values(0) == [*values, *(value for _, more in others for value in more)]


def test_sequences_of_parts_go_on_where_those_of_the_whole_would() -> None:
    cluster = FakeCluster()
    cluster.max_message_bytes = 4_000
    (data, values), (later, more) = large_batches(2)
    with make_producer(cluster) as producer:
        # Reserved as wholes, as a caller does that encodes with stamps.
        for records in (len(values), len(more)):
            producer.reserve(ORDERS_0, records)
        producer.send(ORDERS_0, data, len(values))
        producer.send(ORDERS_0, later, len(more))
        producer.flush()
        assert producer.next_stamp(ORDERS_0).base_sequence == len(values) + len(more)
    assert cluster.values(0) == [*values, *more]
    assert cluster.logs[ORDERS_0].last_sequences[-1][1] == len(values) + len(more) - 1


@pytest.mark.parametrize("fault", [LOST_REPLY, LOST_REQUEST, NOT_LEADER])
@pytest.mark.parametrize("position", range(1, 12))
def test_a_fault_while_batches_are_cut_neither_loses_nor_doubles(fault: Fault, position: int) -> None:
    cluster = FakeCluster()
    cluster.max_message_bytes, cluster.latency_s = 4_000, 0.001
    cluster.faults.extend([*[None] * position, fault])
    sent = large_batches(5)
    with make_producer(cluster) as producer:
        for data, values in sent:
            producer.send(ORDERS_0, data, len(values))
        producer.flush()
    assert cluster.values(0) == [value for _, values in sent for value in values]


def test_a_batch_that_is_in_the_log_already_is_not_written_again_in_parts() -> None:
    cluster = FakeCluster()
    ((data, values),) = large_batches(1)
    # Written, and the topic's limit lowered before it is sent again.
    cluster.faults.extend([LOST_REPLY, Fault(appends=False, code=10)])
    with make_producer(cluster) as producer:
        producer.send(ORDERS_0, data, len(values))
        with pytest.raises(DeliveryError, match=r"^\[OUT_OF_ORDER_SEQUENCE_NUMBER\] .* not delivered 0, unknown 40"):
            producer.flush()
    assert cluster.values(0) == values


def test_that_a_topic_takes_less_is_said_once_with_the_option_to_set(caplog: pytest.LogCaptureFixture) -> None:
    cluster = FakeCluster()
    cluster.max_message_bytes = 4_000
    with make_producer(cluster) as producer:
        for data, values in large_batches(3):
            producer.send(ORDERS_0, data, len(values))
        producer.flush()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "Topic 'orders' does not take a record batch of " in said[0]
    assert "'kafka.batch.size'" in said[0]
