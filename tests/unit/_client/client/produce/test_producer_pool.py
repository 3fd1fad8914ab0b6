"""Producers go on with the next task under their identity, unless anything went wrong, time passed, or a fork."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kit.fakes.memory_cluster import LOST_REPLY, Fault, MemoryCluster, batch_of
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.produce import pool as producer_pool
from pyspark_kafka._client.client.produce.pool import ProducerPool, ProducerSettings
from pyspark_kafka._client.client.produce.producer import Producer, ProducerMetrics
from pyspark_kafka._client.options import ConnectionOptions, PlainLogin, ProducerOptions, Secret
from pyspark_kafka.errors import DeliveryError, ProtocolError

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)
CONNECTION = ConnectionOptions((("broker-0", 9092),))


def settings_with(connection: ConnectionOptions = CONNECTION, **producer: Any) -> ProducerSettings:
    return ProducerSettings(connection, ProducerOptions(**producer), buffer_bytes=1 << 20, topic_timeout_ms=15_000)


SETTINGS = settings_with()


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
def pool(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> ProducerPool:
    """A pool whose producers talk to the cluster in memory."""

    @contextmanager
    def borrow(options: ConnectionOptions) -> Iterator[Any]:
        assert options
        yield cluster.as_client()

    monkeypatch.setattr(producer_pool, "borrow_client", borrow)
    return ProducerPool(clock=cluster.clock)


def write(pool: ProducerPool, *values: bytes, to: TopicPartition = ORDERS_0) -> Producer:
    """Do what a task does: each value is a batch."""
    with pool.borrow(SETTINGS) as producer:
        for value in values:
            producer.send_batch(to, batch_of(value), 1)
        producer.flush()
    return producer


def sequences(cluster: MemoryCluster, number: int = 0) -> list[int]:
    """Return the base sequence of every batch that was sent to a partition."""
    return [
        struct.unpack_from(">i", bytes(entry.records), 53)[0]
        for _, request in cluster.requests
        for topic in request.topic_data
        for entry in topic.partition_data
        if entry.index == number
    ]


def test_next_task_continues_under_the_same_identity(pool: ProducerPool, cluster: MemoryCluster) -> None:
    first = write(pool, b"a", b"b")
    cluster.init_codes.append(31)  # another identity would be refused
    assert write(pool, b"c") is first
    assert sequences(cluster) == [0, 1, 2]
    assert cluster.values(0) == [b"a", b"b", b"c"]


def test_warm_task_asks_nothing_before_it_writes(pool: ProducerPool, cluster: MemoryCluster) -> None:
    write(pool, b"a")
    lookups = cluster.lookups
    with pool.borrow(SETTINGS) as producer:
        assert producer.partition_count("orders") == 2
        producer.send_batch(ORDERS_1, batch_of(b"b"), 1)
        producer.flush()
    assert cluster.lookups == lookups


def test_idle_producer_holds_no_connection(pool: ProducerPool, cluster: MemoryCluster) -> None:
    write(pool, b"a")
    assert cluster.given_back == cluster.opened
    write(pool, b"b")
    assert cluster.given_back == cluster.opened


def test_new_partitions_are_seen_when_metadata_is_old(cluster: MemoryCluster) -> None:
    producer = Producer(cluster.as_client(), ProducerOptions(), clock=cluster.clock)
    assert producer.partition_count("orders") == 2
    cluster.leaders[TopicPartition("orders", 2)] = 0
    assert producer.partition_count("orders") == 2
    cluster.clock.now += cluster.options.metadata_max_age_ms / 1000
    assert producer.partition_count("orders") == 3


def test_task_counts_its_own_records(pool: ProducerPool) -> None:
    write(pool, b"a", b"b")
    with pool.borrow(SETTINGS) as producer:
        assert producer.metrics == ProducerMetrics(0, 0, 0, 0)
        producer.send_batch(ORDERS_0, batch_of(b"c"), 1)
        producer.flush()
        assert producer.metrics.records == 1


def test_error_of_a_task_counts_its_own_records(pool: ProducerPool, cluster: MemoryCluster) -> None:
    write(pool, b"a", b"b")
    cluster.faults.append(Fault(appends=False, code=87))
    with pytest.raises(DeliveryError, match="delivered 0, not delivered 1"):
        write(pool, b"c")


def test_first_batches_of_a_task_travel_alone(pool: ProducerPool, cluster: MemoryCluster) -> None:
    # Between two tasks a leader may forget the sequences, and then takes any: a second batch must not overtake.
    write(pool, b"a", b"b")
    cluster.latency_s = 0.01
    before = len(cluster.requests)
    with pool.borrow(SETTINGS) as producer:
        producer.send_batch(ORDERS_0, batch_of(b"c"), 1)
        producer.send_batch(ORDERS_0, batch_of(b"d"), 1)
        producer.poll()
        assert len(cluster.requests) == before + 1
        producer.flush()


def test_producer_is_dropped_after_a_failure(pool: ProducerPool, cluster: MemoryCluster) -> None:
    first = write(pool, b"a")
    cluster.faults.append(Fault(appends=False, code=87))
    with pytest.raises(DeliveryError):
        write(pool, b"b")
    assert len(pool) == 0
    cluster.producer_id += 1
    assert write(pool, b"c") is not first
    assert sequences(cluster) == [0, 1, 0]


def test_producer_is_dropped_when_the_task_fails_elsewhere(pool: ProducerPool) -> None:
    def task() -> None:
        with pool.borrow(SETTINGS) as producer:
            producer.send_batch(ORDERS_0, batch_of(b"a"), 1)
            producer.flush()
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        task()
    assert len(pool) == 0


def test_producer_is_dropped_when_rows_were_not_flushed(pool: ProducerPool) -> None:
    write(pool, b"a")
    with pool.borrow(SETTINGS) as producer:
        producer.send_batch(ORDERS_0, batch_of(b"b"), 1)
    assert len(pool) == 0


def test_write_that_was_tried_again_with_success_is_no_failure(pool: ProducerPool, cluster: MemoryCluster) -> None:
    cluster.faults.append(LOST_REPLY)
    first = write(pool, b"a")
    assert write(pool, b"b") is first
    assert cluster.values(0) == [b"a", b"b"]


@pytest.mark.parametrize(
    "other",
    [
        settings_with(compression="lz4"),
        settings_with(ConnectionOptions((("broker-0", 9092),), login=PlainLogin("alice", Secret("other")))),
        ProducerSettings(CONNECTION, ProducerOptions(), buffer_bytes=1, topic_timeout_ms=15_000),
    ],
)
def test_producer_is_another_one_for_other_settings(pool: ProducerPool, other: ProducerSettings) -> None:
    first = write(pool, b"a")
    with pool.borrow(other) as producer:
        assert producer is not first


def test_two_borrowers_at_a_time_get_two_producers(pool: ProducerPool) -> None:
    with pool.borrow(SETTINGS) as first, pool.borrow(SETTINGS) as second:
        assert first is not second


def test_producer_is_dropped_when_it_was_idle_too_long(pool: ProducerPool, cluster: MemoryCluster) -> None:
    first = write(pool, b"a")
    cluster.clock.now += 301.0
    with pool.borrow(SETTINGS) as producer:
        assert producer is not first


def test_producer_that_is_idle_longest_is_dropped_beyond_the_bound(cluster: MemoryCluster, pool: ProducerPool) -> None:
    pool = ProducerPool(kept=2, clock=cluster.clock)
    borrowed = {}
    for codec in ("gzip", "lz4", "zstd"):
        with pool.borrow(settings_with(compression=codec)) as producer:
            producer.flush()
            borrowed[codec] = producer
    assert len(pool) == 2
    with pool.borrow(settings_with(compression="lz4")) as producer:
        assert producer is borrowed["lz4"]
    with pool.borrow(settings_with(compression="gzip")) as producer:
        assert producer is not borrowed["gzip"]


def test_producer_of_too_many_partitions_is_not_kept(pool: ProducerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_pool, "_MAX_PARTITIONS", 1)
    write(pool, b"a")
    assert len(pool) == 1
    write(pool, b"b", to=ORDERS_1)
    assert len(pool) == 0


def test_forked_child_starts_with_an_empty_pool(pool: ProducerPool) -> None:
    first = write(pool, b"a")
    # What a child sees after a fork: the same memory under another process id.
    pool._idle._process_id = os.getpid() + 1
    with pool.borrow(SETTINGS) as producer:
        assert producer is not first


def test_producer_that_was_lent_before_a_fork_does_not_come_back_in_the_child(pool: ProducerPool) -> None:
    with pool.borrow(SETTINGS) as producer:
        producer.send_batch(ORDERS_0, batch_of(b"a"), 1)
        producer.flush()
        producer.created_in = os.getpid() + 1
    assert len(pool) == 0


def test_idle_producers_are_dropped_when_the_pool_is_cleared(pool: ProducerPool) -> None:
    first = write(pool, b"a")
    pool.clear()
    with pool.borrow(SETTINGS) as producer:
        assert producer is not first


@pytest.mark.parametrize("flushed", [False, True])
def test_producer_in_use_or_not_flushed_cannot_be_opened_again(cluster: MemoryCluster, *, flushed: bool) -> None:
    producer = Producer(cluster.as_client(), ProducerOptions(), clock=cluster.clock)
    producer.send_batch(ORDERS_0, batch_of(b"a"), 1)
    if flushed:
        producer.flush()  # but not closed
    else:
        producer.close()
    with pytest.raises(ProtocolError, match="PRODUCER_NOT_REUSABLE"):
        producer.reopen(cluster.as_client())
