"""The indexes of a message before its value."""

from __future__ import annotations

import pytest

from pyspark_kafka.formats.protobuf.message_index import MessageIndexError, read_message_index, write_message_index


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
