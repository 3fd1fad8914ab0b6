"""Messages that have themselves in them, with bytes in that place."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import message_factory

from kit.protobuf_schema import everything
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.descriptors import build_handler, find_message, is_repeated
from pyspark_kafka._typed.codecs.protobuf.encoding import ProtobufEncoder
from pyspark_kafka._typed.codecs.protobuf.field_selection import narrow_message
from pyspark_kafka._typed.codecs.protobuf.handler.recursive_messages import unroll_message
from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema
from pyspark_kafka.errors import SchemaError

IMPORTED = 'syntax = "proto2"; package other; message Node__0 {} message Pair { required int32 n = 1 [default = 5]; }'
TEXT = """
syntax = "proto3";
package p;
import "other.proto";
message Node {
  repeated Node kids = 1 [deprecated = true];
  map<string, Node> by = 2;
  oneof o { Node one = 3; string _next = 4; }
  Node next = 5;
  optional int32 n = 6;
  Leaf leaf = 7;
  Link link = 8;
  other.Pair pair = 9;
  message Leaf { Kind kind = 1; enum Kind { NONE = 0; } }
}
message Link { Node node = 1; Link link = 2; Node.Leaf leaf = 3; }
message Node__0 {}
"""


def message(text: str, name: str, *others: NamedSchema) -> Any:
    return find_message(read_file_set(RegisteredSchema("PROTOBUF", text, others)), name)


def shape(descriptor: Any) -> dict[str, Any]:
    """Return number, whether it is a list, whether it has presence and kind of each field; of messages their fields."""
    found: dict[str, Any] = {}
    for each in descriptor.fields:
        inner = each.message_type
        kind = "bytes" if each.type == each.TYPE_BYTES else shape(inner) if inner is not None else "scalar"
        found[each.name] = (each.number, is_repeated(each), each.has_presence, kind)
    return found


def test_a_message_within_itself_is_bytes_and_the_rest_is_as_it_was() -> None:
    descriptor = message(TEXT, "p.Node", NamedSchema("other.proto", IMPORTED))
    unrolled = unroll_message(descriptor)
    leaf = (7, False, True, {"kind": (1, False, False, "scalar")})
    assert shape(unrolled) == {
        "kids": (1, True, False, "bytes"),
        "by": (2, True, False, {"key": (1, False, False, "scalar"), "value": (2, False, False, "bytes")}),
        "one": (3, False, True, "bytes"),
        "_next": (4, False, True, "scalar"),
        "next": (5, False, True, "bytes"),
        "n": (6, False, True, "scalar"),
        "leaf": leaf,
        "link": (
            8,
            False,
            True,
            {"node": (1, False, True, "bytes"), "link": (2, False, True, "bytes"), "leaf": (3, *leaf[1:])},
        ),
        "pair": (9, False, True, {"n": (1, False, True, "scalar")}),
    }
    assert [each.name for each in unrolled.fields_by_name["one"].containing_oneof.fields] == ["one", "_next"]
    assert unrolled.fields_by_name["leaf"].message_type.full_name == "p.Node.Leaf"


def test_a_message_that_ends_is_returned_as_it_is() -> None:
    descriptor = everything()[0]
    assert unroll_message(descriptor) is descriptor


def test_numbers_of_messages_that_are_copied_count_for_each_copy() -> None:
    """The library has a table for each of them: they are bytes, where copies were too many."""
    text = 'syntax = "proto3"; message A { B b = 1; C c = 2; A a = 300000; } message B { C c = 1; A a = 2; } '
    text += "message C { B b = 1; A a = 400000; }"
    assert [each.type for each in build_handler(message(text, "A")).fields] == [pa.binary()] * 3
    with pytest.raises(SchemaError, match="the largest numbers of all its messages may be 1000000 together"):
        build_handler(message(text.replace("300000", "3000000"), "A"))


def tangled(count: int) -> str:
    """Return messages each of which has every other one, and one that has the first."""
    text = 'syntax = "proto3"; package t; message Plan { string name = 1; repeated Step steps = 2; End end = 3; } '
    text += "message Step { oneof what { N0 n = 1; End end = 2; } } message End { int64 id = 1; } "
    for each in range(count):
        fields = " ".join(f"N{other} n{other} = {other + 1};" for other in range(count))
        text += f"message N{each} {{ {fields} End end = 100; }} "
    return text


def test_messages_within_themselves_are_bytes_if_they_were_too_many_columns() -> None:
    descriptor = message(tangled(9), "t.Plan")
    decoder = ProtobufDecoder(descriptor)
    end = pa.struct([("id", pa.int64())])
    step = pa.struct([("n", pa.binary()), ("end", end)])
    assert decoder.arrow_type == pa.struct([("name", pa.string()), ("steps", pa.list_(step)), ("end", end)])
    made = message_factory.GetMessageClass(descriptor)
    given = made(name="a", steps=[{"n": {"n3": {"end": {"id": 4}}}}, {"end": {"id": 1}}, {}])
    values = pa.array([given.SerializeToString(), None, b""])
    read = decoder.decode(values)
    assert read.bad == []
    rows = read.column.to_pylist()
    assert rows[0]["steps"] == [
        {"n": given.steps[0].n.SerializeToString(), "end": None},
        {"n": None, "end": {"id": 1}},
        {"n": None, "end": None},
    ]
    assert ProtobufEncoder(descriptor, read.column.type).encode(read.column).equals(values)
    # The bytes are read as messages of their own, whose messages are bytes.
    inner = ProtobufDecoder(message(tangled(9), "t.N0"))
    assert inner.arrow_type == pa.struct([*((f"n{other}", pa.binary()) for other in range(9)), ("end", end)])
    assert inner.decode(pa.array([rows[0]["steps"][0]["n"]])).column[0]["n3"].as_py() == b"\xa2\x06\x02\x08\x04"


def test_columns_of_a_message_do_not_depend_on_which_of_them_are_read() -> None:
    """Of few columns all copies would be few enough."""
    descriptor = message(tangled(9), "t.Plan")
    wanted = pa.struct([("steps", pa.list_(pa.struct([("n", pa.binary())])))])
    narrow = narrow_message(descriptor, wanted)
    assert ProtobufDecoder(narrow, descriptor).arrow_type == wanted
    small = message(tangled(2), "t.Plan")
    assert pa.types.is_struct(ProtobufDecoder(small).arrow_type.field("steps").type.value_type.field("n").type)
