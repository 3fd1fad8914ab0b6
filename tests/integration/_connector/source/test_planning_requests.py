"""What planning asks of a real broker: as many requests for hundreds of partitions as for three."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from kit.fixtures.broker import TopicMaker
from kit.fixtures.wire import WireTrace
from kit.independent_client import Record, produce
from kit.reading import PATIENT, client_of
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, KafkaSourceOffset, Latest
from pyspark_kafka._client.client.cluster.pool import borrow_client, close_clients
from pyspark_kafka._client.client.queries.offset_messages import OffsetSpec
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.options import StreamReadOptions, parse_stream_read_options, parse_write_options
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka.connector import ReadAllAvailable

_COUNTS = [3, 300]


@pytest.fixture(autouse=True)
def _own_connections() -> None:
    """Close connections that other tests have left: the broker may have, and opening one asks for versions."""
    close_clients()


def make_served(bootstrap_servers: str, make_topic: TopicMaker, partitions: int) -> str:
    """Make a topic, and wait until the broker has taken up all its partitions, which it does one after the other.

    What a test asks for afterwards is asked for once, and its time is not the time of the broker.
    """
    topic = make_topic(partitions=partitions)
    with client_of(bootstrap_servers, **PATIENT) as client:
        list_offsets(client, {TopicPartition(topic, number): Latest() for number in range(partitions)})
    return topic


def asked_in(wire: WireTrace) -> list[str]:
    """Return the requests that were sent after those that open a connection."""
    return [request for request in wire.requests if request != "ApiVersions"]


def subscribed(bootstrap_servers: str, topic: str) -> StreamReadOptions:
    return parse_stream_read_options({"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic})


@pytest.mark.parametrize("partitions", _COUNTS)
@pytest.mark.parametrize("spec", [Earliest(), Latest(), AtTimestamp(0)], ids=repr)
def test_offsets_of_a_topic_take_one_look_at_it_and_one_request_a_broker(
    bootstrap_servers: str, make_topic: TopicMaker, wire: WireTrace, partitions: int, spec: OffsetSpec
) -> None:
    topic = make_served(bootstrap_servers, make_topic, partitions)
    produce(bootstrap_servers, topic, [Record(None, b"v", number) for number in range(3)])
    with borrow_client(subscribed(bootstrap_servers, topic).connection) as client:
        asked = {TopicPartition(topic, number): spec for number in range(partitions)}
        # Opens the connection.
        client.fetch_metadata([topic])
        wire.clear()
        client.fetch_metadata([topic])
        found = list_offsets(client, asked)
    assert asked_in(wire) == ["Metadata", "ListOffsets"]
    # By time, partitions without records are left out.
    assert len(found) == (3 if isinstance(spec, AtTimestamp) else partitions)
    close_clients()


@pytest.mark.parametrize("partitions", _COUNTS)
def test_a_batch_is_planned_with_one_look_at_the_topic_and_one_request_a_broker(
    bootstrap_servers: str, make_topic: TopicMaker, wire: WireTrace, partitions: int
) -> None:
    topic = make_served(bootstrap_servers, make_topic, partitions)
    stream = KafkaMicroBatchStream(subscribed(bootstrap_servers, topic), SOURCE_SCHEMA)
    start = KafkaSourceOffset({TopicPartition(topic, number): 0 for number in range(partitions)})
    # The first batch of a run opens the connection.
    assert stream.latestOffset(start, ReadAllAvailable()) == start
    produce(bootstrap_servers, topic, [Record(None, b"v", number) for number in range(partitions)])
    wire.clear()
    end = stream.latestOffset(start, ReadAllAvailable())
    planned = stream.planInputPartitions(start, end)
    assert asked_in(wire) == ["Metadata", "ListOffsets"]
    assert len(planned) == partitions
    close_clients()


def test_a_thousand_partitions_are_planned_in_a_moment(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    # 30 ms on a quiet machine. A look-up for each partition would take longer than this even on a loaded one.
    topic = make_served(bootstrap_servers, make_topic, 1_000)
    stream = KafkaMicroBatchStream(subscribed(bootstrap_servers, topic), SOURCE_SCHEMA)
    start = KafkaSourceOffset({TopicPartition(topic, number): 0 for number in range(1_000)})
    took = []
    for _ in range(5):
        began = time.monotonic()
        end = stream.latestOffset(start, ReadAllAvailable())
        assert stream.planInputPartitions(start, end) == []
        took.append(time.monotonic() - began)
    assert min(took) < 1.0
    close_clients()


def test_each_process_of_a_first_batch_asks_once_for_what_it_needs(
    bootstrap_servers: str, make_topic: TopicMaker, wire: WireTrace
) -> None:
    topic = make_served(bootstrap_servers, make_topic, 4)
    produce(bootstrap_servers, topic, [Record(None, b"v", number) for number in range(4)])

    wire.clear()
    options = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest"}
    stream = KafkaMicroBatchStream.from_options(options)
    start = stream.initialOffset()
    assert asked_in(wire) == ["Metadata", "ListOffsets"]
    planned = stream.planInputPartitions(start, stream.latestOffset(start, ReadAllAvailable()))
    assert asked_in(wire) == ["Metadata", "ListOffsets"] * 2
    # What the processes of tasks have no part in.
    close_clients()

    wire.clear()
    factory = stream.createReaderFactory()
    for partition in planned:
        reader = factory.createReader(partition)
        assert [reader.get().num_rows for _ in iter(reader.next, False)] == [1]
        reader.close()
    assert (len(planned), asked_in(wire)) == (4, ["Metadata", *["Fetch"] * 4])
    close_clients()

    # With a name of its own, there is no producer of other tests for it.
    own = {"kafka.bootstrap.servers": bootstrap_servers, "topic": topic, "kafka.client.id": topic}
    for expected in (["Metadata", "InitProducerId"], []):
        writer = KafkaDataWriter(parse_write_options(own, streaming=True), SinkColumns(value=0))
        wire.clear()
        writer.write(pa.record_batch([pa.array([b"v"])], names=["value"]))
        writer.commit()
        writer.close()
        # A broker that has yet to load its producers is asked for an id again.
        assert list(dict.fromkeys(asked_in(wire))) == [*expected, "Produce"]
    close_clients()
