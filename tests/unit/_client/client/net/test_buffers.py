"""Receive buffers are used again, but never while somebody looks at them."""

from __future__ import annotations

import pyarrow as pa

from pyspark_kafka._client.client.net.buffers import FrameBuffers

MIB = 1 << 20


def identity(view: memoryview) -> int:
    return id(view.obj)


def test_a_free_buffer_is_used_again() -> None:
    buffers = FrameBuffers()
    first = identity(buffers.take_buffer(MIB))
    assert identity(buffers.take_buffer(MIB - 5)) == first


def test_a_buffer_that_is_looked_at_is_left_alone() -> None:
    buffers = FrameBuffers()
    held = buffers.take_buffer(MIB)
    held[:3] = b"abc"
    other = buffers.take_buffer(MIB)
    other[:3] = b"xyz"
    assert bytes(held[:3]) == b"abc"
    assert identity(held) != identity(other)


def test_a_slice_and_an_arrow_buffer_count_as_looking() -> None:
    buffers = FrameBuffers()
    part = buffers.take_buffer(MIB)[10:20]
    arrow = pa.py_buffer(buffers.take_buffer(MIB))
    third = buffers.take_buffer(MIB)
    third[:] = b"\xff" * MIB
    assert bytes(part) == bytes(10)
    assert arrow.to_pybytes() == bytes(MIB)


def test_the_view_has_the_size_asked_for() -> None:
    assert [len(FrameBuffers().take_buffer(size)) for size in (4, 70_000, MIB + 1)] == [4, 70_000, MIB + 1]


def test_only_so_many_buffers_are_kept_and_clear_forgets_them() -> None:
    buffers = FrameBuffers(kept=1)
    first, second = buffers.take_buffer(MIB), buffers.take_buffer(MIB)
    first[:5], second[:5] = b"first", b"secnd"
    del first, second
    assert bytes(buffers.take_buffer(MIB)[:5]) == b"secnd"
    buffers.clear()
    assert bytes(buffers.take_buffer(MIB)[:5]) == bytes(5)
