"""The producer against a cluster in memory: faults between request and answer, moving leaders, stamps, life cycle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.fakes.clock import Clock
from kit.fakes.logs import PartitionLog
from kit.fakes.memory_cluster import (
    LOST_REPLY,
    LOST_REQUEST,
    NOT_LEADER,
    ORDERS_0,
    ORDERS_1,
    SILENCE,
    Fault,
    MemoryCluster,
    batch_of,
    make_producer,
    numbers,
    partitions_of,
    send_numbered,
)
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.metadata import ClusterMetadata
from pyspark_kafka._client.client.produce.batches.producer_batch import ProducerBatch
from pyspark_kafka._client.client.produce.batches.state import ProducerState
from pyspark_kafka._client.client.produce.producer import ProducerMetrics
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.outage import may_be_outage
from pyspark_kafka.errors import ConnectorError, DeliveryError, ProtocolError, TransportError
from pyspark_kafka.records import patch_header

# Delivery


def test_records_arrive_in_order_and_are_counted() -> None:
    cluster = MemoryCluster()
    with make_producer(cluster) as producer:
        for number in range(30):
            producer.send_batch(TopicPartition("orders", number % 2), batch_of(b"%d" % number, b"more"), 2)
        producer.flush()
        assert producer.metrics.records == 60
        assert producer.metrics.retries == 0
    for number in (0, 1):
        assert cluster.values(number)[::2] == numbers(*range(number, 30, 2))


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_session_that_is_old_takes_no_more_batches_and_loses_none(acks: int) -> None:
    """The connection goes back when all responses are there; another one continues."""
    cluster = MemoryCluster(partitions=1)
    cluster.latency_s = 0.05
    with make_producer(cluster, acks=acks, idempotence=acks == -1) as producer:
        for number in range(1, 31):
            send_numbered(producer, ORDERS_0, number)
            if number % 10 == 0:
                cluster.opened[-1].session_is_old = True
        producer.flush()
        assert producer.metrics.retries == 0
    assert cluster.values(0) == numbers(*range(1, 31))
    assert len(cluster.given_back) == len(cluster.opened) >= 2


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_every_version_delivers(version: int) -> None:
    cluster = MemoryCluster()
    cluster.produce_version = version
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1, 2, 3)
        producer.flush()
    assert cluster.values(0) == numbers(1, 2, 3)


def test_small_batches_of_many_partitions_share_a_request() -> None:
    cluster = MemoryCluster(partitions=50)
    cluster.latency_s = 0.01
    with make_producer(cluster) as producer:
        for number in range(50):
            send_numbered(producer, TopicPartition("orders", number), number)
        producer.flush()
    assert [len(partitions_of(request)) for _, request in cluster.requests] == [1, 49]


def test_request_has_at_most_one_batch_a_partition_and_at_most_max_request_size() -> None:
    cluster = MemoryCluster(partitions=3)
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
def test_requests_in_flight_are_bounded(max_in_flight: int) -> None:
    cluster = MemoryCluster(partitions=12)
    cluster.faults.extend([SILENCE] * 100)
    with make_producer(cluster, max_in_flight=max_in_flight) as producer:
        for partition in range(12):
            send_numbered(producer, TopicPartition("orders", partition), 1, size=500_000)
        assert len(cluster.requests) == max_in_flight


def test_send_blocks_while_the_buffer_is_full() -> None:
    cluster = MemoryCluster()
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
    cluster = MemoryCluster()
    with make_producer(cluster, buffer_bytes=10) as producer:
        send_numbered(producer, ORDERS_0, 1, 2)
        producer.flush()
    assert cluster.values(0) == numbers(1, 2)


def test_poll_sends_what_waits_for_company() -> None:
    cluster = MemoryCluster()
    cluster.latency_s = 0.01
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        send_numbered(producer, ORDERS_1, 2)
        assert len(cluster.requests) == 1
        producer.poll()
        assert cluster.values(1) == numbers(2)


@pytest.mark.parametrize("max_in_flight", [1, 5])
def test_responses_make_room_for_new_batches(max_in_flight: int) -> None:
    cluster = MemoryCluster(partitions=1)
    with make_producer(cluster, max_in_flight=max_in_flight) as producer:
        for number in range(12):
            producer.send_batches([(ORDERS_0, batch_of(b"%d" % number), 1)])
            assert cluster.values(0) == numbers(*range(number + 1))
        assert producer.metrics.records >= 11


def test_acks_1_sends_no_sequence_and_asks_for_no_producer_id() -> None:
    cluster = MemoryCluster()
    cluster.init_codes.append(31)  # would fail
    with make_producer(cluster, acks=1) as producer:
        send_numbered(producer, ORDERS_0, 1, 2)
        producer.flush()
    assert cluster.values(0) == numbers(1, 2)
    assert {request.acks for _, request in cluster.requests} == {1}
    assert not cluster.sequences(0)


def test_acks_0_waits_for_no_response() -> None:
    cluster = MemoryCluster()
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
def test_records_are_there_once_and_in_order_after_one_fault(fault: Fault, position: int) -> None:
    cluster = MemoryCluster()
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


@given(
    faults=st.lists(st.sampled_from(FAULTS), max_size=40),
    plan=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([10, 100_000, 700_000]), st.booleans()), min_size=1, max_size=40
    ),
    moves=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=10),
    latency_s=st.sampled_from([0.0, 0.01]),
)
def test_every_partition_holds_what_was_sent_once_and_in_order(
    faults: list[Fault | None], plan: list[tuple[int, int, bool]], moves: list[tuple[int, int]], latency_s: float
) -> None:
    cluster = MemoryCluster(partitions=4, brokers=2)
    cluster.latency_s = latency_s
    cluster.faults.extend(faults)
    waiting = list(moves)

    def move_leader() -> None:
        if waiting and len(cluster.requests) % 2:
            partition, broker_id = waiting.pop()
            cluster.leaders[TopicPartition("orders", partition)] = broker_id

    cluster.before_produce = move_leader
    expected: dict[int, list[bytes]] = {partition: [] for partition in range(4)}
    with make_producer(cluster, delivery_timeout_ms=10_000_000) as producer:
        for number, (partition, size, at_once) in enumerate(plan):
            topic_partition = TopicPartition("orders", partition)
            if at_once:
                # As the lane of a continuous query does.
                producer.send_batches([(topic_partition, batch_of(b"%d" % number, size=size), 1)])
                cluster.clock.sleep(0.003)
            else:
                send_numbered(producer, topic_partition, number, size=size)
            expected[partition] += numbers(number)
        producer.flush()
    assert {partition: cluster.values(partition) for partition in range(4)} == expected


def test_batches_follow_a_moved_leader_in_order() -> None:
    cluster = MemoryCluster(brokers=2)
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        cluster.leaders[ORDERS_0] = 1
        send_numbered(producer, ORDERS_0, 2, 3, 4)
        producer.flush()
    assert cluster.values(0) == numbers(1, 2, 3, 4)
    assert [broker_id for broker_id, _ in cluster.requests][-1] == 1


def test_partition_without_leader_is_waited_for_while_others_are_served() -> None:
    cluster = MemoryCluster()
    cluster.leaders[ORDERS_0] = -1
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        send_numbered(producer, ORDERS_1, 2)
        producer.poll()
        assert cluster.values(1) == numbers(2)
        cluster.leaders[ORDERS_0] = 0
        producer.flush()
    assert cluster.values(0) == numbers(1)


class SlowToElect(MemoryCluster):
    """A cluster without a leader of one partition, which notes until when it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.leaders[ORDERS_0] = -1
        self.asked_until: list[float] = []

    def fetch_metadata(self, topics: Iterable[str] | None, deadline: Deadline | None = None) -> ClusterMetadata:
        assert deadline is not None
        self.asked_until.append(self.clock.now + deadline.remaining_s())
        return super().fetch_metadata(topics, deadline)


