"""A plan of a read: schemas are looked up once, the plan pickles, and narrower columns are checked."""

from __future__ import annotations

import io
import json
import pickle
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from pyspark_kafka._client.options import FormatName, FormatOptions, RegistryOptions, TypedReadOptions
from pyspark_kafka._connector.spark.compat import arrow_schema, spark_schema
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat, TypedFormat
from pyspark_kafka._typed.codecs.protobuf import proto_text
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema, UnknownSchemaError
from pyspark_kafka._typed.typed.read_formats import CORRUPT_TYPE, ReadFormats, plan_read
from pyspark_kafka.errors import OptionError, RegistryError, SchemaError

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"at","type":"Moment"}]}'
MOMENT = '{"type":"record","name":"Moment","fields":[{"name":"ms","type":{"type":"long","logicalType":"time-micros"}}]}'
ORDER_TYPE = pa.struct([("id", pa.int64()), ("at", pa.struct([("ms", pa.int64())]))])
URL = RegistryOptions(urls=("https://registry",))
GLUE = RegistryOptions(region="eu-central-1")


@dataclass
class Subjects:
    """A registry that answers from memory, and notes what it was asked for."""

    schemas: dict[str, RegisteredSchema]
    asked: list[tuple[str, int | None]] = field(default_factory=list)

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        self.asked.append((subject, version))
        if subject not in self.schemas:
            raise UnknownSchemaError("is not a subject of the schema registry")
        return replace(self.schemas[subject], subject=subject, version=version or 3)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a plan does not use {name}")


def registry(**schemas: RegisteredSchema) -> Any:
    return Subjects({name.replace("_", "-"): schema for name, schema in schemas.items()})


AVRO_ORDER = RegisteredSchema("AVRO", ORDER, (NamedSchema("Moment", MOMENT),), schema_id=7)


def of_values(name: str, schema: str | None = None, **more: Any) -> TypedReadOptions:
    return TypedReadOptions(value=FormatOptions(name, "none", schema, **more))  # type: ignore[arg-type]


def value_type(name: str, schema: str) -> pa.DataType:
    column = plan_read(of_values(name, schema), "t").value
    assert column is not None
    return column.arrow_type


def test_plan_of_text_and_bytes_needs_nothing() -> None:
    kinds = {"string": pa.string(), "uuid": pa.string(), "integer": pa.int32(), "long": pa.int64()}
    for name, kind in kinds.items():
        found = plan_read(TypedReadOptions(key=FormatOptions(cast("FormatName", name))), None)
        assert found.value is None
        assert found.key == ColumnFormat(cast("TypedFormat", name), "none", kind)


def test_columns_of_json_are_named_in_three_languages(tmp_path: Path) -> None:
    ddl = "id BIGINT, m MAP<STRING, INT>"
    spark = (
        '{"type":"struct","fields":[{"name":"id","type":"long"},'
        '{"name":"m","type":{"type":"map","keyType":"string","valueType":"integer"}}]}'
    )
    file = tmp_path / "schema.json"
    file.write_text(spark)
    expected = pa.struct([("id", pa.int64()), ("m", pa.map_(pa.string(), pa.int32()))])
    assert value_type("json", ddl) == value_type("json", spark) == value_type("json", f"file:{file}") == expected
    assert value_type("json", f"file://{file}") == expected
    schema = '{"properties":{"id":{"type":"integer"},"m":{"additionalProperties":{"type":"integer"}}}}'
    assert value_type("json", schema) == pa.struct([("id", pa.int64()), ("m", pa.map_(pa.string(), pa.int64()))])


def test_schema_that_is_given_is_not_looked_up() -> None:
    column = plan_read(of_values("avro", MOMENT), "t").value
    assert column is not None
    assert column.schema == RegisteredSchema("AVRO", MOMENT)
    assert column.arrow_type == pa.struct([("ms", pa.int64())])


