"""The indexes of a message before its value."""

from __future__ import annotations

import pytest

from pyspark_kafka.formats.protobuf.message_index import (
    MessageIndexError,
    read_message_index,
    read_message_name,
    write_message_index,
    write_message_name,
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
        (b"\x01", "of -1 levels"),
        (b"\x22" + b"\x00" * 17, "of 17 levels"),
        (b"\xfe\xff\xff\xff\x0f", "levels"),
        (b"\xff" * 6, "more than 5 bytes"),
        (b"\x02\x01", "negative index"),
    ],
)
def test_indexes_that_are_not_valid_are_refused(raw: bytes, text: str) -> None:
    with pytest.raises(MessageIndexError, match=text):
        read_message_index(raw, 0)


@pytest.mark.parametrize("name", ["A", "Order", "_x9", "O" * 125])
@pytest.mark.parametrize("rest", [b"", b"\x08\x01", b"Order"])
def test_a_name_is_read_as_it_was_written(name: str, rest: bytes) -> None:
    raw = write_message_name(name)
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
            path, _ = read_message_index(write_message_name("b" * size) + bytes(20), 0)
        except MessageIndexError:
            continue
        read += 1
        assert len(path) > 1
    assert read