def test_leader_is_looked_up_for_no_longer_than_its_batch_may_take() -> None:
    cluster = SlowToElect()
    began = cluster.clock.now
    with make_producer(cluster, request_timeout_ms=5_000, delivery_timeout_ms=10_000) as producer:
        send_numbered(producer, ORDERS_0, 1)
        with pytest.raises(DeliveryError, match="DELIVERY_TIMED_OUT"):
            producer.flush()
    assert len(cluster.asked_until) > 1
    # The shortest deadline of a request is a millisecond.
    assert all(until <= began + 10.001 for until in cluster.asked_until)


def test_broker_that_cannot_be_reached_for_a_while_is_tried_again() -> None:
    cluster = MemoryCluster()
    refused = TransportError("Broker broker-0:9092 cannot be reached.", condition="CONNECTION_FAILED", retriable=True)
    cluster.borrow_errors.extend([refused] * 3)
    cluster.metadata_errors.extend([refused] * 2)
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
    assert cluster.values(0) == numbers(1)


def test_pause_that_ends_while_the_producer_looks_at_its_clock_is_not_slept_through() -> None:
    """Once it is over, nothing else wakes the producer before the batch expires."""
    gone = TransportError("Broker broker-0:9092 cannot be reached.", condition="CONNECTION_FAILED", retriable=True)
    for tick in range(1, 40):
        cluster = MemoryCluster(partitions=1)
        # Time passes at each look, as on a busy machine.
        cluster.clock = Clock(tick=tick / 1_000)
        cluster.borrow_errors.extend([gone] * 4)
        with make_producer(cluster) as producer:
            send_numbered(producer, ORDERS_0, 1)
            producer.flush()
        assert cluster.clock.now < 1_030, tick


