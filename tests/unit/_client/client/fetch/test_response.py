"""Fetch responses of every version: our parser against kafka-python's encoder, and against bytes that end too early."""

from __future__ import annotations

import struct
import tracemalloc
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchResponse

from pyspark_kafka._client.client.cluster.metadata import BrokerNode
from pyspark_kafka._client.client.fetch.response import NEWEST_VERSION, OLDEST_VERSION, parse_fetch_response
from pyspark_kafka.errors import ProtocolError

VERSIONS = range(OLDEST_VERSION, NEWEST_VERSION + 1)
TOPIC_ID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")

Topic = FetchResponse.FetchableTopicResponse
Partition = Topic.PartitionData


def encode_response(version: int, *, records: bytes | None = b"\x00\x01\xff" * 50) -> bytes:
    tags: dict[str, Any] = {}
    if version >= 12:
        tags["current_leader"] = Partition.LeaderIdAndEpoch(leader_id=7, leader_epoch=11)
    first = Partition(
        partition_index=3,
        error_code=6,
        high_watermark=2**40,
        last_stable_offset=2**40 - 5,
        log_start_offset=17,
        aborted_transactions=[
            Partition.AbortedTransaction(producer_id=2**50, first_offset=100),
            Partition.AbortedTransaction(producer_id=9, first_offset=20),
        ],
        preferred_read_replica=4,
        records=records,
        **tags,
    )
    second = Partition(
        partition_index=4,
        error_code=0,
        high_watermark=0,
        last_stable_offset=-1,
        log_start_offset=0,
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=None,
    )
    response = FetchResponse(
        throttle_time_ms=123,
        error_code=0 if version < 7 else 70,
        session_id=0,
        responses=[Topic(topic="ordérs", topic_id=TOPIC_ID, partitions=[first, second])],
    )
    if version >= 16:
        response.node_endpoints = [FetchResponse.NodeEndpoint(node_id=7, host="kafka-7", port=9092, rack=None)]
        response.tags = {"node_endpoints"}
    return bytes(response.encode(version=version))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_is_read_in_every_version(version: int) -> None:
    response = parse_fetch_response(memoryview(encode_response(version)), version)

    assert response.throttle_time_ms == 123
    assert response.error_code == (0 if version < 7 else 70)
    first, second = response.partitions
    assert first.topic == ("ordérs" if version < 13 else None)
    assert first.topic_id == (None if version < 13 else TOPIC_ID)
    assert (first.partition, first.error_code) == (3, 6)
    assert (first.high_watermark, first.last_stable_offset) == (2**40, 2**40 - 5)
    assert first.log_start_offset == (-1 if version < 5 else 17)
    assert first.aborted_transactions == ((2**50, 100), (9, 20))
    assert first.preferred_read_replica == (-1 if version < 11 else 4)
    assert (first.leader_id, first.leader_epoch) == ((-1, -1) if version < 12 else (7, 11))
    assert bytes(first.records) == b"\x00\x01\xff" * 50
    assert (second.partition, second.aborted_transactions, second.records.nbytes) == (4, (), 0)
    assert second.preferred_read_replica == -1
    # Only from version 16 on.
    assert response.nodes == ((BrokerNode(7, "kafka-7", 9092),) if version >= 16 else ())


def test_records_are_a_view_of_the_response() -> None:
    body = bytearray(encode_response(17))
    records = parse_fetch_response(memoryview(body), 17).partitions[0].records
    body[body.index(b"\x00\x01\xff")] = 0x42
    assert records[0] == 0x42


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_cut_off_anywhere_is_a_protocol_error(version: int) -> None:
    body = memoryview(encode_response(version))
    for size in range(len(body)):
        with pytest.raises(ProtocolError, match=r"\[FETCH_RESPONSE_INVALID\] A Fetch response \(version"):
            parse_fetch_response(body[:size], version)


@pytest.mark.parametrize("version", [11, 13])
def test_a_count_larger_than_the_bytes_is_refused_before_any_entry_is_made(version: int) -> None:
    head = b"\x00\x00\x00\x00" + b"\x00\x00" + b"\x00\x00\x00\x00"
    count = b"\x7f\xff\xff\xff" if version == 11 else b"\xff\xff\xff\xff\x0f"
    with pytest.raises(ProtocolError, match=r"an array of (2147483647|4294967294) entries"):
        parse_fetch_response(memoryview(head + count + bytes(64)), version)


def test_a_negative_length_is_refused() -> None:
    body = bytearray(encode_response(11, records=b"abcdefgh"))
    at = body.index(b"\x00\x00\x00\x08abcdefgh")
    body[at : at + 4] = b"\x80\x00\x00\x00"
    with pytest.raises(ProtocolError, match="records of -2147483648 bytes"):
        parse_fetch_response(memoryview(body), 11)


@given(version=st.sampled_from(VERSIONS), data=st.binary(max_size=300))
def test_arbitrary_bytes_give_a_response_or_a_protocol_error(version: int, data: bytes) -> None:
    try:
        response = parse_fetch_response(memoryview(data), version)
    except ProtocolError:
        return
    assert sum(partition.records.nbytes for partition in response.partitions) <= len(data)


@given(version=st.sampled_from(VERSIONS), position=st.integers(0, 400), value=st.integers(0, 255))
def test_one_changed_byte_gives_a_response_or_a_protocol_error(version: int, position: int, value: int) -> None:
    body = bytearray(encode_response(version))
    body[position % len(body)] = value
    try:
        response = parse_fetch_response(memoryview(body), version)
    except ProtocolError:
        return
    assert sum(partition.records.nbytes for partition in response.partitions) <= len(body)


def test_a_version_outside_the_handled_range_is_refused() -> None:
    with pytest.raises(ValueError, match="Fetch version 3 is not handled"):
        parse_fetch_response(memoryview(b""), 3)


def test_empty_tagged_fields_take_no_memory_each() -> None:
    partition = struct.pack(">ihqqq", 3, 0, 0, 0, 0) + b"\x00" + struct.pack(">i", -1) + b"\x00"
    tags = b"\xd0\x86\x03" + b"\x05\x00" * 50_000
    body = struct.pack(">ihi", 0, 0, 0) + b"\x02" + b"\x02t" + b"\x02" + partition + tags + b"\x00\x00"
    tracemalloc.start()
    try:
        response = parse_fetch_response(memoryview(body), 12)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert response.partitions[0].partition == 3
    assert peak < 1 << 20


def test_address_of_a_leader_that_would_change_a_log_is_refused() -> None:
    body = encode_response(17).replace(b"kafka-7", b"kafka\n7")
    with pytest.raises(ProtocolError, match=r"\[FETCH_RESPONSE_INVALID\] .* a broker with the address 'kafka\\n7'"):
        parse_fetch_response(memoryview(body), 17)
