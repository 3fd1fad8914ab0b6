"""Options of typed keys and values: what they mean together, and each combination that is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pyspark_kafka._client.options import (
    FormatOptions,
    RegistryOptions,
    TypedReadOptions,
    TypedWriteOptions,
    parse_batch_read_options,
    parse_read_options,
    parse_stream_read_options,
    parse_write_options,
)
from pyspark_kafka.errors import OptionError

READ = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}
WRITE = {"kafka.bootstrap.servers": "b:9092", "topic": "t"}
URL = {"schema.registry.url": "https://registry:8081"}
JSON = {"valueFormat": "json", "valueSchema": "id BIGINT"}
AVRO = {"valueFormat": "avro", "valueSchema": '"long"'}


def read(**raw: Any) -> TypedReadOptions | None:
    return parse_batch_read_options({**READ, **raw}).typed


def write(**raw: Any) -> TypedWriteOptions | None:
    return parse_write_options({**WRITE, **raw}, streaming=False).typed


def refused(raw: dict[str, Any], *, writing: bool = False, topic: bool = True) -> OptionError:
    base = (WRITE if writing else READ) if topic else {"kafka.bootstrap.servers": "b:9092"}
    parse: Any = partial(parse_write_options, streaming=False) if writing else parse_batch_read_options
    with pytest.raises(OptionError) as caught:
        parse({**base, **raw})
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("raw", [{}, {"valueFormat": "binary"}, {"keyFormat": "BINARY", "valueFormat": "binary"}])
def test_nothing_is_typed_if_keys_and_values_are_bytes(raw: dict[str, str]) -> None:
    assert read(**raw) is None
    assert write(**raw) is None


def test_text_needs_nothing_else() -> None:
    expected = FormatOptions("string")
    assert read(keyFormat="String") == TypedReadOptions(key=expected)
    assert write(valueFormat="string", valueFraming="none") == TypedWriteOptions(value=expected)
    assert read(keyFormat="Long", keyFraming="none") == TypedReadOptions(key=FormatOptions("long"))
    assert write(keyFormat="uuid") == TypedWriteOptions(key=FormatOptions("uuid"))


def test_a_schema_that_is_given_needs_no_registry() -> None:
    assert read(**JSON) == TypedReadOptions(value=FormatOptions("json", "none", "id BIGINT"))
    assert read(keyFormat="avro", keySchema="file:/key.avsc") == TypedReadOptions(
        key=FormatOptions("avro", "none", "file:/key.avsc")
    )
    assert read(valueFormat="protobuf", valueSchema="syntax …", valueMessage="a.B") == TypedReadOptions(
        value=FormatOptions("protobuf", "none", "syntax …", message="a.B")
    )
    assert write(**AVRO) == TypedWriteOptions(value=FormatOptions("avro", "none", '"long"'))


def test_json_is_written_without_a_schema() -> None:
    assert write(valueFormat="json") == TypedWriteOptions(value=FormatOptions("json", "none"))


def test_schemas_come_from_the_registry_with_its_framing() -> None:
    registry = RegistryOptions(urls=("https://registry:8081",))
    assert read(keyFormat="avro", valueFormat="protobuf", **URL) == TypedReadOptions(
        key=FormatOptions("avro", "confluent"), value=FormatOptions("protobuf", "confluent"), registry=registry
    )
    assert write(valueFormat="avro", valueSubject="s", valueSchemaVersion="3", **URL) == TypedWriteOptions(
        value=FormatOptions("avro", "confluent", subject="s", schema_version=3), registry=registry
    )


def test_two_places_of_an_id_are_for_reads_only() -> None:
    error = refused({"valueFormat": "avro", "valueFraming": "confluentDual", **URL}, writing=True)
    assert error.condition == "OPTION_CONFLICT"
    assert "a write has one place for it" in str(error)


@pytest.mark.parametrize("framing", ["none", "confluentHeader", "confluentDual"])
def test_the_framing_is_the_given_one(framing: str) -> None:
    typed = read(valueFormat="json", valueFraming=framing.upper(), **URL)
    assert typed is not None
    assert typed.value.framing == framing
    assert typed.registry is not None


def test_glue_needs_a_region_or_its_framing_alone() -> None:
    named = {"schema.registry.region": "eu-central-1", "schema.registry.registry.name": "r"}
    glue = FormatOptions("avro", "glue")
    assert read(valueFormat="avro", **named) == TypedReadOptions(
        value=glue, registry=RegistryOptions(region="eu-central-1", registry_name="r")
    )
    assert read(valueFormat="avro", valueFraming="glue") == TypedReadOptions(value=glue, registry=RegistryOptions())


def test_ids_of_json_and_protobuf_are_ignored_without_a_registry() -> None:
    typed = read(valueFraming="confluent", **JSON)
    assert typed == TypedReadOptions(value=FormatOptions("json", "confluent", "id BIGINT"))


@pytest.mark.parametrize("word", ["permissive", "Permissive", "PERMISSIVE"])
def test_mode_is_read_in_any_case(word: str) -> None:
    typed = read(
        **JSON, mode=word, columnNameOfCorruptRecord="_bad", maxCorruptRatio="0.25", valueFraming="confluent",
        includeSchemaId="true",
    )  # fmt: skip
    assert typed is not None
    assert (typed.mode, typed.corrupt_column, typed.max_corrupt_ratio) == ("PERMISSIVE", "_bad", 0.25)
    assert typed.include_schema_id is True


def test_records_within_themselves_are_read_as_deep_as_keys_or_values_in_avro_say() -> None:
    assert read(**AVRO) == read(**AVRO, recursiveFieldMaxDepth="0")
    of_values = read(**AVRO, recursiveFieldMaxDepth="3")
    of_keys = read(**JSON, keyFormat="avro", keySchema='"long"', recursiveFieldMaxDepth="15")
    assert of_values is not None
    assert of_keys is not None
    assert (of_values.recursive_field_max_depth, of_keys.recursive_field_max_depth) == (3, 15)


def test_open_parts_are_what_documents_of_json_say() -> None:
    typed = read(**JSON, keyFormat="avro", keySchema='"long"', openParts="TEXT")
    assert typed is not None
    assert (typed.value.open_parts, typed.key.open_parts) == ("text", "error")
    written = write(**JSON, openParts="text")
    assert written is not None
    assert written.value.open_parts == "text"
    assert read(**JSON) == read(**JSON, openParts="error")
    with pytest.raises(OptionError, match="Option 'openParts' must"):
        read(**JSON, openParts="any")


def test_latest_is_the_version_if_none_is_given() -> None:
    latest = read(valueFormat="avro", valueSchemaVersion="LATEST", **URL)
    assert latest == read(valueFormat="avro", **URL)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"valueSchema": "id BIGINT"}, "Option 'valueSchema' is given without 'valueFormat'"),
        ({"valueFormat": "string", "valueSchema": "x"}, "Option 'valueSchema' is given, but 'valueFormat' is string"),
        ({"keyFormat": "long", "keyFraming": "confluent"}, "'keyFraming' is given, but 'keyFormat' is long"),
        ({"valueFormat": "string", "valueFraming": "confluent"}, "'valueFraming' is given, but 'valueFormat' is str"),
        ({"keyMessage": "a.B", **JSON}, "Option 'keyMessage' is given without 'keyFormat'"),
        ({"valueMessage": "a.B", **JSON}, "Option 'valueMessage' is given, but 'valueFormat' is json"),
        ({"valueFormat": "avro"}, "Option 'valueSchema' must be set with 'valueFormat' avro, or 'schema.registry.url'"),
        ({"keyFormat": "protobuf"}, "Option 'keySchema' must be set with 'keyFormat' protobuf, or"),
        ({"valueFormat": "json"}, "Option 'valueSchema' must be set with 'valueFormat' json, or"),
        ({**AVRO, "valueFraming": "confluent"}, "'schema.registry.url' must be set with 'valueFraming' confluent"),
        ({"mode": "PERMISSIVE"}, "Option 'mode' is given, but keys and values are bytes"),
        (
            {"includeSchemaId": "true", **JSON},
            "'includeSchemaId' is true, but neither keys nor values have a wire format",
        ),
        ({"columnNameOfCorruptRecord": "_bad", **JSON}, "is given, but 'mode' is FAILFAST"),
        ({"columnNameOfCorruptRecord": "_bad", "mode": "dropmalformed", **JSON}, "but 'mode' is DROPMALFORMED"),
        ({"columnNameOfCorruptRecord": "Offset", "mode": "PERMISSIVE", **JSON}, "is 'Offset', which is another column"),
        ({"maxCorruptRatio": "0.1", **JSON}, "'maxCorruptRatio' is given, but 'mode' is FAILFAST"),
        ({"recursiveFieldMaxDepth": "2", **JSON}, "'recursiveFieldMaxDepth' is given, but neither keys nor values are"),
        (
            {"openParts": "text", **AVRO},
            "'openParts' is given, but neither keys nor values are json: it is about parts",
        ),
        ({"openParts": "text"}, "'openParts' is given, but keys and values are bytes"),
        ({"recursiveFieldMaxDepth": "2"}, "'recursiveFieldMaxDepth' is given, but keys and values are bytes"),
        (URL, "'schema.registry.url' is given, but neither keys nor values have a format with a schema"),
        ({**URL, "keyFormat": "string"}, "'schema.registry.url' is given, but neither keys nor values have a format"),
        ({"valueSubject": "s", **JSON}, "'schema.registry.url' must be set with 'valueSubject'"),
        ({"valueSubject": "s", **JSON, **URL}, "Options 'valueSchema' and 'valueSubject' are both given"),
        ({"valueSchemaVersion": "2", **JSON, **URL}, "Options 'valueSchema' and 'valueSchemaVersion' are both given"),
        ({"valueFormat": "avro", "valueFraming": "glue", **URL}, "Wire format 'glue' belongs to a Glue registry, but"),
        (
            {"valueFormat": "avro", "valueFraming": "confluent", "schema.registry.region": "eu-central-1"},
            "Option 'valueFraming' is confluent, but the registry is AWS Glue",
        ),
        (
            {"valueFormat": "avro", "subscribe": "a,b", **URL},
            "Option 'valueSubject' must be set if more than one topic may be read",
        ),
    ],
    ids=lambda given: ",".join(given) if isinstance(given, dict) else "",
)
def test_a_combination_that_means_nothing_is_refused_in_a_read(raw: dict[str, str], expected: str) -> None:
    error = refused(raw)
    assert expected in str(error)
    assert error.condition in ("OPTION_MISSING", "OPTION_CONFLICT")


@pytest.mark.parametrize("subscription", [{"subscribePattern": "t.*"}, {"assign": '{"a":[0],"b":[1]}'}])
def test_the_subject_must_be_named_if_topics_are_several(subscription: dict[str, str]) -> None:
    raw = {"valueFormat": "json", **subscription, **URL}
    assert "'valueSubject' must be set" in str(refused(raw, topic=False))
    typed = parse_batch_read_options({"kafka.bootstrap.servers": "b:1", **raw, "valueSubject": "s"}).typed
    assert typed is not None
    one = {"kafka.bootstrap.servers": "b:1", "assign": '{"a":[0,1]}', "valueFormat": "json", **URL}
    assert parse_batch_read_options(one).typed is not None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"openParts": "text"}, "'openParts' is given, but keys and values are bytes"),
        ({"autoRegisterSchemas": "true"}, "'autoRegisterSchemas' is given, but keys and values are bytes"),
        ({**AVRO, "autoRegisterSchemas": "true"}, "'schema.registry.url' must be set with 'autoRegisterSchemas'"),
        ({**JSON, "valueFraming": "confluent"}, "'schema.registry.url' must be set with 'valueFraming' confluent"),
        ({"valueFormat": "avro"}, "Option 'valueSchema' must be set with 'valueFormat' avro"),
        ({"valueSchemaVersion": "1", **AVRO, **URL}, "Options 'valueSchema' and 'valueSchemaVersion' are both given"),
    ],
    ids=lambda given: ",".join(given) if isinstance(given, dict) else "",
)
def test_a_combination_that_means_nothing_is_refused_in_a_write(raw: dict[str, str], expected: str) -> None:
    assert expected in str(refused(raw, writing=True))


def test_a_write_to_topics_of_rows_names_its_subject() -> None:
    error = refused({"valueFormat": "avro", **URL}, writing=True, topic=False)
    assert "Option 'valueSubject' must be set if more than one topic may be written" in str(error)
    options = parse_write_options(
        {"kafka.bootstrap.servers": "b:1", "valueFormat": "avro", "valueSubject": "s", **URL}, streaming=True
    )
    assert options.typed is not None
    without_ids = {"kafka.bootstrap.servers": "b:1", "valueFraming": "none", **AVRO}
    assert parse_write_options(without_ids, streaming=True).typed is not None


def test_a_subject_beside_a_schema_says_where_a_write_looks_for_its_id() -> None:
    typed = write(**AVRO, **URL, valueSubject="s", autoRegisterSchemas="true")
    assert typed is not None
    assert (typed.value.subject, typed.value.framing, typed.auto_register_schemas) == ("s", "confluent", True)


@pytest.mark.parametrize(
    "name", ["mode", "columnNameOfCorruptRecord", "includeSchemaId", "maxCorruptRatio", "recursiveFieldMaxDepth"]
)
def test_options_for_bad_records_have_no_meaning_in_a_write(name: str) -> None:
    with pytest.raises(OptionError, match=f"Option '{name}' has no meaning in a batch write"):
        write(**JSON, **{name: "1"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("valueFormat", "csv"),
        ("keyFraming", "cloudera"),
        ("mode", "IGNORE"),
        ("maxCorruptRatio", "1.5"),
        ("maxCorruptRatio", "-0.1"),
        ("recursiveFieldMaxDepth", "-1"),
        ("recursiveFieldMaxDepth", "16"),
        ("valueSchemaVersion", "0"),
        ("valueSchemaVersion", "newest"),
        ("includeSchemaId", "yes"),
        ("valueSchema", " "),
    ],
)
def test_an_invalid_value_is_the_only_problem(name: str, value: str) -> None:
    raw: dict[str, str] = {"valueFormat": "avro", "mode": "PERMISSIVE", "keyFormat": "avro", **URL, name: value}
    with pytest.raises(OptionError, match=rf"Option '{name}' must") as caught:
        read(**raw)
    assert caught.value.condition == "OPTION_INVALID"


def test_a_registry_that_is_never_asked_is_noted() -> None:
    options = parse_batch_read_options({**READ, **JSON, **URL, "valueFraming": "none"})
    assert options.typed is not None
    assert options.typed.registry is None
    assert any("'schema.registry.url' has no effect: the schemas are given" in note for note in options.notes)


def test_registration_without_a_schema_is_noted() -> None:
    options = parse_write_options(
        {**WRITE, "valueFormat": "json", "autoRegisterSchemas": "true", **URL}, streaming=False
    )
    assert any("'autoRegisterSchemas' has no effect" in note for note in options.notes)
    # Of Avro a schema is made of the column.
    options = parse_write_options(
        {**WRITE, "valueFormat": "avro", "autoRegisterSchemas": "true", **URL}, streaming=False
    )
    assert options.notes == ()


@pytest.mark.parametrize(
    ("beside", "noted"),
    [
        ({}, True),
        ({"valueSchemaVersion": "2"}, False),
        ({"checkpointLocation": "/c"}, False),
        ({"valueSchema": '"string"'}, False),
    ],
)
def test_a_streaming_write_whose_schema_may_change_is_noted(beside: dict[str, str], noted: bool) -> None:
    raw = {**WRITE, "valueFormat": "avro", **URL, **beside}
    assert any("may become another one" in each for each in parse_write_options(raw, streaming=True).notes) is noted
    assert not any(
        "may become" in each
        for each in parse_write_options({**WRITE, "valueFormat": "avro", **URL}, streaming=False).notes
    )


@pytest.mark.parametrize(
    ("beside", "noted"),
    [({}, True), ({"valueSchemaVersion": "2"}, False), ({"checkpointLocation": "/c"}, False)],
)
def test_a_stream_whose_schema_may_change_at_a_restart_is_noted(beside: dict[str, str], noted: bool) -> None:
    raw = {**READ, "valueFormat": "avro", **URL, **beside}
    notes = parse_stream_read_options(raw).notes
    assert any("Set 'valueSchemaVersion', or 'checkpointLocation'" in note for note in notes) is noted
    # A batch reads once.
    if "checkpointLocation" not in beside:
        assert not any("valueSchemaVersion" in note for note in parse_batch_read_options(raw).notes)


def test_formats_are_known_before_the_kind_of_read_is() -> None:
    assert parse_read_options({**READ, **JSON}).typed == read(**JSON)


@pytest.mark.parametrize("side", ["key", "value"])
@pytest.mark.parametrize(
    ("beside", "noted"),
    [
        ({"mode": "PERMISSIVE"}, True),
        ({"mode": "PERMISSIVE", "includeHeaders": "true"}, False),
        ({"mode": "DROPMALFORMED"}, False),
        ({}, False),
    ],
)
def test_dead_letters_that_lose_the_ids_of_their_schemas_are_noted(
    side: str, beside: dict[str, str], noted: bool
) -> None:
    raw = {**READ, f"{side}Format": "avro", f"{side}Framing": "confluentHeader", **URL, **beside}
    notes = parse_batch_read_options(raw).notes
    assert any(f"'{side}Framing' confluentHeader" in note and "'includeHeaders'" in note for note in notes) is noted
    framed = {**raw, f"{side}Framing": "confluent"}
    assert not any("dead letters" in note for note in parse_batch_read_options(framed).notes)