def test_schema_is_looked_up_once_by_its_subject() -> None:
    asked = registry(t_value=AVRO_ORDER, other=RegisteredSchema("AVRO", '"string"', schema_id=8))
    options = TypedReadOptions(
        key=FormatOptions("avro", "confluent", subject="other", schema_version=2),
        value=FormatOptions("avro", "confluent"),
        registry=URL,
    )
    found = plan_read(options, "t", asked)
    assert asked.asked == [("other", 2), ("t-value", None)]
    assert found.key is not None
    assert found.value is not None
    assert found.key.arrow_type == pa.string()
    assert found.value.arrow_type == ORDER_TYPE
    assert found.value.schema == replace(AVRO_ORDER, subject="t-value", version=3)
    assert found.registry == URL


def test_schema_of_glue_has_the_name_of_the_topic() -> None:
    asked = registry(t=AVRO_ORDER)
    plan_read(TypedReadOptions(value=FormatOptions("avro", "glue"), registry=GLUE), "t", asked)
    assert asked.asked == [("t", None)]


def test_plan_pickles_and_is_what_a_task_decodes_with() -> None:
    fastavro = pytest.importorskip("fastavro")
    found = plan_read(of_values("avro", MOMENT), "t")
    again = pickle.loads(pickle.dumps(found))  # noqa: S301 - our own bytes
    assert again == found

    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema({"type": "record", "name": "M", "fields": [
        {"name": "ms", "type": "long"}]}), {"ms": 5})  # fmt: skip
    decoded = ColumnDecoder(again.value, None).decode(pa.array([written.getvalue(), None]))
    assert decoded.column.to_pylist() == [{"ms": 5}, None]
    assert decoded.column.type == found.value.arrow_type  # type: ignore[union-attr]


NODE = (
    '{"type":"record","name":"Node","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","Node"]},'
    '{"name":"more","type":{"type":"array","items":"Node"}}]}'
)
FLAT = pa.struct([("v", pa.int32())])
ONCE = pa.struct([("v", pa.int32()), ("next", FLAT), ("more", pa.list_(pa.field("element", FLAT)))])


@pytest.mark.parametrize("side", ["key", "value"])
@pytest.mark.parametrize(
    ("most", "kind", "expected"),
    [
        (1, FLAT, {"v": 1}),
        (2, ONCE, {"v": 1, "next": {"v": 2}, "more": [{"v": 4}, {"v": 5}]}),
        (
            3,
            pa.struct([("v", pa.int32()), ("next", ONCE), ("more", pa.list_(pa.field("element", ONCE)))]),
            {
                "v": 1,
                "next": {"v": 2, "next": {"v": 3}, "more": []},
                "more": [{"v": 4, "next": None, "more": []}, {"v": 5, "next": None, "more": []}],
            },
        ),
    ],
)
def test_record_within_itself_is_read_as_deep_as_the_option_says(
    side: str, most: int, kind: pa.DataType, expected: Any
) -> None:
    options: Any = {side: FormatOptions("avro", "none", NODE), "recursive_field_max_depth": most}
    column = getattr(plan_read(TypedReadOptions(**options), "t"), side)
    assert column.arrow_type == kind
    # 1, next: 2 with next: 3; more: 4 and 5. A number is written as twice itself.
    written = b"\x02\x02\x04\x02\x06\x00\x00\x00\x04\x08\x00\x00\x0a\x00\x00\x00"
    decoder = ColumnDecoder(pickle.loads(pickle.dumps(column)), None)  # noqa: S301 - our own bytes
    found, bad, _ = decoder.decode(pa.array([written, None, b"\x02\x02"], pa.binary()))
    found.validate(full=True)
    assert found.to_pylist() == [expected, None, None]
    assert [each.row for each in bad] == [2]


def test_record_within_itself_is_an_error_that_names_the_option() -> None:
    with pytest.raises(SchemaError) as caught:
        plan_read(of_values("avro", NODE), "t")
    assert "record 'Node' holds itself, in field 'next'" in str(caught.value)
    assert "'recursiveFieldMaxDepth'" in (caught.value.hint or "")


