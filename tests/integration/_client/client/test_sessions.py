"""Reads, writes and transactions over several sessions of their login, on a real broker that ends them (KIP-368)."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from kit.brokers.sessions import SessionsBroker, sessions_broker
from kit.reading import client_of, read_range
from pyspark_kafka._base.model import NO_END, OffsetRange, TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.net import trace
from pyspark_kafka._client.client.net.trace import WireEvent, WireStep
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.options import FetchOptions, ProducerOptions
from pyspark_kafka.errors import AccessError
from pyspark_kafka.records import encode, iter_decode

# Logins are renewed with half of it left: enough for a broker on a busy machine.
LIFETIME_MS = 4_000
# Several sessions long.
DURATION_S = 6.5
NAMES = (f"topic-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def broker() -> Iterator[SessionsBroker]:
    with sessions_broker(LIFETIME_MS) as running:
        yield running


@pytest.fixture
def topic(broker: SessionsBroker) -> TopicPartition:
    name = next(NAMES)
    broker.kafka.create_topic(name)
    return TopicPartition(name, 0)


class Wire:
    """What a test sent and received, counted."""

    def __init__(self) -> None:
        self.events: list[WireEvent] = []

    @property
    def logins(self) -> int:
        return sum(event.step is WireStep.SENT and event.request == "SaslHandshake" for event in self.events)

    @property
    def opened(self) -> int:
        return sum(event.step is WireStep.OPENED for event in self.events)

    @property
    def failures(self) -> list[WireEvent]:
        return [event for event in self.events if event.step is WireStep.FAILED]

    @property
    def unanswered(self) -> Counter[str]:
        sent = Counter(event.request for event in self.events if event.step is WireStep.SENT)
        return sent - Counter(event.request for event in self.events if event.step is WireStep.RECEIVED)

    def check(self) -> None:
        """See that no request was sent too late, and that there was a login for each of at least three sessions.

        A broker that pauses for half a session reads requests after its end, however early they were sent.
        """
        assert [str(event) for event in self.failures if (event.elapsed_ms or 0) < 0.45 * LIFETIME_MS] == []
        assert self.logins >= 3


@contextmanager
def watched(broker: SessionsBroker) -> Iterator[Wire]:
    """Note all requests and responses of the block; the broker ends no connection without a failed request."""
    wire, before = Wire(), len(broker.ended_connections())
    with trace.listening(wire.events.append):
        yield wire
    assert len(broker.ended_connections()) - before <= len(wire.failures), broker.ended_connections()


def batch(*values: int) -> bytearray:
    return bytearray(encode(pa.RecordBatch.from_pydict({"value": [b"%d" % value for value in values]})))


def values_of(broker: SessionsBroker, topic: TopicPartition, count: int) -> list[int]:
    with client_of(broker.kafka) as client:
        rows = read_range(client, OffsetRange(topic, 0, count))
        return [int(row["value"]) for some in rows for row in some]


@pytest.mark.parametrize(
    ("mechanism", "idempotence"), [("PLAIN", True), ("SCRAM-SHA-256", False), ("SCRAM-SHA-512", True)]
)
def test_writes_with_batches_in_flight_lose_and_repeat_nothing(
    broker: SessionsBroker, topic: TopicPartition, mechanism: str, idempotence: bool
) -> None:
    options = ProducerOptions(idempotence=idempotence, acks=-1 if idempotence else 1)
    end, number = time.monotonic() + DURATION_S, 0
    with (
        watched(broker) as wire,
        client_of(broker.connection(mechanism)) as client,
        Producer(client, options) as producer,
    ):
        while time.monotonic() < end:
            producer.send_batch(topic, batch(number), 1)
            number += 1
        producer.flush()
        assert producer.metrics.retries == 0 or wire.failures
    wire.check()
    # On connections that were there.
    assert wire.logins > wire.opened
    assert values_of(broker, topic, number) == list(range(number))
    assert wire.unanswered == Counter() or wire.failures


@pytest.mark.full("Sessions that end in use")
def test_reads_that_wait_for_records_longer_than_a_session_miss_none(
    broker: SessionsBroker, topic: TopicPartition
) -> None:
    """Requests are held by the broker for longer than the login lasts: their responses still come."""
    found: list[int] = []
    with (
        watched(broker) as wire,
        client_of(broker.connection()) as client,
        client_of(broker.kafka) as other,
        Producer(other, ProducerOptions()) as producer,
        Fetcher(client, [OffsetRange(topic, 0, NO_END)], FetchOptions(max_wait_ms=3 * LIFETIME_MS)) as fetcher,
    ):
        for number in range(4):
            assert fetcher.poll(1_500 * number) is None
            producer.send_batch(topic, batch(number), 1)
            producer.flush()
            while len(found) <= number:
                polled = fetcher.poll(10_000)
                assert polled is not None
                _, fetched = polled
                for decoded in iter_decode(fetched.records, start_offset=fetched.start_offset, columns=["value"]):
                    found += [int(value) for value in decoded.batch.column("value").to_pylist()]
                    fetcher.confirm(topic, decoded.next_offset)
        wire.check()
    assert found == [0, 1, 2, 3]


@pytest.mark.full("Sessions that end in use")
def test_reader_that_rests_for_longer_than_a_session_continues(broker: SessionsBroker, topic: TopicPartition) -> None:
    """A response waits in the socket while the caller is busy, past the end of the session."""
    with client_of(broker.kafka) as other, Producer(other, ProducerOptions()) as producer:
        for number in range(6):
            producer.send_batch(topic, batch(number), 1)
            producer.flush()
    small = FetchOptions(max_bytes_per_fetch=1)
    found = []
    with watched(broker) as wire, client_of(broker.connection()) as client:
        for rows in read_range(client, OffsetRange(topic, 0, 6), small):
            found += [int(row["value"]) for row in rows]
            if len(found) in (1, 3):
                time.sleep(LIFETIME_MS / 1000 + 0.2)
    assert found == [0, 1, 2, 3, 4, 5]
    wire.check()


def test_password_that_was_changed_ends_the_query_with_that_reason(broker: SessionsBroker) -> None:
    former = "former"
    broker.set_password(former, "carol")
    options = broker.connection("SCRAM-SHA-512", password=former, user="carol", api_timeout_ms=10_000)
    with client_of(options) as client:
        client.fetch_metadata(())
        broker.set_password("changed", "carol")
        with pytest.raises(AccessError) as caught:
            ask_for(client, 20.0)
    text = str(caught.value)
    assert text.startswith("[SASL_AUTHENTICATION_FAILED]")
    assert "is refused now, so its password, token or user has changed or expired" in text
    assert former not in text


def ask_for(client: KafkaClient, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        client.fetch_metadata(())
        time.sleep(0.1)
