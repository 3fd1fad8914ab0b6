"""Zig-zag varints."""

from __future__ import annotations

import io

import fastavro
import pytest

from pyspark_kafka._typed.codecs.zigzag import put_zigzag, read_zigzag


@pytest.mark.parametrize("number", [0, -1, 1, 63, 64, -64, -65, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
def test_a_number_is_written_as_avro_has_it_and_read_again(number: int) -> None:
    out, expected = bytearray(b"x"), io.BytesIO()
    put_zigzag(number, out)
    fastavro.schemaless_writer(expected, "long", number)
    assert out[1:] == expected.getvalue()
    assert read_zigzag(bytes(out) + b"more", 1) == (number, len(out))


def test_a_number_that_ends_early_or_is_too_long_is_none() -> None:
    assert read_zigzag(b"\x80", 0) is None
    assert read_zigzag(b"", 0) is None
    assert read_zigzag(b"\x80" * 5 + b"\0", 0, 5) is None
