"""Produce requests and answers of every version, against kafka-python's decoder and encoder."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from kit.fakes.memory_cluster import batch_of
from pyspark_kafka.client.produce.protocol import (
    ProduceFrame,
    ProducePartitionResponse,
    parse_batch_start,
    parse_produce_response,
)
from pyspark_kafka.client.wire.versions import MAX_PRODUCE_VERSION
from pyspark_kafka.errors import ProtocolError
from pyspark_kafka.model import TopicPartition

VERSIONS = range(3, MAX_PRODUCE_VERSION + 1)
ORDERS_0 = TopicPartition("orders", 0)
ORDERS_300 = TopicPartition("orders", 300)
NAMED_LONG = TopicPartition("ñ" * 120, 1)


def build(
    version: int, batches: list[tuple[TopicPartition, bytes]], client_id: str = "me"
) -> tuple[ProduceFrame, bytes]:
    frame = ProduceFrame(-1, 12_345, batches)
    frame.API_VERSION = version
    frame.with_header(correlation_id=99, client_id=client_id)
    first = frame.encode(framed=True, header=True)
    return frame, b"".join([bytes(first), *map(bytes, frame.rest)])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("sizes", [(10, 20, 30), (16_384, 5, 200_000), (5, 16_384, 5), (1 << 20, 1 << 21, 1)])
def test_request_is_read_by_kafka_python_as_it_was_meant(version: int, sizes: tuple[int, ...]) -> None:
    batches = [
        (topic_partition, bytes([number + 1]) * size)
        for number, (topic_partition, size) in enumerate(zip((ORDERS_0, NAMED_LONG, ORDERS_300), sizes, strict=True))
    ]
    frame, data = build(version, batches, client_id="clïent")
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
    # What kafka-python writes of it is the same bytes: nothing stands behind the last field.
    request.with_header(correlation_id=99, client_id="clïent")
    assert request.encode(version=version, header=True, framed=True) == data
    assert frame.get_response_class() is ProduceResponse[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_large_batches_are_not_copied(version: int) -> None:
    large = bytearray(100_000)
    frame, _ = build(version, [(ORDERS_0, b"small"), (ORDERS_300, large)])  # type: ignore[list-item]  # any bytes will do
    assert any(piece is large for piece in frame.rest)


def test_request_without_acknowledgement_expects_no_answer() -> None:
    assert not ProduceFrame(0, 1, []).expect_response()
    assert ProduceFrame(1, 1, []).expect_response()


@pytest.mark.parametrize("version", VERSIONS)
def test_answer_is_given_partition_by_partition(version: int) -> None:
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse
    details: dict[str, Any] = {}
    if version >= 8:
        details = {
            "error_message": "bad ones",
            "record_errors": [
                partition.BatchIndexAndErrorMessage(batch_index=3, batch_index_error_message="no key"),
                partition.BatchIndexAndErrorMessage(batch_index=7, batch_index_error_message=None),
            ],
        }
    response = ProduceResponse(
        responses=[
            topic(
                name="orders",
                partition_responses=[
                    partition(index=0, error_code=0, base_offset=5, log_append_time_ms=-1, log_start_offset=0),
                    partition(index=300, error_code=87, base_offset=-1, log_append_time_ms=-1, **details),
                    partition(index=0, error_code=6, base_offset=-1, log_append_time_ms=-1),
                ],
            )
        ],
        throttle_time_ms=4,
    )
    decoded = ProduceResponse.decode(response.encode(version=version), version=version)
    refused = ProducePartitionResponse(ORDERS_300, 87)
    if version >= 8:
        refused = ProducePartitionResponse(ORDERS_300, 87, "bad ones", ((3, "no key"), (7, None)))
    # What is listed twice counts once: docs/internals/fetch-rules.md, R14.
    assert parse_produce_response(decoded) == [ProducePartitionResponse(ORDERS_0, 0, base_offset=5), refused]


def test_batch_start_tells_producer_and_counts() -> None:
    start = parse_batch_start(ORDERS_0, batch_of(b"a", b"b", b"c"))
    assert (start.record_count, start.last_offset_delta) == (3, 2)
    assert (start.producer_id, start.producer_epoch, start.base_sequence) == (-1, -1, -1)


def _old_format() -> bytearray:
    data = batch_of(b"a")
    data[16] = 1
    return data


@pytest.mark.parametrize(
    "data",
    [b"", b"x" * 60, bytes(batch_of(b"a"))[:-1], bytes(batch_of(b"a")) * 2, _old_format()],
    ids=["empty", "shorter than a header", "cut off", "two batches", "format 1"],
)
def test_bytes_that_are_not_one_batch_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"^\[RECORD_BATCH_INVALID\] orders-0: .*not one whole record batch"):
        parse_batch_start(ORDERS_0, data)
