"""The indexes of a message before its value."""

from __future__ import annotations

import pytest

from pyspark_kafka._typed.codecs.protobuf.message_index import (
    MessageIndexError,
    UnsignedIndexError,
    read_message_index,
    read_message_name,
    write_message_index,
)


@pytest.mark.parametrize("path", [(0,), (1,), (0, 0), (200, 3, 70_000), tuple(range(16))])
def test_a_path_is_read_as_it_was_written(path: tuple[int, ...]) -> None:
    raw = write_message_index(path)
    assert read_message_index(b"id" + raw + b"v", 2) == (path, 2 + len(raw))


def test_the_usual_path_has_two_forms() -> None:
    assert read_message_index(b"\x02\x00", 0) == ((0,), 2)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "ends before its message"),
        (b"\x04\x02", "ends before its message"),
        (b"\x80", "ends before its message"),
        (b"\x11", "of -9 levels"),
        (b"\x22" + b"\x00" * 17, "of 17 levels"),
        (b"\xfe\xff\xff\xff\x0f", "levels"),
        (b"\xff" * 6, "more than 5 bytes"),
        (b"\x04\x00\x01", "negative index"),
        # A name that is cut short.
        (b"\x07\x0a\x05Orde", "of -4 levels"),
    ],
)
def test_indexes_that_are_not_valid_are_refused(raw: bytes, text: str) -> None:
    with pytest.raises(MessageIndexError, match=text):
        read_message_index(raw, 0)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        # A message that is not nested, and one within two others.
        (b"\x01\x01", "the indexes of its message are varints without zig-zag, as confluent-kafka for Python"),
        (b"\x03\x01\x00\x02", "the indexes of its message are varints without zig-zag"),
        (b"\x0f", "the indexes of its message are varints without zig-zag"),
        # One within another is a single level with zig-zag.
        (b"\x02\x01\x00", "the indexes of its message are varints without zig-zag"),
    ],
)
def test_indexes_without_zigzag_are_named_as_such(raw: bytes, text: str) -> None:
    with pytest.raises(UnsignedIndexError, match=text) as caught:
        read_message_index(b"id" + raw, 2)
    assert "use.deprecated.format" in str(caught.value)


def apicurio_name(name: str) -> bytes:
    """Return the name of a message as Apicurio's serializers write it: a message with one field."""
    return bytes([len(name) + 2, 0x0A, len(name)]) + name.encode()


@pytest.mark.parametrize("name", ["A", "Order", "_x9", "O" * 125])
@pytest.mark.parametrize("rest", [b"", b"\x08\x01", b"Order"])
def test_a_name_is_read_as_it_was_written(name: str, rest: bytes) -> None:
    raw = apicurio_name(name)
    assert read_message_name(b"id" + raw + rest, 2) == (name, 2 + len(raw))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00",
        b"\x07",
        b"\x07\x0aOrder",
        b"\x07\x0a\x05Orde",
        b"\x08\x0a\x05Order",
        b"\x07\x12\x05Order",
        b"\x02\x0a\x00",
    ],
)
def test_bytes_that_are_no_reference_have_no_name(raw: bytes) -> None:
    assert read_message_name(raw, 0) is None


def test_a_name_read_as_indexes_names_no_message_of_a_file() -> None:
    """So a value with indexes is never read as one with a name, whose message is not nested."""
    read = 0
    for size in range(1, 126):
        try:
            path, _ = read_message_index(apicurio_name("b" * size) + bytes(20), 0)
        except MessageIndexError:
            continue
        read += 1
        assert len(path) > 1
    assert read