def test_leader_is_asked_for_again_when_its_broker_cannot_be_reached() -> None:
    cluster = MemoryCluster(brokers=2)
    gone = TransportError("Broker broker-0:9092 cannot be reached.", condition="CONNECTION_FAILED", retriable=True)
    cluster.borrow_errors.append(gone)
    with make_producer(cluster) as producer:
        assert producer.partition_count("orders") == 2
        cluster.leaders[ORDERS_0] = 1
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
    assert [broker_id for broker_id, _ in cluster.requests] == [1]


@pytest.mark.parametrize("stored", [False, True], ids=["not stored", "stored"])
def test_silent_broker_is_left_as_soon_as_another_one_leads(stored: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = MemoryCluster(brokers=2)
    usual = cluster.fetch_metadata

    def after_an_election(*args: Any) -> Any:
        cluster.leaders[ORDERS_0] = 1
        return usual(*args)

    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        started = cluster.clock.now
        cluster.faults.append(Fault(appends=stored, answer=False))
        monkeypatch.setattr(cluster, "fetch_metadata", after_an_election)
        send_numbered(producer, ORDERS_0, 2, 3)
        producer.flush()
    assert cluster.clock.now - started < 5
    # What it has stored it had replicated; a second time it is dropped by its sequence.
    assert cluster.values(0) == numbers(1, 2, 3)
    assert [broker_id for broker_id, _ in cluster.requests][-1] == 1


def test_silent_broker_that_still_leads_is_waited_for() -> None:
    cluster = MemoryCluster(brokers=2)
    cluster.latency_s = 20.0
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        assert producer.metrics.retries == 0
    assert len(cluster.requests) == 1
    # Once for the leader, and then every two seconds.
    assert 8 <= cluster.lookups <= 12


def test_silent_broker_is_waited_for_while_nobody_says_who_leads() -> None:
    cluster = MemoryCluster(brokers=2)
    refused = TransportError("Broker broker-1:9092 cannot be reached.", condition="CONNECTION_FAILED", retriable=True)
    cluster.latency_s = 5.0
    with make_producer(cluster) as producer:
        assert producer.partition_count("orders") == 2
        cluster.metadata_errors.extend([refused] * 2)
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        assert producer.metrics.retries == 0
    assert not cluster.metadata_errors


def test_throttled_broker_gets_nothing_until_the_time_is_over() -> None:
    cluster = MemoryCluster()
    cluster.faults.append(Fault(throttle_ms=40_000))
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        started = cluster.clock.now
        send_numbered(producer, ORDERS_0, 2)
        producer.flush()
        assert 40 <= cluster.clock.now - started < 41
        assert producer.metrics.retries == 0


@pytest.mark.parametrize("partitions", [1, 10])
def test_slow_link_delivers_all_that_waits_in_line(partitions: int) -> None:
    cluster = MemoryCluster(partitions=partitions)
    # A request of 1 MB takes 25 of the 30 s of a request, and all of them more than the 120 s of a delivery.
    cluster.bytes_per_s = 40_000
    began = cluster.clock.now
    with make_producer(cluster) as producer:
        for number in range(20):
            send_numbered(producer, TopicPartition("orders", number % partitions), number, size=1_000_000)
        producer.flush()
        assert producer.metrics.retries == 0
    assert cluster.clock.now - began == pytest.approx(500, rel=0.01)
    assert sorted(value for partition in range(partitions) for value in cluster.values(partition)) == sorted(
        numbers(*range(20))
    )


@pytest.mark.parametrize("fault", [SILENCE, NOT_LEADER], ids=["silent", "refusing"])
def test_slow_link_does_not_hide_a_broker_that_fails(fault: Fault) -> None:
    cluster = MemoryCluster(partitions=1)
    cluster.bytes_per_s = 40_000
    cluster.faults.extend([Fault(), *[fault] * 1_000])
    began = cluster.clock.now
    with make_producer(cluster) as producer:
        for number in range(20):
            send_numbered(producer, ORDERS_0, number, size=1_000_000)
        with pytest.raises(DeliveryError, match="DELIVERY_TIMED_OUT"):
            producer.flush()
    assert 100 <= cluster.clock.now - began <= 160


def test_delivery_that_fails_under_a_quota_names_it_and_does_not_wait_for_days() -> None:
    cluster = MemoryCluster()
    cluster.faults.extend([Fault(throttle_ms=2**31 - 1)] * 2)
    began = cluster.clock.now
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        send_numbered(producer, ORDERS_0, 2)
        assert producer._loop.why_slow().startswith("broker-0:9092 throttles this client by a quota, and wants no")
        with pytest.raises(DeliveryError, match=r"DELIVERY_TIMED_OUT.*broker-0:9092 throttles this client") as caught:
            producer.flush()
    assert "producer_byte_rate" in caught.value.hint
    assert cluster.clock.now - began < 200


def test_batch_in_flight_behind_a_throttled_response_is_given_up_at_some_time() -> None:
    cluster = MemoryCluster()
    cluster.latency_s = 0.1
    cluster.faults.extend([Fault(throttle_ms=2**31 - 1), *[SILENCE] * 100])
    began = cluster.clock.now
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        send_numbered(producer, ORDERS_1, 2)
        producer.poll()
        assert len(cluster.requests) == 2
        with pytest.raises(DeliveryError, match="DELIVERY_TIMED_OUT"):
            producer.flush()
    assert cluster.clock.now - began < 400


def test_response_that_leaves_a_partition_out_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = MemoryCluster()
    usual = cluster.produce

    def forgetful(*args: Any) -> Any:
        answer = usual(*args)
        return answer._replace(partitions=[]) if len(cluster.requests) == 1 else answer

    monkeypatch.setattr(cluster, "produce", forgetful)
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
        assert producer.metrics == ProducerMetrics(1, producer.metrics.bytes, 1, retries=1)
    assert cluster.values(0) == numbers(1)


# Stamps


def test_batch_with_a_stamp_is_refused() -> None:
    data = batch_of(b"a")
    patch_header(data, producer_id=4711, producer_epoch=0, base_sequence=9)
    with (
        make_producer(MemoryCluster()) as producer,
        pytest.raises(
            ProtocolError,
            match=r"SEQUENCE_STAMP_MISMATCH\] orders-0: .*the sequence 9 of producer 4711, epoch 0; .* got 0 of",
        ),
    ):
        producer.send_batch(ORDERS_0, data, 1)


def test_record_count_that_is_not_the_header_s_is_refused() -> None:
    with (
        make_producer(MemoryCluster()) as producer,
        pytest.raises(ProtocolError, match=r"RECORD_BATCH_INVALID\] orders-0: a batch said to hold 2 records has 1"),
    ):
        producer.send_batch(ORDERS_0, batch_of(b"a"), 2)


def test_read_only_bytes_are_copied_for_their_stamp_and_not_changed() -> None:
    cluster = MemoryCluster()
    data = bytes(batch_of(b"a"))
    unchanged = bytes(bytearray(data))
    with make_producer(cluster) as producer:
        producer.send_batch(ORDERS_0, memoryview(data), 1)
        producer.flush()
    assert data == unchanged
    assert cluster.values(0) == [b"a"]


# Life cycle


def test_producer_settles_when_all_that_is_in_flight_has_its_response_and_sends_nothing_more() -> None:
    cluster = MemoryCluster()
    cluster.latency_s = 1.5
    with make_producer(cluster) as producer:
        # The first batch of a partition travels alone.
        send_numbered(producer, ORDERS_0, 1, 2)
        began_at = cluster.clock.now
        assert producer.settle(5.0)
        assert cluster.clock.now - began_at == pytest.approx(1.5, abs=0.01)
    assert len(cluster.requests) == 1
    assert cluster.values(0) == numbers(1)


@pytest.mark.parametrize("fault", [SILENCE, LOST_REPLY])
def test_producer_does_not_settle_while_a_write_has_no_response(fault: Fault) -> None:
    cluster = MemoryCluster()
    cluster.faults.append(fault)
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        began_at = cluster.clock.now
        assert not producer.settle(5.0)
        assert cluster.clock.now - began_at <= 5.01


def test_throttled_producer_does_not_wait_longer_to_settle() -> None:
    cluster = MemoryCluster()
    cluster.latency_s = 0.5
    cluster.faults += [Fault(throttle_ms=40_000), SILENCE]
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        send_numbered(producer, ORDERS_1, 2)
        producer.poll()
        began_at = cluster.clock.now
        assert not producer.settle(5.0)
        assert cluster.clock.now - began_at == pytest.approx(5.0, abs=0.01)
    assert len(cluster.requests) == 2


def test_close_gives_connections_back_and_may_be_called_again() -> None:
    cluster = MemoryCluster(brokers=2)
    producer = make_producer(cluster)
    send_numbered(producer, ORDERS_0, 1)
    send_numbered(producer, ORDERS_1, 1)
    producer.flush()
    producer.close()
    producer.close()
    assert sorted(connection.broker_id for connection in cluster.given_back) == [0, 1]
    with pytest.raises(ProtocolError, match="PRODUCER_CLOSED"):
        producer.poll()


def test_producer_connects_to_nothing_before_the_first_batch() -> None:
    cluster = MemoryCluster()
    with make_producer(cluster) as producer:
        producer.flush()
        producer.poll()
    assert cluster.opened == []
    assert cluster.lookups == 0


def test_partition_count_is_asked_once() -> None:
    cluster = MemoryCluster(partitions=7)
    with make_producer(cluster) as producer:
        assert [producer.partition_count("orders") for _ in range(3)] == [7, 7, 7]
        send_numbered(producer, ORDERS_0, 1)
        producer.flush()
    assert cluster.lookups == 1


def test_partition_count_of_a_topic_that_is_not_there_fails_after_15_seconds() -> None:
    cluster = MemoryCluster()
    started = cluster.clock.now
    with make_producer(cluster) as producer, pytest.raises(DeliveryError, match=r"\[UNKNOWN_TOPIC\] .*'typo'"):
        producer.partition_count("typo")
    assert 15 <= cluster.clock.now - started < 17


def test_partition_count_waits_for_a_topic_that_appears() -> None:
    cluster = MemoryCluster(partitions=3)
    cluster.topic_codes.extend([3, 5])
    with make_producer(cluster) as producer:
        assert producer.partition_count("orders") == 3


# Longer than kafka.delivery.timeout.ms.
PAUSE_S = 121


@pytest.mark.parametrize("idempotence", [True, False])
def test_a_pause_of_the_caller_is_not_counted_against_the_brokers(idempotence: bool) -> None:
    cluster = MemoryCluster()
    cluster.latency_s = 0.01
    producer = make_producer(cluster, idempotence=idempotence)
    # The second batch waits for the first one, whose answer arrives while nobody listens.
    send_numbered(producer, ORDERS_0, 1, 2, size=600_000)
    cluster.clock.now += PAUSE_S
    producer.flush()
    assert cluster.values(0) == numbers(1, 2)


def test_small_batches_that_wait_for_company_are_sent_after_a_pause() -> None:
    cluster = MemoryCluster()
    cluster.latency_s = 0.01
    producer = make_producer(cluster)
    send_numbered(producer, ORDERS_0, 1)
    send_numbered(producer, ORDERS_1, 2)
    cluster.clock.now += PAUSE_S
    send_numbered(producer, ORDERS_0, 3)
    cluster.clock.now += PAUSE_S
    producer.flush()
    assert (cluster.values(0), cluster.values(1)) == (numbers(1, 3), numbers(2))


@pytest.mark.parametrize("fault", [LOST_REQUEST, LOST_REPLY, SILENCE])
def test_batches_in_flight_are_sent_again_after_the_connection_broke_in_a_pause(fault: Fault) -> None:
    cluster = MemoryCluster()
    cluster.latency_s = 0.01
    cluster.faults.append(fault)
    producer = make_producer(cluster)
    send_numbered(producer, ORDERS_0, 1)
    cluster.clock.now += PAUSE_S
    producer.flush()
    assert cluster.values(0) == numbers(1)
    assert producer.metrics.retries == 1


def test_partition_looked_up_before_a_pause_is_looked_up_for_its_whole_time_after_it() -> None:
    cluster = MemoryCluster(partitions=1)
    producer = make_producer(cluster)
    send_numbered(producer, ORDERS_1, 1)
    cluster.clock.now += PAUSE_S
    producer.poll()
    cluster.leaders[ORDERS_1] = 0
    cluster.logs[ORDERS_1] = PartitionLog()
    producer.flush()
    assert cluster.values(1) == numbers(1)


def test_time_inside_of_calls_still_counts() -> None:
    cluster = MemoryCluster()
    cluster.faults.extend([SILENCE] * 10)
    producer = make_producer(cluster)
    send_numbered(producer, ORDERS_0, 1)
    cluster.clock.now += PAUSE_S
    began = cluster.clock.now
    with pytest.raises(DeliveryError, match="DELIVERY_TIMED_OUT"):
        producer.flush()
    assert 119 <= cluster.clock.now - began <= 125


def test_batches_of_many_partitions_share_few_requests_in_bulk() -> None:
    cluster = MemoryCluster(partitions=100)
    producer = make_producer(cluster, bulk=True, max_request_size=1 << 20)
    # Each answer is there at once, so that nothing is ever in flight.
    for number in range(400):
        producer.send_batch(TopicPartition("orders", number % 100), batch_of(b"%d" % number, size=16_000), 1)
    producer.flush()
    assert len(cluster.requests) <= 16
    assert sum(len(partitions_of(request)) for _, request in cluster.requests) == 400
    assert cluster.values(7) == numbers(7, 107, 207, 307)


def test_buffer_full_of_small_batches_for_many_brokers_is_sent_in_bulk() -> None:
    cluster = MemoryCluster(partitions=50, brokers=50)
    producer = make_producer(cluster, bulk=True, buffer_bytes=100_000)
    for number in range(200):
        producer.send_batch(TopicPartition("orders", number % 50), batch_of(b"%d" % number, size=4_000), 1)
    producer.flush()
    assert cluster.values(49) == numbers(49, 99, 149, 199)


def test_pending_batches_are_not_looked_through_for_each_small_batch_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = MemoryCluster(partitions=1_000)
    producer = make_producer(cluster, bulk=True, max_request_size=1 << 20)
    looks = 0
    sendable = ProducerState.sendable

    def counted(state: ProducerState, topic_partition: TopicPartition, now: float) -> ProducerBatch | None:
        nonlocal looks
        looks += 1
        return sendable(state, topic_partition, now)

    monkeypatch.setattr(ProducerState, "sendable", counted)
    for number in range(3_000):
        producer.send_batch(TopicPartition("orders", number % 1_000), batch_of(b"%d" % number, size=4_000), 1)
    producer.flush()
    # A request takes some 130 of them: a look at all that wait for each new one would be 65 looks a batch.
    assert looks <= 15 * 3_000
    assert cluster.values(999) == numbers(999, 1_999, 2_999)


def test_a_broker_that_takes_long_to_connect_to_holds_up_nothing_for_the_others() -> None:
    cluster = MemoryCluster(partitions=2, brokers=2)
    started = cluster.clock.now
    cluster.connecting_until[0] = started + 20
    with make_producer(cluster) as producer:
        send_numbered(producer, ORDERS_0, 1)
        send_numbered(producer, ORDERS_1, 2)
        assert cluster.values(1) == numbers(2)
        assert cluster.clock.now - started < 0.1
        producer.flush()
    assert cluster.values(0) == numbers(1)
    assert 20 <= cluster.clock.now - started < 21


def test_batch_for_an_unreachable_broker_expires_with_that_reason() -> None:
    cluster = MemoryCluster()
    cluster.connecting_until[0] = cluster.clock.now + 1_000
    with make_producer(cluster, delivery_timeout_ms=40_000) as producer:
        send_numbered(producer, ORDERS_0, 1)
        with pytest.raises(DeliveryError, match=r"DELIVERY_TIMED_OUT\].*Connecting to broker-0:9092") as caught:
            producer.flush()
    # So an outage is known to be one.
    assert isinstance(caught.value.__cause__, ConnectorError)
    assert may_be_outage(caught.value.__cause__)
