"""Frame sizes, response headers and tagged fields."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._client.client.wire.frames import (
    frame_size_invalid,
    parse_response_header,
    read_unsigned_varint,
    skip_tagged_fields,
)
from pyspark_kafka.errors import ProtocolError


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 3, 1001, 2**31 - 1])
def test_an_impossible_size_is_named(size: int) -> None:
    error = frame_size_invalid(struct.pack(">i", size), 1000, "b:1")
    assert str(error).startswith(f"[FRAME_SIZE_INVALID] b:1 announced a frame of {size} bytes")


def test_a_tls_alert_is_guessed() -> None:
    text = str(frame_size_invalid(b"\x15\x03\x03\x00", 1 << 28, "b:1"))
    assert "probably a TLS listener" in text
    assert "Hint: Set kafka.security.protocol to SSL" in text


def test_a_web_server_is_guessed() -> None:
    assert "probably a web server" in str(frame_size_invalid(b"HTTP", 1 << 28, "b:1"))


def encode_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@given(st.integers(0, 2**32 - 1))
def test_unsigned_varints_round_trip(value: int) -> None:
    data = encode_varint(value)
    assert read_unsigned_varint(memoryview(data + b"\xff"), 0) == (value, len(data))


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80\x80", b"\xff\xff\xff\xff\x1f"])
def test_a_varint_of_more_than_32_bits_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="longer than 32 bits"):
        read_unsigned_varint(memoryview(data), 0)


def test_tagged_fields_are_passed_over() -> None:
    assert skip_tagged_fields(memoryview(b"\x02\x00\x03abc\x05\x00REST"), 0) == 8


def test_a_tagged_field_beyond_the_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="a tagged field of 9 bytes, with 2 left"):
        skip_tagged_fields(memoryview(b"\x01\x00\x09ab"), 0)


def test_the_body_begins_behind_the_header() -> None:
    frame = memoryview(b"\x00\x00\x00\x07\x01\x00\x01xBODY")
    assert parse_response_header(frame, flexible=False, address="b:1") == (7, 4)
    assert parse_response_header(frame, flexible=True, address="b:1") == (7, 8)


def test_a_cut_off_header_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match=r"\[RESPONSE_HEADER_INVALID\]"):
        parse_response_header(memoryview(b"\x00\x00\x00\x07\x01\x00"), flexible=True, address="b:1")
