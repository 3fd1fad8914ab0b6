"""Columns of keys and values: formats, framings and the schemas of writers together."""

from __future__ import annotations

import base64
import errno
import json
import uuid
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2

from kit.costs import processor_s
from kit.protobuf_schema import everything, file_set
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder, DecodedColumn
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat, TypedFormat
from pyspark_kafka._typed.codecs.protobuf import by_schema as protobuf
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.message_index import write_message_index
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema, SchemaId, UnknownSchemaError
from pyspark_kafka._typed.codecs.values import BadValue, Reason
from pyspark_kafka._typed.codecs.wire_format import confluent_prefix
from pyspark_kafka.errors import RegistryError, SchemaError, SetupError


def avro(*fields: Any, references: tuple[NamedSchema, ...] = ()) -> RegisteredSchema:
    text = json.dumps({"type": "record", "name": "r", "fields": list(fields)})
    return RegisteredSchema("AVRO", text, references)


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


class Registry:
    """Schemas by id; those that it does not have are unknown."""

    def __init__(self, schemas: dict[int, RegisteredSchema]) -> None:
        self.schemas = schemas
        self.asked: list[SchemaId] = []

    def schema_by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        self.asked.append(schema_id)
        found = self.schemas.get(int(schema_id))
        if found is None:
            raise UnknownSchemaError("is not in the registry")
        return found

    def knows(self, schema_id: SchemaId) -> bool:
        del schema_id
        return False

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        raise NotImplementedError

    def find_id(self, subject: str, schema: RegisteredSchema) -> SchemaId | None:
        raise NotImplementedError

    def incompatibilities(self, subject: str, schema: RegisteredSchema) -> list[str]:
        raise NotImplementedError

    def register(self, subject: str, schema: RegisteredSchema) -> SchemaId:
        raise NotImplementedError


def decode(decoder: ColumnDecoder, *values: bytes | None) -> DecodedColumn:
    found = decoder.decode(pa.array(values, pa.binary()))
    found.column.validate(full=True)
    assert found.column.type == decoder.arrow_type
    return found


AB = pa.struct([("a", pa.int64()), ("b", pa.string())])
READER = avro(field("a", "long"), field("b", ["null", "string"], default=None))


def test_text_is_read_and_checked() -> None:
    decoder = ColumnDecoder(ColumnFormat("string", "none", pa.string()), None)
    found = decode(decoder, b"a\xc3\xa4", None, b"a\xff", b"")
    assert found.column.to_pylist() == ["aä", None, None, ""]
    assert (found.bad, found.schema_ids) == (
        [BadValue(2, Reason.DECODE_FAILED, "it is not UTF-8, after 1 bytes")],
        None,
    )
    values = pa.array([b"\xff", b"a\xff", b"b", None], pa.large_binary()).slice(1)
    again = decoder.decode(values)
    assert (again.column.to_pylist(), [each.row for each in again.bad]) == ([None, "b", None], [0])


def test_json_ids_are_reported_and_not_looked_up() -> None:
    decoder = ColumnDecoder(ColumnFormat("json", "confluent", AB), Registry({}))
    found = decode(decoder, b'\0\0\0\0\1{"a":1}', b'\1{"a":2}', None, b'\0\0\0\0\2{"a":3,"c":4}')
    assert found.column.to_pylist() == [{"a": 1, "b": None}, None, None, {"a": 3, "b": None}]
    assert [(each.row, each.reason) for each in found.bad] == [(1, Reason.INVALID_MAGIC_BYTE)]
    assert found.schema_ids is not None
    assert found.schema_ids.to_pylist() == ["1", None, None, "2"]


