"""Writes of typed keys and values, as they are planned: which schema, what fits, what is registered."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kit.protobuf_schema import file_set
from kit.texts import said
from pyspark_kafka._client.options import FormatOptions, RegistryOptions, TypedWriteOptions
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.protobuf.known_files import known_files
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, SchemaId, UnknownSchemaError
from pyspark_kafka._typed.typed.write_formats import WriteFormats, plan_write, typed_columns
from pyspark_kafka.errors import OptionError, RegistryError, SchemaError

ROW = pa.struct([("a", pa.int64()), ("b", pa.string())])
REGISTRY = RegistryOptions(urls=("http://registry.invalid",))


def record(**fields: Any) -> str:
    return json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}
    )


AVRO = record(a="long", b=["null", "string"])
JSON_SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}})


class MemoryRegistry:
    """Has subjects in memory, and notes what it is asked."""

    def __init__(self, **subjects: list[RegisteredSchema]) -> None:
        self.subjects = {name.replace("_", "-"): list(versions) for name, versions in subjects.items()}
        self.asked: list[str] = []
        self.faults: list[str] = []

    def schema_by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        raise AssertionError(f"nobody asks for schema {schema_id}")

    def knows(self, schema_id: SchemaId) -> bool:
        del schema_id
        return False

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        self.asked.append(f"{subject} {version or 'latest'}")
        versions = self.subjects.get(subject)
        if not versions or (version or 1) > len(versions):
            raise UnknownSchemaError("is not there")
        number = version or len(versions)
        return replace(versions[number - 1], subject=subject, version=number)

    def find_id(self, subject: str, schema: RegisteredSchema) -> SchemaId | None:
        self.asked.append(f"{subject} has {schema.kind}")
        return next((each.schema_id for each in self.subjects.get(subject, []) if each.text == schema.text), None)

    def incompatibilities(self, subject: str, schema: RegisteredSchema) -> list[str]:
        self.asked.append(f"{subject} fits {schema.kind}")
        return self.faults

    def register(self, subject: str, schema: RegisteredSchema) -> SchemaId:
        self.asked.append(f"{subject} register {schema.kind}")
        self.subjects.setdefault(subject, []).append(replace(schema, schema_id=99))
        return 99


def options(value: FormatOptions, key: FormatOptions | None = None, *, register: bool = False) -> TypedWriteOptions:
    return TypedWriteOptions(key or FormatOptions(), value, REGISTRY, register)


def avro(schema: str | None = AVRO, framing: Any = "confluent", **others: Any) -> FormatOptions:
    return FormatOptions("avro", framing, schema, **others)


def plan(
    given: TypedWriteOptions, registry: MemoryRegistry | None = None, topic: str | None = "t", **columns: Any
) -> WriteFormats:
    return plan_write(given, columns or {"value": ROW}, topic, registry)


def registered(text: str, kind: Any = "AVRO", schema_id: SchemaId = 7) -> RegisteredSchema:
    return RegisteredSchema(kind, text, schema_id=schema_id)


def test_columns_without_a_format_stay_bytes() -> None:
    assert typed_columns(None) == typed_columns(TypedWriteOptions()) == frozenset()
    assert typed_columns(options(avro(), FormatOptions("string"))) == {"key", "value"}
    assert plan(TypedWriteOptions(), None) == WriteFormats()


def test_a_version_of_the_subject_is_written_with_its_id() -> None:
    registry = MemoryRegistry(t_value=[registered(AVRO, schema_id=3), registered(record(a="long"), schema_id=4)])
    found = plan(options(avro(None, schema_version=1)), registry).value
    assert found is not None
    assert (found.format, found.framing, found.arrow_type) == ("avro", "confluent", ROW)
    assert found.schema == RegisteredSchema("AVRO", AVRO, schema_id=3, subject="t-value", version=1)
    # The latest, whose fields the column does not have.
    with pytest.raises(SchemaError) as caught:
        plan(options(avro(None)), registry)
    assert said(caught.value) == (
        "[SCHEMA_COLUMN_MISMATCH] Nothing was written, as column 'value' of the DataFrame cannot be written in avro "
        "with the schema of subject 't-value', version 2: Column 'b' has the type string, which cannot be written as "
        "Avro's record 'R', which has no such field. Hint: Cast the column, or change the schema."
    )
    assert registry.asked == ["t-value 1", "t-value latest"]


def test_keys_and_values_have_subjects_of_their_own() -> None:
    registry = MemoryRegistry(t_key=[registered('"string"')], other=[registered(AVRO, schema_id=8)])
    given = options(avro(None, subject="other"), avro(None))
    found = plan(given, registry, key=pa.string(), value=ROW)
    assert found.key is not None
    assert found.value is not None
    assert found.key.schema is not None
    assert found.value.schema is not None
    assert (found.key.schema.schema_id, found.value.schema.schema_id) == (7, 8)
    assert found.registered() == {"key": found.key.schema, "value": found.value.schema}


def test_a_subject_that_is_not_there_is_named() -> None:
    with pytest.raises(SchemaError, match=r"SCHEMA_NOT_FOUND.* schema for the values: subject 't-value' is not there"):
        plan(options(avro(None)), MemoryRegistry())


def test_a_schema_of_another_format_is_refused() -> None:
    registry = MemoryRegistry(t_value=[registered(JSON_SCHEMA, "JSON")])
    with pytest.raises(SchemaError, match=r"SCHEMA_KIND_MISMATCH.* one of JSON, but 'valueFormat' is avro"):
        plan(options(avro(None)), registry)


def test_rows_with_topics_of_their_own_need_a_subject() -> None:
    with pytest.raises(OptionError, match="Option 'valueSubject' must be set if each row names its topic"):
        plan(options(avro(None)), MemoryRegistry(), topic=None)


def test_a_given_schema_has_the_id_that_its_subject_has_for_it() -> None:
    registry = MemoryRegistry(t_value=[registered("something else", schema_id=1), registered(AVRO)])
    found = plan(options(avro()), registry).value
    assert found is not None
    assert found.schema == RegisteredSchema("AVRO", AVRO, schema_id=7, subject="t-value")
    assert registry.asked == ["t-value has AVRO"]


def test_a_given_schema_that_is_not_registered_is_an_error_that_says_how_to() -> None:
    registry = MemoryRegistry()
    with pytest.raises(SchemaError) as caught:
        plan(options(avro(subject="a/b")), registry)
    assert said(caught.value) == (
        "[SCHEMA_NOT_REGISTERED] The schema of option 'valueSchema' is not in subject 'a/b' of the registry. Nothing "
        "was written. Hint: Register it with POST /subjects/a%2Fb/versions, or set 'autoRegisterSchemas' to true; or "
        "remove 'valueSchema' to write with the schema that the subject has."
    )
    assert registry.asked == ["a/b has AVRO"]


def test_a_given_schema_is_registered_if_that_is_asked_for() -> None:
    registry = MemoryRegistry()
    found = plan(options(avro(), register=True), registry).value
    assert found is not None
    assert found.schema == RegisteredSchema("AVRO", AVRO, schema_id=99, subject="t-value")
    assert registry.asked == ["t-value has AVRO", "t-value fits AVRO", "t-value register AVRO"]


def test_a_schema_that_is_not_compatible_is_not_registered() -> None:
    registry = MemoryRegistry()
    registry.faults = ["field b is gone", "field a is a text"]
    with pytest.raises(SchemaError) as caught:
        plan(options(avro(), register=True), registry)
    assert said(caught.value) == (
        "[SCHEMA_INCOMPATIBLE] The schema of the values may not become the next version of subject 't-value': field b "
        "is gone; field a is a text. Nothing was registered for it, and nothing was written. Hint: Change the schema "
        "so that it is compatible, or the compatibility of the subject, or set another subject with 'valueSubject'."
    )
    assert registry.subjects == {}


def test_nothing_is_registered_before_every_column_fits() -> None:
    registry = MemoryRegistry()
    given = options(avro(record(a="string", b="string")), avro('"string"'), register=True)
    with pytest.raises(SchemaError, match=r"column 'value' of the DataFrame .* Column 'a' has the type int64"):
        plan(given, registry, key=pa.string(), value=ROW)
    assert registry.subjects == {}


def test_a_schema_is_made_of_the_column_where_there_is_no_subject() -> None:
    registry = MemoryRegistry()
    found = plan(options(avro(None), register=True), registry).value
    assert found is not None
    assert found.schema is not None
    assert found.schema.schema_id == 99
    assert json.loads(found.schema.text)["namespace"] == "t"
    # A subject that there is has the schema to write with.
    registry = MemoryRegistry(t_value=[registered(AVRO)])
    assert plan(options(avro(None), register=True), registry).registered()["value"].text == AVRO
    assert registry.asked == ["t-value latest"]


@pytest.mark.parametrize("given", [FormatOptions("json", "confluent"), FormatOptions("avro", "none", schema_version=2)])
def test_a_schema_is_made_for_avro_without_a_version_only(given: FormatOptions) -> None:
    with pytest.raises(SchemaError, match="SCHEMA_NOT_FOUND"):
        plan(options(given, register=True), MemoryRegistry())


def test_known_schemas_are_not_looked_up_but_checked() -> None:
    known = {"value": replace(registered(AVRO), subject="t-value")}
    registry = MemoryRegistry()
    found = plan_write(options(avro(None)), {"value": ROW}, "t", registry, known)
    assert found.registered() == known
    with pytest.raises(SchemaError, match="Field 'a' is missing"):
        plan_write(options(avro(None)), {"value": pa.struct([("b", pa.string())])}, "t", registry, known)
    assert registry.asked == []


def test_an_outage_of_the_registry_passes() -> None:
    class Down(MemoryRegistry):
        def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:  # noqa: ARG002
            raise RegistryError("down", condition="REGISTRY_UNREACHABLE")

    with pytest.raises(RegistryError, match="down"):
        plan(options(avro(None), register=True), Down())


def without_registry(value: FormatOptions, kind: pa.DataType = ROW) -> WriteFormats:
    return plan_write(TypedWriteOptions(value=value), {"value": kind}, "t", None)


def test_no_registry_is_needed_without_a_framing() -> None:
    found = without_registry(avro(framing=None)).value
    assert found is not None
    assert (found.framing, found.schema) == ("none", RegisteredSchema("AVRO", AVRO))
    assert WriteFormats(value=found).registered() == {}
    assert without_registry(FormatOptions("json")).value is not None
    text = without_registry(FormatOptions("string"), pa.string()).value
    assert text is not None
    assert text.format == "string"
    number = without_registry(FormatOptions("long"), pa.int32()).value
    assert number == ColumnFormat("long", "none", pa.int32())


def test_a_schema_in_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "s.avsc").write_text(AVRO)
    found = without_registry(avro(f"file:{tmp_path}/s.avsc", None)).value
    assert found is not None
    assert found.schema == RegisteredSchema("AVRO", AVRO)
    with pytest.raises(OptionError, match="no such file"):
        without_registry(avro(f"file:{tmp_path}/other", None))


def test_parts_of_columns_are_nullable_whatever_spark_says() -> None:
    kind = pa.struct([pa.field("a", pa.list_(pa.field("element", pa.large_string(), nullable=False)), nullable=False)])
    found = without_registry(FormatOptions("json"), kind).value
    assert found is not None
    assert found.arrow_type == pa.struct([("a", pa.list_(pa.field("element", pa.string())))])


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("a INT, b STRING", "Column 'a' has the type int64, which cannot be written as int32"),
        ("a BIGINT", "Column 'b' .* which has no such field"),
        ("a BIGINT, b STRING, c INT", "Field 'c' is missing: the schema needs it, and the column has only 'a', 'b'"),
        (json.dumps({"properties": {"a": {"type": "string"}}}), "Column 'a' has the type int64"),
    ],
)
def test_a_column_that_does_not_fit_the_schema_of_json_is_named(schema: str, text: str) -> None:
    without_registry(FormatOptions("json", schema="b STRING, a BIGINT"))
    without_registry(FormatOptions("json", schema=JSON_SCHEMA))
    with pytest.raises(SchemaError, match=f"column 'value' of the DataFrame cannot be written in json: {text}"):
        without_registry(FormatOptions("json", schema=schema))


def test_texts_of_open_parts_fit_if_that_is_wanted() -> None:
    schema = json.dumps({"properties": {"a": {"type": "object"}, "b": {"type": "string"}}})
    kind = pa.struct([("a", pa.string()), ("b", pa.string())])
    found = without_registry(FormatOptions("json", schema=schema, open_parts="text"), kind).value
    assert found is not None
    row = pa.array([{"a": '{"x": 1}', "b": "y"}], kind)
    assert ColumnEncoder(found).encode(row).to_pylist() == [b'{"a":{"x": 1},"b":"y"}']
    with pytest.raises(SchemaError, match="Column 'a' has the type string"):
        without_registry(FormatOptions("json", schema=schema), kind)
    with pytest.raises(SchemaError, match="column 'value' of the DataFrame cannot be written in json: The JSON Schema"):
        without_registry(FormatOptions("json", schema='{"properties": {"a": 5}}', open_parts="text"), kind)


def test_columns_of_sql_are_no_schema_of_a_registry() -> None:
    with pytest.raises(OptionError, match="Option 'valueSchema' names columns, which a registry cannot have"):
        plan(options(FormatOptions("json", "confluent", "a BIGINT, b STRING")), MemoryRegistry())


def test_a_descriptor_of_protobuf_is_looked_up_as_one_file() -> None:
    raw = file_set()
    one = base64.b64encode(raw.file[0].SerializeToString()).decode()
    registry = MemoryRegistry(t_value=[registered(one, "PROTOBUF")])
    given = FormatOptions("protobuf", "confluent", base64.b64encode(raw.SerializeToString()).decode())
    found = plan(options(given), registry, value=pa.struct([("x", pa.float64())])).value
    assert found is not None
    assert found.schema is not None
    assert found.schema.schema_id == 7
    # Files that the registry knows are no references.
    known = known_files(["google/type/money.proto", "google/protobuf/duration.proto"])
    more = type(raw)(file=[*known, *raw.file])
    given = replace(given, schema=base64.b64encode(more.SerializeToString()).decode())
    found = plan(options(given), registry, value=pa.struct([("x", pa.float64())])).value
    assert found is not None
    assert found.schema is not None
    assert found.schema.schema_id == 7
    raw.file.add(name="other.proto")
    given = replace(given, schema=base64.b64encode(raw.SerializeToString()).decode(), message="kit.Other")
    with pytest.raises(SchemaError, match="it has 2 files, and each is a schema of its own"):
        plan(options(given), registry, value=pa.struct([("x", pa.float64())]))


def test_a_file_of_protobuf_is_compiled_once_and_looked_up_as_its_text() -> None:
    text = 'syntax = "proto3"; package p; message A { int64 a = 1; } message B { string b = 1; }'
    registry = MemoryRegistry(t_value=[registered(text, "PROTOBUF")])
    kind = pa.struct([("b", pa.string())])
    given = FormatOptions("protobuf", "confluent", text, message="p.B")
    # The user's, and that of the registry.
    for each in (given, replace(given, schema=None)):
        found = plan(options(each), registry, value=kind).value
        assert found is not None
        assert found.schema is not None
        assert found.schema.schema_id == 7
        base64.b64decode(found.schema.text, validate=True)
        # The path of the second message.
        assert ColumnEncoder(found).encode(pa.array([{"b": "x"}], kind)).to_pylist() == [b"\0\0\0\0\x07\2\2\n\1x"]
