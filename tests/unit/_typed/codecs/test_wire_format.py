"""The id of the schema before each value."""

from __future__ import annotations

import uuid
import zlib

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs import wire_format as module
from pyspark_kafka._typed.codecs.values import BadValue, Reason
from pyspark_kafka._typed.codecs.wire_format import FramedValues, confluent_prefix, read_wire_format
from pyspark_kafka.errors import SchemaError

GUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]))


def contents(found: FramedValues) -> list[bytes | None]:
    """Return the values behind their framing; None for those that are bad."""
    return [
        None if place < 0 else text[found.skipped :]
        for text, place in zip(found.values.to_pylist(), found.places.tolist(), strict=True)
    ]


@pytest.mark.parametrize("schema_id", [0, 1, 258, 2**31 - 1, -1])
def test_an_id_is_read_as_it_was_written(schema_id: int) -> None:
    values = pa.array([confluent_prefix(schema_id) + b"x", None, confluent_prefix(schema_id)], pa.binary())
    found = read_wire_format(values, "confluent")
    assert (found.bad, found.ids, found.places.tolist()) == ([], [schema_id], [0, -1, 0])
    assert found.id_texts().to_pylist() == [str(schema_id), None, str(schema_id)]
    assert contents(found) == [b"x", None, b""]


def test_values_without_an_id_are_bad() -> None:
    values = pa.array([b"", b"\0\0\0\0", b"\1\0\0\0\1", None, b"\0\0\0\0\7v"], pa.binary())
    found = read_wire_format(values, "confluent")
    assert found.bad == [
        BadValue(0, Reason.INCOMPLETE_HEADER, "it has 0 bytes, fewer than the 5 before a value"),
        BadValue(1, Reason.INCOMPLETE_HEADER, "it has 4 bytes, fewer than the 5 before a value"),
        BadValue(2, Reason.INVALID_MAGIC_BYTE, "it begins with the byte 1, not with 0"),
    ]
    assert (found.places.tolist(), found.ids) == ([-1, -1, -1, -1, 0], [7])
    assert found.id_texts().to_pylist() == [None, None, None, None, "7"]


@pytest.mark.parametrize("framing", ["confluent", "glue"])
@pytest.mark.parametrize("values", [[], [None], [b""], [b"\0"]])
def test_arrays_without_a_whole_value_have_no_ids(values: list[bytes | None], framing: str) -> None:
    found = read_wire_format(pa.array(values, pa.binary()), framing)
    assert found.ids == []
    assert found.id_texts().to_pylist() == [None] * len(values)


def test_a_slice_has_the_ids_of_its_rows() -> None:
    values = pa.array([confluent_prefix(number) for number in range(5)], pa.large_binary()).slice(2, 2)
    assert read_wire_format(values, "confluent").id_texts().to_pylist() == ["2", "3"]


def test_glue_has_an_id_of_sixteen_bytes_and_may_be_compressed() -> None:
    other = uuid.UUID(int=5)
    values = [
        b"\3\0" + GUID.bytes + b"plain",
        b"\3\5" + GUID.bytes + zlib.compress(b"compressed"),
        None,
        b"\3\0" + other.bytes,
        b"\3\5" + GUID.bytes + b"no zlib",
        b"\3\5" + GUID.bytes + zlib.compress(b"cut short")[:-3],
        b"\3\5" + GUID.bytes + zlib.compress(b"more") + b"!",
        b"\4\0" + GUID.bytes,
        b"\3\1" + GUID.bytes,
        b"\3\0" + GUID.bytes[:15],
    ]
    found = read_wire_format(pa.array(values, pa.binary()), "glue")
    assert found.id_texts().to_pylist() == [str(GUID), str(GUID), None, str(other)] + [None] * 6
    assert contents(found) == [b"plain", b"compressed", None, b""] + [None] * 6
    assert found.bad == [
        BadValue(4, Reason.DECODE_FAILED, "it cannot be inflated"),
        BadValue(5, Reason.DECODE_FAILED, "what is compressed ends early"),
        BadValue(6, Reason.DECODE_FAILED, "bytes follow what is compressed"),
        BadValue(7, Reason.INVALID_MAGIC_BYTE, "it begins with 4, not 3"),
        BadValue(8, Reason.INVALID_MAGIC_BYTE, "it names the compression 1, not 0 or 5"),
        BadValue(9, Reason.INCOMPLETE_HEADER, "it has 17 bytes, fewer than the 18 before a value"),
    ]


