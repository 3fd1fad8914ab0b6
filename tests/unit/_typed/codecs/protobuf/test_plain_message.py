"""The part of a schema that ptars is given."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory

from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message
from pyspark_kafka._typed.codecs.protobuf.encoding import ProtobufEncoder
from pyspark_kafka._typed.codecs.protobuf.field_selection import narrow_message
from pyspark_kafka._typed.codecs.protobuf.handler.plain_message import plain_message, used_files
from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema
from pyspark_kafka.errors import SchemaError

# Google's compiler takes all of them: their names in JSON differ.
ALIKE = """
syntax = "proto3"; package p;
message Clean { int64 a = 1; }
message Alike {
  int64 id = 1; int64 ID = 2; string a_b = 3; string ab = 4;
  Inner inner = 5; repeated Inner list = 6; map<string, Inner> by = 7; optional bool f8 = 8;
  oneof f1 { int32 x = 9; Kind X = 10; }
  enum Kind { NONE = 0; f2 = 1; }
  message Inner { Kind kind = 1; Kind KIND = 2; repeated Kind kinds = 3; message Inmost { int32 i = 1; } }
  Inner.Inmost most = 11;
}
"""


def message(text: str, name: str, *others: NamedSchema) -> Any:
    return find_message(read_file_set(RegisteredSchema("PROTOBUF", text, others)), name)


def test_fields_whose_names_are_one_in_camel_case_are_columns(capfd: pytest.CaptureFixture[str]) -> None:
    descriptor = message(ALIKE, "p.Alike")
    made = message_factory.GetMessageClass(descriptor)
    inner = {"kind": 1, "KIND": 0, "kinds": [1, 0, 7]}
    rows = [
        made(id=1, ID=2, a_b="x", ab="y", inner=inner, list=[inner, {}], by={"k": inner}, f8=False, X=1, most={"i": 1}),
        None,
        made(x=0),
    ]
    values = pa.array([None if each is None else each.SerializeToString() for each in rows], pa.binary())
    read = ProtobufDecoder(descriptor).decode(values)
    read.column.validate(full=True)
    assert read.bad == []
    read_inner = {"kind": "f2", "KIND": "NONE", "kinds": ["f2", "NONE", "7"]}
    none = {"kind": "NONE", "KIND": "NONE", "kinds": []}
    assert read.column[0].as_py() == {
        "id": 1,
        "ID": 2,
        "a_b": "x",
        "ab": "y",
        "inner": read_inner,
        "list": [read_inner, none],
        "by": [("k", read_inner)],
        "f8": False,
        "x": None,
        "X": "f2",
        "most": {"i": 1},
    }
    # In order of the numbers of the fields, as Google's programs write.
    assert ProtobufEncoder(descriptor, read.column.type).encode(read.column).equals(values)
    some = pa.struct([("ID", pa.int64()), ("inner", pa.struct([("KIND", pa.string())]))])
    narrow = ProtobufDecoder(narrow_message(descriptor, some), descriptor).decode(values).column
    assert narrow.to_pylist() == [
        {"ID": 2, "inner": {"KIND": "NONE"}},
        None,
        {"ID": 0, "inner": None},
    ]
    # A struct may have some of the fields, in any order.
    few = pa.array([{"ab": "y", "id": 3}], pa.struct([("ab", pa.string()), ("id", pa.int64())]))
    assert ProtobufEncoder(descriptor, few.type).encode(few).to_pylist() == [made(id=3, ab="y").SerializeToString()]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["Clean", "Alike"])
def test_a_message_beside_ones_that_ptars_refuses_is_read(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = f'syntax = "proto3"; import "alike.proto"; message M {{ p.{name} other = 1; int64 id = 2; }}'
    decoder = ProtobufDecoder(message(text, "M", NamedSchema("alike.proto", ALIKE)))
    assert decoder.decode(pa.array([b"\x10\x05"])).column.to_pylist() == [{"other": None, "id": 5}]
    assert capfd.readouterr().err == ""


def test_name_in_json_may_be_no_text(capfd: pytest.CaptureFixture[str]) -> None:
    field = b"\x52\x01\xff"
    made = b"\x0a\x01M\x12" + bytes([len(field) + 7]) + b"\x0a\x01x\x18\x01\x28\x05" + field
    raw = b"\x0a" + bytes([len(made) + 5]) + b"\x0a\x01f\x22" + bytes([len(made)]) + made
    assert ProtobufDecoder(find_message(raw)).decode(pa.array([b"\x08\x05"])).column.to_pylist() == [{"x": 5}]
    assert capfd.readouterr().err == ""


USING = """
syntax = "proto3"; package u; import "other.proto"; import "unused.proto"; import "google/protobuf/timestamp.proto";
message First { unused.Thing thing = 1; }
message Outer {
  message Used { other.Kind kind = 1; google.protobuf.Timestamp at = 2; repeated int32 packed = 3 [packed = false]; }
  int64 id = 1;
}
message M { Outer.Used used = 1; }
service S { rpc Ask(First) returns (M); }
"""
OTHERS = (
    NamedSchema("other.proto", 'syntax = "proto3"; package other; enum Kind { NONE = 0; } message Not {}'),
    NamedSchema("unused.proto", 'edition = "2023"; package unused; message Thing { int32 a = 1; }'),
)


def test_plain_message_has_what_is_used_and_nothing_else() -> None:
    descriptor = message(USING, "u.M", *OTHERS)
    names = ["google/protobuf/timestamp.proto", "other.proto", "schema.proto"]
    assert [each.name for each in used_files(descriptor)] == names
    plain = plain_message(descriptor)
    assert plain.names == {}
    copied = descriptor_pb2.FileDescriptorProto()
    plain.descriptor.file.CopyToProto(copied)
    assert [each.name for each in copied.message_type] == ["Outer", "M"]
    assert (list(copied.message_type[0].field), len(copied.message_type[0].nested_type[0].field)) == ([], 3)
    assert not copied.message_type[0].nested_type[0].field[2].options.packed
    assert list(copied.dependency) == names[:2]
    assert len(copied.service) == 0
    # An edition is refused where it is used.
    assert ProtobufDecoder(descriptor).arrow_type.num_fields == 1
    with pytest.raises(SchemaError, match=r"file 'unused\.proto' is of an edition"):
        ProtobufDecoder(message(USING, "u.First", *OTHERS))