def test_avro_is_read_with_the_writers_schema_of_each_value() -> None:
    registry = Registry(
        {
            1: avro(field("a", "int")),
            2: READER,
            3: avro(field("b", "string")),
            4: RegisteredSchema("JSON", "{}"),
            5: avro(field("a", "Missing")),
        }
    )
    decoder = ColumnDecoder(ColumnFormat("avro", "confluent", AB, READER), registry)
    values = [
        b"\0\0\0\0\1\x02",
        b"\0\0\0\0\2\x04\x02\x02x",
        b"\0\0\0\0\3\x02x",
        None,
        b"\0\0\0\0\x09\x02",
        b"\0\0\0\0\4{}",
        b"\0\0\0\0\5\x02",
    ]
    found = decode(decoder, *values)
    assert found.column.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}, None, None, None, None, None]
    assert found.bad == [
        BadValue(
            2,
            Reason.RESOLUTION_FAILED,
            "its schema 3 does not fit the reader's at 'a': it has no such field, and the reader's is long without a "
            "default",
        ),
        BadValue(4, Reason.SCHEMA_ID_NOT_FOUND, "its schema 9 is not in the registry"),
        BadValue(5, Reason.RESOLUTION_FAILED, "its schema 4 is a schema of JSON, not of Avro"),
        BadValue(6, Reason.RESOLUTION_FAILED, "its schema 5 cannot be parsed: type 'Missing' is not defined in it"),
    ]
    assert found.schema_ids is not None
    assert found.schema_ids.to_pylist() == ["1", "2", "3", None, "9", "4", "5"]
    assert sorted(map(int, registry.asked)) == [1, 2, 3, 4, 5, 9]
    # Only what the registry may have by now is asked again.
    assert decode(decoder, *values).bad == found.bad
    assert sorted(map(int, registry.asked)) == [1, 2, 3, 4, 5, 9, 9]


def test_avro_without_a_registry_is_of_the_readers_schema() -> None:
    decoder = ColumnDecoder(ColumnFormat("avro", "confluent", AB, READER), None)
    found = decode(decoder, b"\0\0\0\0\1\x02\0", b"\0\0\0\0\2\x04\0", b"\0")
    assert found.column.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": None}, None]
    bare = ColumnDecoder(ColumnFormat("avro", "none", AB, READER), None)
    assert decode(bare, b"\x02\0", None).column.to_pylist() == [{"a": 1, "b": None}, None]


def test_named_types_of_other_subjects_are_known() -> None:
    inner = NamedSchema("x.Inner", '{"type":"record","name":"x.Inner","fields":[{"name":"i","type":"int"}]}')
    outer = NamedSchema("x.Outer", '{"type":"record","name":"x.Outer","fields":[{"name":"n","type":"x.Inner"}]}')
    schema = avro(field("o", "x.Outer"), references=(inner, outer))
    kind = pa.struct([("o", pa.struct([("n", pa.struct([("i", pa.int32())]))]))])
    decoder = ColumnDecoder(ColumnFormat("avro", "confluent", kind, schema), Registry({1: schema}))
    assert decode(decoder, b"\0\0\0\0\1\x06").column.to_pylist() == [{"o": {"n": {"i": 3}}}]


def test_fewer_fields_may_be_wanted_in_another_order() -> None:
    wanted = pa.struct([("b", pa.string())])
    decoder = ColumnDecoder(ColumnFormat("avro", "none", wanted, READER), None)
    assert decode(decoder, b"\x02\x02\x02x", None).column.to_pylist() == [{"b": "x"}, None]


def test_a_field_that_the_schema_lacks_is_refused() -> None:
    wanted = pa.struct([("c", pa.string())])
    with pytest.raises(SchemaError, match=r"Field 'value\.c' is wanted as string, and is no such field"):
        ColumnDecoder(ColumnFormat("avro", "none", wanted, READER), None)


