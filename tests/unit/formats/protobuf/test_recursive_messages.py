"""Messages that have themselves in them, with bytes in that place."""

from __future__ import annotations

from typing import Any

import pytest

from kit.protobuf_schema import everything
from pyspark_kafka.errors import SchemaError
from pyspark_kafka.formats.protobuf.descriptors import build_handler, find_message, is_repeated
from pyspark_kafka.formats.protobuf.proto_text import read_file_set
from pyspark_kafka.formats.protobuf.recursive_messages import unroll_message
from pyspark_kafka.formats.schemas import NamedSchema, RegisteredSchema

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
    """The library has a table for each of them."""
    text = 'syntax = "proto3"; message A { B b = 1; C c = 2; A a = 300000; } message B { C c = 1; A a = 2; } '
    text += "message C { B b = 1; A a = 400000; }"
    with pytest.raises(SchemaError, match="the largest numbers of all its messages may be 1000000 together"):
        build_handler(message(text, "A"))
