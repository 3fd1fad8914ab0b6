"""The message of a Protobuf schema."""

from __future__ import annotations

import re
import sys

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory

from kit.protobuf_schema import file_set
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message
from pyspark_kafka._typed.codecs.protobuf.encoding import ProtobufEncoder
from pyspark_kafka._typed.codecs.protobuf.field_selection import narrow_message
from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema
from pyspark_kafka.errors import MissingDependencyError, SchemaError
from pyspark_kafka.version import install_command


def test_first_message_of_the_last_file_is_the_default() -> None:
    assert find_message(file_set().SerializeToString()).full_name == "kit.Other"
    assert find_message(file_set().SerializeToString(), "kit.Everything.MEntry").full_name == "kit.Everything.MEntry"


def test_two_versions_of_a_schema_live_side_by_side() -> None:
    newer = file_set()
    newer.file[0].message_type[0].field.add(name="y", number=2, type=1, label=1)
    old, new = (find_message(each.SerializeToString()) for each in (file_set(), newer))
    assert [len(each.fields) for each in (old, new)] == [1, 2]


@pytest.mark.parametrize(
    ("raw", "name", "text"),
    [
        (b"\xff", None, "The Protobuf schema cannot be used"),
        (b"", None, "it has no file"),
        (descriptor_pb2.FileDescriptorSet(file=[{"name": "empty.proto"}]).SerializeToString(), None, "has no message"),
        (file_set().SerializeToString(), "kit.Missing", "it has no message 'kit.Missing'"),
        (
            descriptor_pb2.FileDescriptorSet(file=[{"name": "a.proto", "dependency": ["b.proto"]}]).SerializeToString(),
            None,
            "The Protobuf schema cannot be used",
        ),
        (b"x" * (5 << 20), None, "more than 4194304"),
    ],
)
def test_bytes_that_are_no_schema_are_refused(raw: bytes, name: str | None, text: str) -> None:
    with pytest.raises(SchemaError, match=text):
        find_message(raw, name)


def test_a_name_that_is_no_text_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    field = b"\x0a\x01\xff\x18\x01\x20\x01\x28\x05"
    message = b"\x0a\x01M\x12" + bytes([len(field)]) + field
    raw = b"\x0a" + bytes([len(message) + 5]) + b"\x0a\x01f\x22" + bytes([len(message)]) + message
    with pytest.raises(SchemaError):
        ProtobufDecoder(find_message(raw))
    assert capfd.readouterr().err == ""


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ptars", None)
    with pytest.raises(MissingDependencyError, match=re.escape(install_command("protobuf"))):
        ProtobufDecoder(find_message(file_set().SerializeToString()))


def chained(count: int, uses: int) -> bytes:
    """Return messages each of which has the one before it so often."""
    made = descriptor_pb2.FileDescriptorSet()
    file = made.file.add(name="chain.proto", syntax="proto3")
    file.message_type.add(name="M0").field.add(name="a", number=1, type=5, label=1)
    for number in range(1, count + 1):
        message = file.message_type.add(name=f"M{number}")
        for use in range(uses):
            message.field.add(
                name=f"f{use}", number=use + 1, type=11, label=1, type_name=f".M{number - 1}", json_name=f"f{use}"
            )
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(
    ("count", "uses", "text"),
    [(30, 2, "more than 20000 parts"), (500, 1, "nests more than 60 types"), (60, 1, "nests more than 60 types")],
)
def test_messages_that_are_too_large_as_columns_are_refused_on_both_sides(count: int, uses: int, text: str) -> None:
    descriptor = find_message(chained(count, uses), f"M{count}")
    with pytest.raises(SchemaError, match=text) as caught:
        ProtobufDecoder(descriptor)
    assert caught.value.hint.startswith("Name a message with fewer fields or levels with 'valueMessage', or read ")
    with pytest.raises(SchemaError, match=text):
        ProtobufEncoder(descriptor, pa.struct([]))


def test_many_uses_of_a_message_within_the_bound_are_columns() -> None:
    assert ProtobufDecoder(find_message(chained(10, 2), "M10")).arrow_type.num_fields == 2
    assert ProtobufDecoder(find_message(chained(59, 1), "M59")).arrow_type.num_fields == 1