PROTO = (
    'syntax = "proto3"; package shop; import "google/protobuf/duration.proto"; import "item.proto"; '
    "message Order { int64 id = 1; repeated Item items = 2; map<string, uint64> counts = 3; "
    "google.protobuf.Duration took = 4; Kind kind = 5; Order before = 6; } enum Kind { NONE = 0; GIFT = 1; } "
)
ITEM = 'syntax = "proto3"; package shop; message Item { string name = 1; uint32 count = 2; }'
OF_PROTO = RegisteredSchema("PROTOBUF", PROTO, (NamedSchema("item.proto", ITEM),), schema_id=5)


def test_plan_of_protobuf_has_descriptors_so_that_tasks_need_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    options = TypedReadOptions(value=FormatOptions("protobuf", "confluent"), registry=URL)
    column = plan_read(options, "t", registry(t_value=OF_PROTO)).value
    assert column is not None
    assert column.message == "shop.Order"
    item = pa.struct([("name", pa.string()), ("count", pa.int64())])
    assert column.arrow_type == pa.struct(
        [
            ("id", pa.int64()),
            ("items", pa.list_(pa.field("element", item))),
            ("counts", pa.map_(pa.string(), pa.decimal128(20, 0))),
            ("took", pa.duration("us")),
            ("kind", pa.string()),
            # A message within itself stays as it is written.
            ("before", pa.binary()),
        ]
    )
    assert column.schema is not None
    assert (column.schema.subject, column.schema.version, column.schema.schema_id) == ("t-value", 3, 5)
    assert column.schema.references == ()
    monkeypatch.setattr(proto_text, "_compile", lambda *_: pytest.fail("a task compiles"))
    decoder = ColumnDecoder(pickle.loads(pickle.dumps(replace(column, framing="none"))), None)  # noqa: S301
    found = decoder.decode(pa.array([b"\x08\x05\x28\x01", b"", None], pa.binary())).column
    assert found.type == column.arrow_type
    assert [each and (each["id"], each["kind"]) for each in found.to_pylist()] == [(5, "GIFT"), (0, "NONE"), None]


def test_message_is_the_named_one() -> None:
    options = of_values("protobuf", ITEM + " message Other { bool b = 1; }", message="shop.Other")
    column = plan_read(options, "t").value
    assert column is not None
    assert column.arrow_type == pa.struct([("b", pa.bool_())])
    both = ITEM + " message Order { map<string, Item> items = 1; }"
    with pytest.raises(SchemaError, match=r"it has no message 'shop\.None'") as caught:
        plan_read(of_values("protobuf", both, message="shop.None"), "t")
    assert caught.value.hint == "Name one of its messages: shop.Item, shop.Order."


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf"])
def test_error_of_the_reader_schema_names_where_it_is_from(kind: TypedFormat) -> None:
    """Each record may have a writer schema, which is another one."""
    with pytest.raises(SchemaError, match=r"The reader schema of the values, of option 'valueSchema': ") as caught:
        plan_read(of_values(kind, '{"type": "array", "items": 5}' if kind != "protobuf" else "messag A {}"), "t")
    assert caught.value.condition == "SCHEMA_INVALID"
    known = registry(t_value=replace(OF_PROTO, text="messag A {}"))
    with pytest.raises(SchemaError, match=r"The reader schema of the values, subject 't-value', version 3: "):
        plan_read(TypedReadOptions(value=FormatOptions("protobuf", "confluent"), registry=URL), "t", known)


def test_file_of_descriptors_is_read(tmp_path: Path) -> None:
    file = tmp_path / "item.desc"
    file.write_bytes(proto_text.read_file_set(RegisteredSchema("PROTOBUF", ITEM)))
    expected = pa.struct([("name", pa.string()), ("count", pa.int64())])
    assert value_type("protobuf", f"file:{file}") == value_type("protobuf", ITEM) == expected


def test_subject_that_does_not_exist_is_an_error_before_anything_is_read() -> None:
    with pytest.raises(SchemaError) as caught:
        plan_read(TypedReadOptions(value=FormatOptions("avro", "confluent"), registry=URL), "t", registry())
    assert caught.value.condition == "SCHEMA_NOT_FOUND"
    assert "subject 't-value' is not a subject of the schema registry. Nothing was read" in str(caught.value)
    assert "'valueSubject'" in caught.value.hint