def test_an_outage_makes_no_value_bad() -> None:
    class Down(Registry):
        def schema_by_id(self, schema_id: SchemaId) -> RegisteredSchema:
            raise RegistryError(f"no answer about {schema_id}", condition="REGISTRY_UNAVAILABLE")

    for kind in ("avro", "protobuf"):
        schema, wanted = (READER, AB) if kind == "avro" else (PROTO, pa.struct([("i", pa.int32())]))
        decoder = ColumnDecoder(ColumnFormat(kind, "confluent", wanted, schema, MESSAGE), Down({}))
        with pytest.raises(RegistryError):
            decode(decoder, b"\0\0\0\0\1\0")


def test_a_compiler_that_fails_makes_no_value_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    def start_nothing(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    text = 'syntax = "proto3"; package kit; message Everything { int32 i = 1; }'
    registry = Registry({1: RegisteredSchema("PROTOBUF", text)})
    wanted = pa.struct([("i", pa.int32())])
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluent", wanted, PROTO, MESSAGE), registry)
    value = b"\0\0\0\0\1\0\x08\1"
    with monkeypatch.context() as patch:
        patch.setattr("pyspark_kafka._typed.codecs.protobuf.proto_text.subprocess.run", start_nothing)
        with pytest.raises(SetupError, match="protoc did not start"):
            decode(decoder, value)
    found = decode(decoder, value)
    assert (found.column.to_pylist(), found.bad) == ([{"i": 1}], [])


MESSAGE = "kit.Everything"


def proto(files: descriptor_pb2.FileDescriptorSet) -> RegisteredSchema:
    return RegisteredSchema("PROTOBUF", base64.b64encode(files.SerializeToString()).decode())


PROTO = proto(file_set())
WANTED = pa.struct([("s", pa.string()), ("i", pa.int32())])


def message(schema_id: int, path: tuple[int, ...] = (1,), **fields: Any) -> bytes:
    text: bytes = everything()[1](**fields).SerializeToString()
    return confluent_prefix(schema_id) + write_message_index(path) + text


def test_protobuf_is_read_by_numbers_of_the_readers_message() -> None:
    newer = file_set()
    newer.file[0].message_type[1].field.add(name="added", number=99, type=5, label=1)
    next(each for each in newer.file[0].message_type[1].field if each.name == "i").name = "renamed"
    registry = Registry({1: PROTO, 2: proto(newer)})
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluent", WANTED, PROTO, MESSAGE), registry)
    found = decode(
        decoder, message(1, i=1), None, message(2, i=2, s="x") + b"\x98\x06\x01", confluent_prefix(1) + b"\2\2"
    )
    assert found.bad == []
    assert found.column.to_pylist() == [{"s": "", "i": 1}, None, {"s": "x", "i": 2}, {"s": "", "i": 0}]
    assert found.schema_ids is not None
    assert found.schema_ids.to_pylist() == ["1", None, "2", "1"]
    decode(decoder, message(1), message(2))
    assert registry.asked == [1, 2]


def test_values_of_another_message_are_bad() -> None:
    other = file_set()
    next(each for each in other.file[0].message_type[1].field if each.name == "i").type = 9
    registry = Registry({1: PROTO, 2: proto(other), 3: RegisteredSchema("PROTOBUF", "?")})
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluent", WANTED, PROTO, MESSAGE), registry)
    values = [
        message(1, i=1),
        message(1, (0,)),
        message(1, (7,)),
        message(2),
        message(3),
        message(4),
        confluent_prefix(1),
        confluent_prefix(1) + b"\x7e",
        message(1) + b"\x08",
    ]
    found = decode(decoder, *values)
    assert found.column.to_pylist() == [{"s": "", "i": 1}, *[None] * 8]
    assert [(each.row, each.reason.value, each.message.partition(" statement")[0]) for each in found.bad] == [
        (1, "RESOLUTION_FAILED", "its schema 1 has message 'kit.Other' where 'kit.Everything' is read"),
        (2, "RESOLUTION_FAILED", "its schema 1 has no such message as the value names"),
        (
            3,
            "RESOLUTION_FAILED",
            "its schema 2 does not fit the reader's: field 'kit.Everything.i' is string where int32 is read",
        ),
        (4, "RESOLUTION_FAILED", "its schema 3 cannot be parsed: schema.proto:1:1: Expected top-level"),
        (5, "SCHEMA_ID_NOT_FOUND", "its schema 4 is not in the registry"),
        (6, "INCOMPLETE_HEADER", "it ends before its message"),
        (7, "INCOMPLETE_HEADER", "it names a message of 63 levels"),
        (8, "DECODE_FAILED", "it is not a message of its schema"),
    ]


def test_protobuf_without_a_registry_is_a_message_of_the_readers_file() -> None:
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluent", WANTED, PROTO, MESSAGE), None)
    found = decode(decoder, message(7, i=1), message(8, (0,)))
    assert (found.column.to_pylist(), [each.row for each in found.bad]) == ([{"s": "", "i": 1}, None], [1])
    first = ColumnDecoder(ColumnFormat("protobuf", "confluent", pa.struct([("x", pa.float64())]), PROTO), None)
    assert decode(first, bytes(5) + b"\0").column.to_pylist() == [{"x": 0.0}]
    bare = ColumnDecoder(ColumnFormat("protobuf", "none", WANTED, PROTO, MESSAGE), None)
    assert decode(bare, message(1, i=3)[7:], None).column.to_pylist() == [{"s": "", "i": 3}, None]


def test_protobuf_may_have_the_name_of_its_message_as_apicurio_writes_it() -> None:
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluent", WANTED, PROTO, MESSAGE), Registry({1: PROTO}))
    named = confluent_prefix(1) + b"\x0c\x0a\x0aEverything"
    other = confluent_prefix(1) + b"\x07\x0a\x05Other"
    indexed = confluent_prefix(1) + write_message_index((1,))
    both = [{"s": "", "i": 1}, {"s": "", "i": 2}]
    found = decode(decoder, named + b"\x08\x01", named + b"\x08\x02")
    assert (found.column.to_pylist(), found.bad) == (both, [])
    found = decode(decoder, named + b"\x08\x01", None, other, indexed + b"\x08\x02", named[:-1])
    assert found.column.to_pylist() == [both[0], None, None, both[1], None]
    assert [(each.row, each.reason.value) for each in found.bad] == [
        (2, "RESOLUTION_FAILED"),
        (4, "INCOMPLETE_HEADER"),
    ]
    assert found.bad[0].message == "its schema 1 has message 'kit.Other' where 'kit.Everything' is read"


def test_protobuf_behind_a_map_is_found_with_either_count_of_indexes() -> None:
    """Confluent's Python client counts entries of maps, and its Java client does not."""
    files = file_set()
    outer = files.file[0].message_type.add(name="Outer")
    outer.nested_type.add(name="MEntry").options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        outer.nested_type[0].field.add(name=name, number=number, type=5, label=1)
    outer.field.add(name="m", number=1, type=11, label=3, type_name=".kit.Outer.MEntry")
    for name in ("A", "B"):
        outer.nested_type.add(name=name).field.add(name="x", number=1, type=5, label=1)
    schema = proto(files)
    kind = pa.struct([("x", pa.int32())])
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluent", kind, schema, "kit.Outer.B"), Registry({1: schema}))
    java, python, unknown = (confluent_prefix(1) + write_message_index((2, at)) + b"\x08\x05" for at in (1, 2, 3))
    found = decode(decoder, java, python, unknown)
    assert found.column.to_pylist() == [{"x": 5}, {"x": 5}, None]
    # What Java names is what counts.
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluent", kind, schema, "kit.Outer.A"), Registry({1: schema}))
    assert [each.row for each in decode(decoder, java, python).bad] == [0, 1]


def test_protobuf_indexes_stand_in_the_header_if_the_id_does() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = [[("__value_schema_id", b"\0\0\0\0\1" + index)] for index in (b"\2\2", b"\0", b"", b"\0!")]
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluentHeader", WANTED, PROTO, MESSAGE), Registry({1: PROTO}))
    rows = [[{"key": key, "value": value} for key, value in each] for each in headers]
    found = decoder.decode(pa.array([b"\x08\1"] * 4, pa.binary()), pa.array(rows, kind))
    assert found.column.to_pylist() == [{"s": "", "i": 1}, None, None, None]
    assert [(each.row, each.reason.value) for each in found.bad] == [
        (1, "RESOLUTION_FAILED"),
        (2, "INCOMPLETE_HEADER"),
        (3, "INCOMPLETE_HEADER"),
    ]


def test_protobuf_indexes_of_former_serializers_are_bad_by_their_name() -> None:
    """Another wire format would not help, so the reason is not the one that advises it."""
    raw = b"\1\1" + everything()[1](i=1).SerializeToString()
    expected = "the indexes of its message are varints without zig-zag, as confluent-kafka for Python writes them up to"
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluent", WANTED, PROTO, MESSAGE), Registry({1: PROTO}))
    found = decode(decoder, message(1, i=1), confluent_prefix(1) + raw)
    assert found.column.to_pylist() == [{"s": "", "i": 1}, None]
    assert [(each.row, each.reason.value) for each in found.bad] == [(1, "DECODE_FAILED")]
    assert found.bad[0].message.startswith(expected)
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluentHeader", WANTED, PROTO, MESSAGE), Registry({1: PROTO}))
    header = [{"key": "__value_schema_id", "value": confluent_prefix(1) + b"\1\1"}]
    found = decoder.decode(pa.array([b""], pa.binary()), pa.array([header]))
    assert [(each.row, each.reason.value) for each in found.bad] == [(0, "DECODE_FAILED")]
    assert found.bad[0].message.startswith(expected)


def test_protobuf_without_an_index_in_the_header_is_bad_whatever_the_others_have() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluentHeader", WANTED, PROTO, MESSAGE), Registry({1: PROTO}))
    for others in ([], [b"\0\0\0\0\1\2\2"]):
        rows = [[{"key": "__value_schema_id", "value": each}] for each in (b"\0\0\0\0\1", *others)]
        found = decoder.decode(pa.array([b"\2\2\x08\1"] * len(rows), pa.binary()), pa.array(rows, kind))
        assert (found.bad[0].row, found.bad[0].reason.value) == (0, "INCOMPLETE_HEADER")


@pytest.mark.parametrize("framing", ["confluent", "confluentHeader"])
def test_ids_and_messages_that_were_made_up_take_time_in_proportion(framing: str) -> None:
    count = 3000
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    before = [confluent_prefix(number) + b"\2" + bytes([2 * (number % 60)]) for number in range(count)]
    values: list[bytes] = [b"\x08\1"] * count
    headers = None
    if framing == "confluent":
        values = [each + value for each, value in zip(before, values, strict=True)]
    else:
        headers = pa.array([[{"key": "__value_schema_id", "value": each}] for each in before], kind)
    registry = Registry({1: PROTO})
    decoder = ColumnDecoder(ColumnFormat("protobuf", framing, WANTED, PROTO, MESSAGE), registry)
    decoded = []
    # A pass over all values for each id and message took minutes.
    assert processor_s(lambda: decoded.append(decoder.decode(pa.array(values, pa.binary()), headers)), times=1) < 5
    (found,) = decoded
    assert [each.row for each in found.bad] == [row for row in range(count) if row != 1]
    assert found.column[1].as_py() == {"s": "", "i": 1}
    assert found.bad[-1] == BadValue(
        count - 1,
        Reason.SCHEMA_ID_NOT_FOUND,
        f"its schema {count - 1} was not looked up, after 100 others that do not exist",
    )
    assert len(registry.asked) == 101


def test_indexes_that_were_made_up_spoil_no_good_message() -> None:
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluent", WANTED, PROTO, MESSAGE), Registry({1: PROTO}))
    made_up = [confluent_prefix(1) + write_message_index((number, 0)) for number in range(100, 300)]
    found = decode(decoder, *made_up, confluent_prefix(1) + b"\2\2\x08\1")
    assert [each.row for each in found.bad] == list(range(200))
    assert {each.message for each in found.bad} == {"its schema 1 has no such message as the value names"}


def one_field(kind: str, *, repeated: bool = False) -> descriptor_pb2.FileDescriptorSet:
    files = file_set()
    del files.file[1:]
    del files.file[0].message_type[:]
    enum = files.file[0].enum_type.add(name="OnlyHere")
    enum.value.add(name="ONLY_NONE", number=0)
    added = files.file[0].message_type.add(name="One").field.add(name="f", number=1, label=3 if repeated else 1)
    added.type = getattr(added, f"TYPE_{kind.upper()}")
    if kind == "enum":
        added.type_name = ".kit.OnlyHere"
    return files


@pytest.mark.parametrize(
    ("writer", "reader", "written", "read"),
    [
        ("int32", "int64", b"\x08" + b"\xff" * 9 + b"\1", -1),
        ("uint32", "int64", b"\x08\x80\xbc\xc1\x96\x0b", 3000000000),
        ("bool", "int32", b"\x08\1", 1),
        ("enum", "int32", b"\x08\7", 7),
        ("sint32", "sint64", b"\x08\1", -1),
        ("int64", "int32", b"\x08\x85\x80\x80\x80\x10", None),
        ("uint32", "int32", b"\x08\x80\xbc\xc1\x96\x0b", None),
        ("int32", "uint64", b"\x08" + b"\xff" * 9 + b"\1", None),
        ("int32", "bool", b"\x08\7", None),
        ("sint64", "sint32", b"\x08\1", None),
        ("repeated int32", "int32", b"\x0a\2\1\2", None),
        ("repeated string", "string", b"\x0a\1x\x0a\1y", None),
        ("int32", "repeated int32", b"\x08\1", None),
    ],
)
def test_protobuf_of_other_types_is_read_if_every_value_fits(
    writer: str, reader: str, written: bytes, read: int | None
) -> None:
    schemas = [
        proto(one_field(each.removeprefix("repeated "), repeated=each.startswith("repeated ")))
        for each in (writer, reader)
    ]
    wanted = ProtobufDecoder(protobuf.read_message(schemas[1], None)).arrow_type
    decoder = ColumnDecoder(ColumnFormat("protobuf", "confluent", wanted, schemas[1]), Registry({1: schemas[0]}))
    found = decode(decoder, confluent_prefix(1) + b"\0" + written)
    if read is not None:
        assert (found.column.to_pylist(), found.bad) == ([{"f": read}], [])
    else:
        assert found.bad == [
            BadValue(
                0,
                Reason.RESOLUTION_FAILED,
                f"its schema 1 does not fit the reader's: field 'kit.One.f' is {writer} where {reader} is read",
            )
        ]


def test_empty_arrays_decode_to_no_rows() -> None:
    for column in (
        ColumnFormat("string", "confluent", pa.string()),
        ColumnFormat("json", "glue", AB),
        ColumnFormat("avro", "confluent", AB, READER),
        ColumnFormat("protobuf", "confluent", WANTED, PROTO, MESSAGE),
    ):
        found = decode(ColumnDecoder(column, Registry({})))
        assert (len(found.column), found.bad) == (0, [])
        nothing = decode(ColumnDecoder(column, Registry({})), None, None)
        assert (nothing.column.null_count, nothing.bad) == (2, [])


def test_protobuf_of_glue_has_the_place_of_its_message_among_all_by_name() -> None:
    # kit.Everything, its entries of a map, kit.Other.
    before = b"\3\0" + bytes(15) + b"\7"
    decoder = ColumnDecoder(ColumnFormat("protobuf", "glue", WANTED, PROTO, MESSAGE), None)
    found = decode(
        decoder, before + b"\0\x08\1", before + b"\2", before + b"\3", before, before + b"\x80\x80\x80\x80\x80\0"
    )
    assert found.column.to_pylist() == [{"s": "", "i": 1}, *[None] * 4]
    assert [(each.row, each.message.partition("0007 ")[2] or each.message) for each in found.bad] == [
        (1, "has message 'kit.Other' where 'kit.Everything' is read"),
        (2, "has no such message as the value names"),
        (3, "it ends before its message, or the index of its message is too long"),
        (4, "it ends before its message, or the index of its message is too long"),
    ]
    schema = RegisteredSchema("PROTOBUF", PROTO.text, schema_id=str(uuid.UUID(int=7)))
    for name, fields in (("kit.Everything", WANTED), ("kit.Other", pa.struct([("x", pa.float64())]))):
        column = ColumnFormat("protobuf", "glue", fields, schema, name)
        rows = pa.array([{each.name: pa.array([0]).cast(each.type)[0].as_py() for each in fields}], fields)
        written = ColumnEncoder(column).encode(rows)
        again = ColumnDecoder(column, None).decode(written)
        assert (again.bad, again.column.null_count) == ([], 0)


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_ids_of_a_topic_in_migration_are_those_of_the_header_else_of_the_prefix(kind: TypedFormat) -> None:
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    schema, wanted, text, index = (
        (READER, AB, b"\2\2\2x", b"") if kind == "avro" else (PROTO, pa.struct([("i", pa.int32())]), b"\x08\1", b"\2\2")
    )
    before = confluent_prefix(1) + index
    in_header = [{"key": "__value_schema_id", "value": before}]
    rows = [in_header, [], in_header, None, [{"key": "__value_schema_id", "value": b"?"}], []]
    values = [text, before + text, None, before + text, before + text, b"\1"]
    decoder = ColumnDecoder(ColumnFormat(kind, "confluentDual", wanted, schema, MESSAGE), Registry({1: schema}))
    found = decoder.decode(pa.array(values, pa.binary()), pa.array(rows, headers))
    good = decoder.decode(pa.array([text], pa.binary()), pa.array([in_header], headers)).column[0].as_py()
    assert good is not None
    assert found.column.to_pylist() == [good, good, None, good, None, None]
    assert [(each.row, each.reason.value) for each in found.bad] == [
        (4, "INVALID_MAGIC_BYTE"),
        (5, "INCOMPLETE_HEADER"),
    ]
    assert found.schema_ids is not None
    assert found.schema_ids.to_pylist() == ["1", "1", None, "1", None, None]
    # Before and after the migration.
    for only in ([0, 2], [1, 3], []):
        rows_of = pa.array(only, pa.int64())
        part = decoder.decode(pa.array(values, pa.binary()).take(rows_of), pa.array(rows, headers).take(rows_of))
        assert part.column.to_pylist() == [found.column[row].as_py() for row in only]


def test_a_newer_schema_of_a_writer_is_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    newer = avro(field("a", "long"), field("b", "string"), field("c", "int"))
    reader = replace(READER, schema_id=7, subject="orders-value", version=3)
    registry = Registry({6: READER, 7: READER, 9: newer})
    decoder = ColumnDecoder(ColumnFormat("avro", "confluent", AB, reader), registry)
    for _ in range(2):
        decode(decoder, *(confluent_prefix(number) + b"\2\2x\2" for number in (9, 6, 7, 10)))
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith("Values have schema 9, which is newer than schema 7, version 3 of subject 'orders-value'")
    caplog.clear()
    # Of a schema that the user gave, nothing is known to be newer.
    decode(ColumnDecoder(ColumnFormat("avro", "confluent", AB, READER), registry), confluent_prefix(9) + b"\2\2x\2")
    assert caplog.records == []