@pytest.mark.parametrize("names", [b"k\xff", b"kit\xff\x7froto"])
def test_name_of_a_file_that_is_no_text_is_an_error_of_the_schema(names: bytes) -> None:
    data = file_set().SerializeToString().replace(b"kit.proto", names.ljust(9, b"x"))
    with pytest.raises(SchemaError):
        ProtobufDecoder(find_message(data, "kit.Other"))


def test_field_number_that_takes_a_large_table_is_refused() -> None:
    made = descriptor_pb2.FileDescriptorSet()
    message = made.file.add(name="a.proto", syntax="proto3").message_type.add(name="M")
    message.field.add(name="a", number=900_000, type=5, label=1)
    assert ProtobufDecoder(find_message(made.SerializeToString(), "M")).arrow_type.num_fields == 1
    # The largest that Protobuf has: a table of 8 GiB, for which the process would be ended.
    message.field[0].number = (1 << 29) - 1
    with pytest.raises(SchemaError, match="message 'M' has field number 536870911; the largest numbers of all"):
        ProtobufDecoder(find_message(made.SerializeToString(), "M"))


GROUPS = """
syntax = "proto2";
message M { optional Inner inner = 1; optional int32 z = 2; }
message Inner { repeated group G = 3 { optional int32 x = 4; } optional int32 y = 5; }
"""


def test_groups_are_refused_on_both_sides_wherever_they_stand() -> None:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", GROUPS)))
    with pytest.raises(SchemaError, match=r"field 'Inner.g' is a group of proto2, which cannot be read or written"):
        ProtobufDecoder(descriptor)
    with pytest.raises(SchemaError, match=r"field 'Inner.g' is a group"):
        ProtobufEncoder(descriptor, pa.struct([("z", pa.int32())]))


def test_groups_that_are_not_among_the_columns_are_skipped() -> None:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", GROUPS)))
    kind = pa.struct([("inner", pa.struct([("y", pa.int32())])), ("z", pa.int32())])
    decoder = ProtobufDecoder(narrow_message(descriptor, kind))
    found = decoder.decode(pa.array([b"\x0a\x06\x1b\x20\x07\x1c\x28\x05\x10\x06"], pa.binary()))
    assert (found.column.to_pylist(), found.bad) == ([{"inner": {"y": 5}, "z": 6}], [])


DATES = (
    NamedSchema(
        "google/type/date.proto",
        'syntax = "proto3"; package google.type; '
        "message Date { int32 year = 1; int32 month = 2; int32 day = 3; } message Other { Date d = 1; }",
    ),
    NamedSchema(
        "google/type/timeofday.proto",
        'syntax = "proto3"; package google.type; '
        "message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }",
    ),
)
DATED = """
syntax = "proto3"; import "google/type/date.proto"; import "google/type/timeofday.proto";
message M {
  google.type.Date d = 1; repeated google.type.TimeOfDay t = 2; map<string, google.type.Date> m = 3;
  google.type.Other o = 4;
}
service S { rpc Ask(google.type.Date) returns (google.type.TimeOfDay); }
"""


def test_dates_and_times_of_day_are_structs_with_what_the_value_has() -> None:
    """A date may lack its day or its year, and be none."""
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", DATED, DATES)))
    made = message_factory.GetMessageClass(descriptor)
    messages = [
        made(d={"year": 2026, "month": 13, "day": 99}, t=[{"hours": 99}], m={"k": {"month": 2, "day": 30}}),
        made(d={}, o={"d": {"year": 2026}}),
        made(),
    ]
    column = ProtobufDecoder(descriptor).decode(pa.array([each.SerializeToString() for each in messages])).column
    none = {"year": 0, "month": 0, "day": 0}
    assert column.to_pylist() == [
        {
            "d": {"year": 2026, "month": 13, "day": 99},
            "t": [{"hours": 99, "minutes": 0, "seconds": 0, "nanos": 0}],
            "m": [("k", {"year": 0, "month": 2, "day": 30})],
            "o": None,
        },
        {"d": none, "t": [], "m": [], "o": {"d": {**none, "year": 2026}}},
        {"d": None, "t": [], "m": [], "o": None},
    ]
    written = ProtobufEncoder(descriptor, column.type).encode(column).to_pylist()
    assert [made.FromString(each) for each in written] == messages


def test_date_may_be_the_message_itself() -> None:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", DATED, DATES)), "google.type.Date")
    found = ProtobufDecoder(descriptor).decode(pa.array([b"\x08\x05"], pa.binary()))
    assert found.column.to_pylist() == [{"year": 5, "month": 0, "day": 0}]
