"""Protobuf as Google's parser reads it."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError
from hypothesis import assume, given
from hypothesis import strategies as st

from kit.golden_formats import KnownSchemas
from kit.protobuf_schema import everything
from kit.protobuf_schemas import broken, evolved, file_set, files, in_dictionaries, message_of, messages_of, row_of
from pyspark_kafka._typed.codecs.protobuf.by_schema import MessageDecoder
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.encoding import ProtobufEncoder
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka._typed.codecs.wire_format import confluent_prefix, read_wire_format

DESCRIPTOR, MESSAGE = everything()
DECODER = ProtobufDecoder(DESCRIPTOR)
# Fields that no schema has: a number, a group, with one in it, and a text.
UNKNOWN = st.sampled_from((b"", b"\xf8\x07\x01", b"\xfb\x07\xfb\x07\x08\x01\xfc\x07\xfc\x07", b"\xfa\x07\x02\x0b\x0b"))
MESSAGES = st.builds(
    MESSAGE,
    i=st.integers(-(1 << 31), (1 << 31) - 1),
    l=st.integers(-(1 << 63), (1 << 63) - 1),
    u=st.integers(0, (1 << 64) - 1),
    w=st.integers(0, (1 << 32) - 1),
    # ptars writes -0.0 as 0.
    f=st.floats(width=32, allow_nan=False).map(lambda number: number + 0.0),
    d=st.floats(allow_nan=False).map(lambda number: number + 0.0),
    t=st.booleans(),
    s=st.text(max_size=5),
    b=st.binary(max_size=5),
    o=st.none() | st.builds(dict, x=st.integers(-9, 9)),
    os=st.lists(st.builds(dict, x=st.integers(-9, 9)), max_size=2),
    m=st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2),
    # A number without a name, too.
    e=st.integers(0, 2),
    n=st.lists(st.integers(-9, 9), max_size=3),
    q=st.none() | st.text(max_size=3),
)


@given(st.lists(st.none() | MESSAGES, min_size=1, max_size=4))
def test_messages_are_read_and_written_as_google_has_them(messages: list[Any]) -> None:
    texts = [None if each is None else each.SerializeToString() for each in messages]
    found = DECODER.decode(pa.array(texts, pa.binary()))
    found.column.validate(full=True)
    assert found.bad == []
    for row, each in zip(found.column.to_pylist(), messages, strict=True):
        if each is not None:
            assert (row["i"], row["l"], int(row["u"]), row["w"]) == (each.i, each.l, each.u, each.w)
            assert (row["f"], row["d"], row["t"], row["s"], row["b"]) == (each.f, each.d, each.t, each.s, each.b)
            assert (row["o"] and row["o"]["x"]) == (each.o.x if each.HasField("o") else None)
            assert [one["x"] for one in row["os"]] == [one.x for one in each.os]
            assert dict(row["m"]) == dict(each.m)
            assert row["n"] == list(each.n)
            assert row["q"] == (each.q if each.HasField("q") else None)
    written = ProtobufEncoder(DESCRIPTOR, found.column.type).encode(found.column).to_pylist()
    assert [None if text is None else MESSAGE.FromString(text) for text in written] == messages


@given(MESSAGES, st.data())
def test_values_that_were_changed_are_read_or_named_and_spoil_no_other(message: Any, data: st.DataObject) -> None:
    raw = message.SerializeToString()
    broken = bytearray(raw)
    for _ in range(data.draw(st.integers(0, 3))):
        if broken:
            broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    broken = broken[: data.draw(st.integers(0, len(broken)))] + data.draw(st.binary(max_size=3))
    found = DECODER.decode(pa.array([raw, bytes(broken), raw], pa.binary()))
    found.column.validate(full=True)
    assert [each.row for each in found.bad] in ([], [1])
    assert found.column[0] == found.column[2]


@given(st.data())
def test_messages_of_any_schema_are_read_and_written_as_google_has_them(data: st.DataObject) -> None:
    descriptor, message = message_of(data.draw(files()))
    rows = data.draw(st.lists(st.none() | messages_of(descriptor), min_size=1, max_size=4))
    texts = [None if each is None else each.SerializeToString() for each in rows]
    found = ProtobufDecoder(descriptor).decode(pa.array(texts, pa.binary()))
    found.column.validate(full=True)
    assert found.bad == []
    read = [in_dictionaries(row, descriptor) for row in found.column.to_pylist()]
    assert read == [None if each is None else row_of(each) for each in rows]
    written = ProtobufEncoder(descriptor, found.column.type).encode(found.column).to_pylist()
    assert [None if text is None else message.FromString(text) for text in written] == rows


@given(st.data())
def test_messages_of_another_schema_are_those_that_google_reads(data: st.DataObject) -> None:
    file = data.draw(files())
    descriptor, _ = message_of(file)
    reader, reader_class = message_of(data.draw(evolved(file)))
    rows = data.draw(st.lists(messages_of(descriptor), min_size=1, max_size=3))
    texts = [each.SerializeToString() for each in rows]
    found = ProtobufDecoder(reader).decode(pa.array(texts, pa.binary()))
    found.column.validate(full=True)
    assert found.bad == []
    read = [in_dictionaries(row, reader) for row in found.column.to_pylist()]
    assert read == [row_of(reader_class.FromString(text)) for text in texts]


@given(st.data())
def test_a_schema_that_fits_the_readers_makes_no_value_bad(data: st.DataObject) -> None:
    file = data.draw(files())
    descriptor, _ = message_of(file)
    reader, reader_class = message_of(data.draw(evolved(file)))
    rows = data.draw(st.lists(messages_of(descriptor), min_size=1, max_size=3))
    texts = [each.SerializeToString() for each in rows]
    schema = RegisteredSchema("PROTOBUF", base64.b64encode(file_set(file)).decode(), schema_id=1)
    decoder = MessageDecoder(reader, ProtobufDecoder(reader).arrow_type, KnownSchemas([schema]))
    framed = read_wire_format(
        pa.array([confluent_prefix(1) + b"\0" + each for each in texts], pa.binary()), "confluent"
    )
    found = decoder.decode(framed)
    assert found.bad == []
    read = [in_dictionaries(row, reader) for row in found.column.to_pylist()]
    assert read == [row_of(reader_class.FromString(text)) for text in texts]


@given(st.data())
def test_several_messages_in_one_value_are_merged_as_google_merges_them(data: st.DataObject) -> None:
    descriptor, message = message_of(data.draw(files()))
    parts = data.draw(st.lists(messages_of(descriptor), min_size=2, max_size=3))
    value = b"".join(each.SerializeToString() + data.draw(UNKNOWN) for each in parts)
    found = ProtobufDecoder(descriptor).decode(pa.array([value], pa.binary()))
    found.column.validate(full=True)
    assert found.bad == []
    assert in_dictionaries(found.column[0].as_py(), descriptor) == row_of(message.FromString(value))


@given(st.data())
def test_values_that_google_refuses_are_bad_and_no_others(data: st.DataObject) -> None:
    descriptor, message = message_of(data.draw(files()))
    given_message = data.draw(messages_of(descriptor))
    raw = given_message.SerializeToString()
    value = data.draw(broken(raw + data.draw(UNKNOWN) + raw))
    found = ProtobufDecoder(descriptor).decode(pa.array([raw, value, raw], pa.binary()))
    found.column.validate(full=True)
    try:
        expected = message.FromString(value)
    except DecodeError:
        assert [each.row for each in found.bad] == [1]
    else:
        assert found.bad == []
        assume("nan" not in str(expected))
        assert in_dictionaries(found.column[1].as_py(), descriptor) == row_of(expected)
    assert found.column[0] == found.column[2]
