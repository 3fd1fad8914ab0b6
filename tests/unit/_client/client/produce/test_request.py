"""Produce requests of every version, against kafka-python's decoder and encoder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.produce.request import ProduceFrame
from pyspark_kafka._client.client.wire.api_versions import MAX_PRODUCE_VERSION

VERSIONS = range(3, MAX_PRODUCE_VERSION + 1)
ORDERS_0 = TopicPartition("orders", 0)
ORDERS_300 = TopicPartition("orders", 300)
NAMED_LONG = TopicPartition("ñ" * 120, 1)


def build(
    version: int, batches: list[tuple[TopicPartition, bytes]], client_id: str = "me"
) -> tuple[ProduceFrame, bytes]:
    frame = ProduceFrame(-1, 12_345, batches)
    return frame, b"".join(map(bytes, frame.build(version, 99, client_id)))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("sizes", [(10, 20, 30), (16_384, 5, 200_000), (5, 16_384, 5), (1 << 20, 1 << 21, 1)])
def test_request_is_decoded_by_kafka_python_as_it_was_built(version: int, sizes: tuple[int, ...]) -> None:
    batches = [
        (topic_partition, bytes([number + 1]) * size)
        for number, (topic_partition, size) in enumerate(zip((ORDERS_0, NAMED_LONG, ORDERS_300), sizes, strict=True))
    ]
    _, data = build(version, batches, client_id="clïent")
    request = ProduceRequest.decode(data, version=version, header=True, framed=True)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    assert request.header.correlation_id == 99
    assert request.header.client_id == "clïent"
    assert (request.header.request_api_key, request.header.request_api_version) == (0, version)
    assert (request.transactional_id, request.acks, request.timeout_ms) == (None, -1, 12_345)
    found = {
        TopicPartition(topic.name, entry.index): bytes(entry.records)
        for topic in request.topic_data
        for entry in topic.partition_data
    }
    assert found == dict(batches)
    # kafka-python encodes it to the same bytes: nothing stands behind the last field.
    request.with_header(correlation_id=99, client_id="clïent")
    assert request.encode(version=version, header=True, framed=True) == data


@given(
    version=st.sampled_from(VERSIONS),
    partitions=st.lists(
        st.tuples(st.sampled_from(["a", "orders", "ñ" * 120]), st.integers(0, 2**31 - 1)), unique=True, max_size=20
    ),
    data=st.data(),
)
def test_request_with_random_values_is_encoded_as_kafka_python_does(
    version: int, partitions: list[tuple[str, int]], data: st.DataObject
) -> None:
    records = st.binary(max_size=300) | st.integers(0, 70_000).map(bytes)
    batches = [(TopicPartition(*partition), data.draw(records)) for partition in partitions]
    acks, timeout_ms, correlation_id = (
        data.draw(st.integers(*ends)) for ends in ((-1, 1), (0, 2**31 - 1), (0, 2**31 - 1))
    )
    transactional_id, client_id = data.draw(st.none() | st.text(max_size=200)), data.draw(st.text(max_size=200))

    frame = ProduceFrame(acks, timeout_ms, batches, transactional_id)
    found = b"".join(map(bytes, frame.build(version, correlation_id, client_id)))

    request = ProduceRequest.decode(found, version=version, header=True, framed=True)
    assert (request.transactional_id, request.acks, request.timeout_ms) == (transactional_id, acks, timeout_ms)
    entries = [
        (TopicPartition(topic.name, entry.index), bytes(entry.records))
        for topic in request.topic_data
        for entry in topic.partition_data
    ]
    assert dict(entries) == dict(batches)
    assert len(entries) == len(batches)
    request.with_header(correlation_id=correlation_id, client_id=client_id)
    assert request.encode(version=version, header=True, framed=True) == found


@pytest.mark.parametrize("version", VERSIONS)
def test_large_batches_are_not_copied(version: int) -> None:
    large = bytearray(100_000)
    frame = ProduceFrame(-1, 12_345, [(ORDERS_0, b"small"), (ORDERS_300, large)])
    assert any(piece is large for piece in frame.build(version, 99, "me"))


def test_request_without_acknowledgement_has_no_response() -> None:
    assert not ProduceFrame(0, 1, []).has_response
    assert ProduceFrame(1, 1, []).has_response