def test_schema_in_another_language_is_an_error() -> None:
    options = TypedReadOptions(key=FormatOptions("json", "confluent"), registry=URL)
    with pytest.raises(SchemaError) as caught:
        plan_read(options, "t", registry(t_key=AVRO_ORDER))
    assert caught.value.condition == "SCHEMA_KIND_MISMATCH"
    assert "The schema of subject 't-key' in the registry is one of AVRO, but 'keyFormat' is json" in str(caught.value)
    assert "Set 'keyFormat' to avro" in caught.value.hint


def test_outage_of_the_registry_stays_one() -> None:
    class Down:
        def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
            raise RegistryError(f"{subject} {version}", condition="REGISTRY_UNREACHABLE")

    down: Any = Down()
    with pytest.raises(RegistryError):
        plan_read(TypedReadOptions(value=FormatOptions("avro", "confluent"), registry=URL), "t", down)


@pytest.mark.parametrize(
    ("name", "schema", "expected"),
    [
        ("json", "m MAP<INT, STRING>", "the keys of map 'value.m' are not strings"),
        ("json", "a ARRAY<MAP<DATE, INT>>", "the keys of map 'value.a[]' are not strings"),
        ("json", '{"type":"array","items":{"type":"string"}}', "a document is read as a struct"),
        ("json", "id", "The list of columns cannot be used"),
        ("json", "{", "The JSON Schema cannot be used: it is not JSON"),
        ("avro", '{"type":\n "record",}', "The Avro schema cannot be used: it is not JSON: "),
        ("avro", '{"type":\n "record",}', "at line 2, column"),
        ("avro", '{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}', "record 'R' holds itself"),
    ],
)
def test_schema_that_is_no_column_is_refused(name: str, schema: str, expected: str) -> None:
    with pytest.raises(SchemaError) as caught:
        value_type(name, schema)
    assert caught.value.condition == "SCHEMA_INVALID"
    assert expected in str(caught.value)


OPEN = json.dumps({"properties": {"a": {}, "l": {"items": {"type": ["string", "integer"]}}, "b": {"type": "integer"}}})


def test_open_parts_are_strings_of_their_text_also_among_fewer_fields() -> None:
    plan = plan_read(of_values("json", OPEN, open_parts="text"), "t")
    whole = pa.struct([("a", pa.string()), ("l", pa.list_(pa.field("element", pa.string()))), ("b", pa.int64())])
    assert plan.value is not None
    assert plan.value.arrow_type == whole
    fewer = pickle.loads(pickle.dumps(plan.narrow(pa.schema([("value", pa.struct([("l", whole.field("l").type)]))]))))  # noqa: S301
    decoded = ColumnDecoder(fewer.value, None).decode(pa.array([b'{"a":[],"l":["x",{"y":1}]}']))
    assert decoded.column.to_pylist() == [{"l": ['"x"', '{"y":1}']}]


@pytest.mark.parametrize(("name", "kind"), [("avro", "AVRO"), ("json", "JSON"), ("protobuf", "PROTOBUF")])
def test_schema_that_is_no_column_is_named_with_its_origin(name: Any, kind: Any) -> None:
    asked = registry(t_value=RegisteredSchema(kind, "{"))
    options = TypedReadOptions(value=FormatOptions(name, "confluent"), registry=URL)
    with pytest.raises(
        SchemaError, match=r"The reader schema of the values, subject 't-value', version 3: The .* cannot"
    ):
        plan_read(options, "t", asked)
    with pytest.raises(SchemaError, match=r"The reader schema of the keys, of option 'keySchema': The .* cannot"):
        plan_read(TypedReadOptions(key=FormatOptions(name, "none", "{")), "t")


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b" " * ((4 << 20) + 1))
    for path, why in (
        (tmp_path / "none.avsc", "there is no such file"),
        (tmp_path, "there is no"),
        (large, "it has more"),
    ):
        with pytest.raises(OptionError) as caught:
            plan_read(of_values("avro", f"file:{path}"), "t")
        assert caught.value.condition == "SCHEMA_FILE_UNREADABLE"
        assert f"Option 'valueSchema' names the file {path}, which cannot be read on the driver: {why}" in str(
            caught.value
        )


