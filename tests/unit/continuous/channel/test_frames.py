"""Frames: whole, signed, once and in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.continuous.channel.frames import (
    MAX_GREETING_BYTES,
    MAX_PAYLOAD_BYTES,
    BadFrameError,
    Direction,
    FrameReader,
    FrameWriter,
    connection_key,
    new_key,
)

KEY = b"k" * 32


def ends() -> tuple[FrameWriter, FrameReader]:
    return FrameWriter(KEY, Direction.TO_DRIVER), FrameReader(KEY, Direction.TO_DRIVER)


@given(st.lists(st.binary(max_size=300), max_size=6), st.lists(st.integers(1, 50), min_size=1))
def test_payloads_arrive_however_the_bytes_are_cut(payloads: list[bytes], cuts: list[int]) -> None:
    writer, reader = ends()
    data = b"".join(map(writer.frame, payloads))
    found, position, number = [], 0, 0
    while position < len(data):
        size = cuts[number % len(cuts)]
        found += reader.feed(data[position : position + size])
        position, number = position + size, number + 1
    assert found == payloads


@given(st.binary(min_size=1, max_size=100), st.integers(0), st.integers(1, 255))
def test_changed_byte_yields_no_payload(payload: bytes, place: int, change: int) -> None:
    writer, reader = ends()
    frame = bytearray(writer.frame(payload))
    frame[place % len(frame)] ^= change
    try:
        assert reader.feed(bytes(frame)) == []
    except BadFrameError:
        return


def test_frame_that_is_sent_again_is_refused() -> None:
    writer, reader = ends()
    frame = writer.frame(b"once")
    assert reader.feed(frame) == [b"once"]
    with pytest.raises(BadFrameError, match="signature"):
        reader.feed(frame)


def test_frame_of_the_other_direction_is_refused() -> None:
    _, reader = ends()
    with pytest.raises(BadFrameError, match="signature"):
        reader.feed(FrameWriter(KEY, Direction.TO_TASK).frame(b"echo"))


def test_frame_of_another_run_or_connection_is_refused() -> None:
    other = connection_key(KEY, b"d" * 16, b"t" * 16)
    assert other != connection_key(new_key(), b"d" * 16, b"t" * 16)
    assert other != connection_key(KEY, b"d" * 16, b"u" * 16)
    _, reader = ends()
    with pytest.raises(BadFrameError, match="signature"):
        reader.feed(FrameWriter(other, Direction.TO_DRIVER).frame(b"stranger"))


def test_first_frame_of_a_stranger_cannot_be_large() -> None:
    _, reader = ends()
    with pytest.raises(BadFrameError, match="frame of"):
        reader.feed((MAX_GREETING_BYTES + 1).to_bytes(4, "big"))


def test_later_frame_cannot_be_larger_than_the_bound() -> None:
    writer, reader = ends()
    reader.feed(writer.frame(b"hello"))
    with pytest.raises(BadFrameError, match="frame of"):
        reader.feed((MAX_PAYLOAD_BYTES + 1).to_bytes(4, "big"))
    with pytest.raises(ValueError, match="at most"):
        writer.frame(bytes(MAX_PAYLOAD_BYTES + 1))
