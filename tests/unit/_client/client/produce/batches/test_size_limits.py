"""The producer against a cluster in memory: batches too large for their topic are cut."""

from __future__ import annotations

import pytest

from kit.fakes.memory_cluster import (
    LOST_REPLY,
    LOST_REQUEST,
    NOT_LEADER,
    ORDERS_0,
    ORDERS_1,
    Fault,
    MemoryCluster,
    batch_of,
    make_producer,
)
from pyspark_kafka.errors import DeliveryError


def large_batches(count: int, records: int = 40) -> list[tuple[bytearray, list[bytes]]]:
    """Return batches of records whose sizes differ much, and their values."""
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
    cluster = MemoryCluster()
    cluster.max_message_bytes, cluster.latency_s = 4_000, latency_s
    sent = large_batches(8)
    with make_producer(cluster, idempotence=idempotence) as producer:
        for data, values in sent:
            producer.send_batch(ORDERS_0, data, len(values))
            producer.send_batch(ORDERS_1, batch_of(values[0]), 1)
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
    cluster = MemoryCluster()
    cluster.max_message_bytes = 4_000
    (first, values), *others = large_batches(4)
    with make_producer(cluster) as producer:
        producer.send_batch(ORDERS_0, first, len(values))
        producer.flush()
        before = len(cluster.requests)
        for data, of_batch in others:
            producer.send_batch(ORDERS_0, data, len(of_batch))
        producer.flush()
    sizes = [
        len(bytes(entry.records))
        for _, request in cluster.requests[before:]
        for topic in request.topic_data
        for entry in topic.partition_data
    ]
    assert max(sizes) <= 4_000
    assert cluster.values(0) == [*values, *(value for _, more in others for value in more)]


def test_sequences_of_parts_continue_as_those_of_the_whole_batch() -> None:
    cluster = MemoryCluster()
    cluster.max_message_bytes = 4_000
    (data, values), (later, more) = large_batches(2)
    with make_producer(cluster) as producer:
        producer.send_batch(ORDERS_0, data, len(values))
        producer.send_batch(ORDERS_0, later, len(more))
        producer.flush()
    assert cluster.values(0) == [*values, *more]
    assert cluster.sequences(0)[-1][1] == len(values) + len(more) - 1


@pytest.mark.parametrize("fault", [LOST_REPLY, LOST_REQUEST, NOT_LEADER])
@pytest.mark.parametrize("position", range(1, 12))
def test_a_fault_while_batches_are_cut_neither_loses_nor_doubles(fault: Fault, position: int) -> None:
    cluster = MemoryCluster()
    cluster.max_message_bytes, cluster.latency_s = 4_000, 0.001
    cluster.faults.extend([*[None] * position, fault])
    sent = large_batches(5)
    with make_producer(cluster) as producer:
        for data, values in sent:
            producer.send_batch(ORDERS_0, data, len(values))
        producer.flush()
    assert cluster.values(0) == [value for _, values in sent for value in values]


def test_a_batch_that_is_in_the_log_already_is_not_written_again_in_parts() -> None:
    cluster = MemoryCluster()
    ((data, values),) = large_batches(1)
    # Written, and the topic's limit lowered before it is sent again.
    cluster.faults.extend([LOST_REPLY, Fault(appends=False, code=10)])
    with make_producer(cluster) as producer:
        producer.send_batch(ORDERS_0, data, len(values))
        with pytest.raises(DeliveryError, match=r"^\[OUT_OF_ORDER_SEQUENCE_NUMBER\] .* not delivered 0, unknown 40"):
            producer.flush()
    assert cluster.values(0) == values


def test_topic_that_accepts_less_is_warned_of_once_with_the_option_to_set(caplog: pytest.LogCaptureFixture) -> None:
    cluster = MemoryCluster()
    cluster.max_message_bytes = 4_000
    with make_producer(cluster) as producer:
        for data, values in large_batches(3):
            producer.send_batch(ORDERS_0, data, len(values))
        producer.flush()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "Topic 'orders' does not take a record batch of " in said[0]
    assert "'kafka.batch.size'" in said[0]