def test_a_compressed_value_that_grows_beyond_bounds_is_bad() -> None:
    bomb = b"\3\5" + GUID.bytes + zlib.compress(bytes(33 << 20))
    found = read_wire_format(pa.array([bomb, b"\3\0" + GUID.bytes + b"x"], pa.binary()), "glue")
    assert [each.row for each in found.bad] == [0]
    assert contents(found) == [None, b"x"]


def test_compressed_values_that_are_too_large_together_are_bad_from_the_one_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FREE_INFLATED", 1000)
    bombs = [b"\3\5" + GUID.bytes + zlib.compress(bytes([each]) * 1000) for each in range(4)]
    # What a value may become by its own bytes is spoiled by none before it.
    plain = b"\3\5" + GUID.bytes + zlib.compress(bytes(range(200)))
    found = read_wire_format(pa.array([bombs[0][:-3], *bombs, plain], pa.binary()), "glue")
    assert [len(each) for each in contents(found) if each is not None] == [1000, 1000, 200]
    assert [(each.row, each.message.partition(",")[0]) for each in found.bad] == [
        (0, "what is compressed ends early"),
        (3, "it inflates to more than 32 MiB"),
        (4, "it inflates to more than 32 MiB"),
    ]


def test_a_header_has_the_id() -> None:
    def header(value: bytes | None, name: str = "__value_schema_id") -> dict[str, object]:
        return {"key": name, "value": value}

    rows = [
        [header(b"\1" + GUID.bytes)],
        [header(b"\0\0\0\0\7")],
        [header(b"\1" + GUID.bytes), header(b"\0\0\0\0\x08"), header(b"?", "other")],
        [],
        None,
        [header(b"\1" + GUID.bytes, "__key_schema_id")],
        [header(None)],
        [header(b"")],
        [header(b"\2")],
        [header(b"\1short")],
        [header(b"\1" + GUID.bytes + b"\2\4")],
        [header(b"\1" + GUID.bytes)],
    ]
    values = pa.array([b"x"] * 11 + [None], pa.binary())
    found = read_wire_format(values, "confluentHeader", pa.array(rows, HEADERS))
    assert found.id_texts().to_pylist() == [str(GUID), "7", "8", *[None] * 7, str(GUID), None]
    assert found.tails[found.places[10]] == b"\2\4"
    assert [(each.row, each.reason.value, each.message) for each in found.bad] == [
        (3, "INCOMPLETE_HEADER", "its record has no header '__value_schema_id'"),
        (4, "INCOMPLETE_HEADER", "its record has no header '__value_schema_id'"),
        (5, "INCOMPLETE_HEADER", "its record has no header '__value_schema_id'"),
        (6, "INCOMPLETE_HEADER", "its header '__value_schema_id' is null"),
        (7, "INCOMPLETE_HEADER", "the header with its schema is empty"),
        (8, "INVALID_MAGIC_BYTE", "the header with its schema begins with the byte 2, not with 0 or 1"),
        (9, "INCOMPLETE_HEADER", "the header with its schema has 6 bytes, fewer than 17"),
    ]
    keys = read_wire_format(values.slice(5, 1), "confluentHeader", pa.array(rows, HEADERS).slice(5, 1), is_key=True)
    assert keys.id_texts().to_pylist() == [str(GUID)]


def test_an_id_that_has_no_room_is_refused() -> None:
    with pytest.raises(SchemaError, match="4 bytes for the id of a schema, too few for 2147483648"):
        confluent_prefix(1 << 31)