def test_columns_are_those_that_the_options_ask_for() -> None:
    options = TypedReadOptions(
        key=FormatOptions("json", "none", "k INT"),
        value=FormatOptions("json", "confluent", "v INT"),
        mode="PERMISSIVE",
        include_schema_id=True,
    )
    found = plan_read(options, "t")
    assert [(each.name, each.type) for each in found.read_fields()] == [
        ("key", pa.struct([("k", pa.int32())])),
        ("value", pa.struct([("v", pa.int32())])),
        ("value_schema_id", pa.string()),
        ("_corrupt_record", CORRUPT_TYPE),
    ]
    few = plan_read(replace(options, mode="DROPMALFORMED", include_schema_id=False, key=FormatOptions()), "t")
    assert [each.name for each in few.read_fields()] == ["value"]


def test_columns_are_the_same_in_spark_and_back() -> None:
    ddl = (
        "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DATE, i TIMESTAMP, j TIMESTAMP_NTZ, "
        "k STRING, l BINARY, m DECIMAL(9,2), n ARRAY<STRUCT<a: INT, b: MAP<STRING, ARRAY<INT>>>>, o VOID"
    )
    fields = plan_read(replace(of_values("json", ddl), mode="PERMISSIVE"), "t").read_fields()
    again = arrow_schema(spark_schema(pa.schema(fields)))
    assert again.equals(pa.schema(fields), check_metadata=True)
    assert str(again) == str(pa.schema(fields))


@pytest.mark.parametrize(
    "asked",
    ["id BIGINT", "m MAP<STRING, STRUCT<y: INT>>, id BIGINT", "l ARRAY<STRUCT<b: STRING>>", "t TIMESTAMP", ""],
)
def test_columns_may_be_narrower_and_in_another_order(asked: str) -> None:
    found = plan_read(
        of_values(
            "json", "id BIGINT, m MAP<STRING, STRUCT<x: INT, y: INT>>, l ARRAY<STRUCT<a: INT, b: STRING>>, t TIMESTAMP"
        ),
        "t",
    )
    wanted = value_type("json", asked) if asked else pa.struct([])
    narrow = found.narrow(pa.schema([pa.field("offset", pa.int64()), pa.field("value", wanted)]))
    assert narrow.value is not None
    assert narrow.value.arrow_type == wanted
    assert str(narrow.value.arrow_type) == str(wanted)
    assert found.narrow(pa.schema([pa.field("offset", pa.int64())])) == found


def test_instants_have_the_zone_of_the_source() -> None:
    found = plan_read(of_values("json", "t TIMESTAMP"), "t")
    asked = pa.schema([pa.field("value", pa.struct([("t", pa.timestamp("us", "Europe/Paris"))]))])
    assert found.narrow(asked) == found


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (pa.struct([("di", pa.int64())]), "field 'value.di' does not exist; its fields are id, s"),
        (pa.struct([("id", pa.int32())]), "field 'value.id' is int64 in the schema, not int32"),
        (pa.struct([("s", pa.struct([("b", pa.int32())]))]), "field 'value.s.b' does not exist; its fields are a"),
        (pa.struct([("id", pa.int64()), ("id", pa.int64())]), "field 'value.id' is asked for twice"),
        (pa.binary(), "field 'value' is struct<id: int64, s: struct<a: int32>> in the schema, not binary"),
    ],
)
def test_columns_that_the_schema_does_not_have_are_refused(asked: pa.DataType, expected: str) -> None:
    found = plan_read(of_values("json", "id BIGINT, s STRUCT<a: INT>"), "t")
    with pytest.raises(SchemaError) as caught:
        found.narrow(pa.schema([pa.field("value", asked)]))
    assert caught.value.condition == "SCHEMA_MISMATCH.SOURCE"
    assert expected in str(caught.value)


def test_plan_of_bytes_is_empty() -> None:
    assert plan_read(TypedReadOptions(), "t") == ReadFormats()
    assert ReadFormats().read_fields() == []
