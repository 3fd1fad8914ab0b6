"""What a user sees in Spark when typed keys and values cannot be read: the record, the fault, and what to do."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession

from kit.fakes.schema_registry import SchemaRegistryServer
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume, produce
from kit.programs.run import run_logging_program
from pyspark_kafka.version import install_command

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "customer", "type": "string"}],
}
GOOD = {"id": 1, "customer": "Ada"}


def first_of(faults: Iterable[str]) -> list[Any]:
    """Return all faults, the first one for `make test`: decoders have tests of each, Spark adds the sentence."""
    first, *others = faults
    return [first, *(pytest.param(fault, marks=pytest.mark.full("More bad values")) for fault in others)]


def avro(order: dict[str, Any], schema: Any = ORDER) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, order)
    return out.getvalue()


def behind(schema_id: int, value: bytes) -> bytes:
    """Return a value as Confluent's serializers write it."""
    return b"\x00" + schema_id.to_bytes(4, "big") + value


def error_text(call: Callable[[], object]) -> str:
    """Run a call that must fail, and return the sentence that a user looks for in Spark's text."""
    with pytest.raises(Exception, match=r"\[[A-Z_.]+\]") as caught:
        call()
    found = re.search(r"\[(?!PYTHON|STREAM)[A-Z_.]+\] [A-Z][^\n]*", str(caught.value))
    assert found, str(caught.value)
    return found[0].replace("\\'", "'")


class Topic:
    """A topic with one good record and one that a test writes, and reads of it."""

    def __init__(self, spark: SparkSession, servers: str, name: str) -> None:
        self._spark, self._servers, self.name = spark, servers, name

    def write(self, *values: bytes) -> None:
        produce(self._servers, self.name, [Record(b"k", value) for value in values])

    def load(self, **options: Any) -> DataFrame:
        named = {option.replace("_", "."): str(value) for option, value in options.items()}
        reader = self._spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", self._servers)
        return reader.option("subscribe", self.name).options(**named).load()

    def failure(self, **options: Any) -> str:
        """Return the sentence of a read."""
        return error_text(lambda: self.load(**options).collect())

    def faults(self, **options: Any) -> list[tuple[int, str, str, str | None]]:
        """Return the bad records of a read: offset, reason, message, id of the schema."""
        rows = self.load(mode="PERMISSIVE", **options).where("_corrupt_record IS NOT NULL").orderBy("offset")
        found = [(row.offset, row._corrupt_record) for row in rows.collect()]
        return [(offset, bad.reason, bad.message, bad.schemaId) for offset, bad in found]


@pytest.fixture
def topic(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker) -> Topic:
    return Topic(spark, bootstrap_servers, make_topic())


# Reads of values of one schema that is given. What each value is, its reason, and the end of its sentence.
_OF_AVRO = {
    "cut short": (avro(GOOD)[:-1], "DECODE_FAILED", "it ends in the middle of a field, after "),
    "bytes too many": (avro(GOOD) + b"!", "DECODE_FAILED", "bytes follow the value, after "),
    "number out of range": (
        avro({"id": 1 << 40, "customer": "Ada"}, json.loads(json.dumps(ORDER).replace('"int"', '"long"'))),
        "DECODE_FAILED",
        "a number is out of the range of its type, after ",
    ),
    "no UTF-8": (avro(GOOD)[:-1] + b"\xff", "DECODE_FAILED", "a string is not UTF-8, after "),
    "empty": (b"", "DECODE_FAILED", "it ends in the middle of a field, after "),
}
_OF_JSON = {
    "cut short": (b'{"id": 1, "customer": "Zarathustra', "DECODE_FAILED"),
    "number out of range": (b'{"id": 99999999999, "customer": "Zarathustra"}', "TYPE_MISMATCH"),
    "no UTF-8": (b'{"id": 1, "customer": "Zarathustra\xff"}', "DECODE_FAILED"),
    "nested without end": (b'{"id": 1, "x": ' + b"[" * 100_000, "DECODE_FAILED"),
    "another type": (b'{"id": "Zarathustra", "customer": "Ada"}', "TYPE_MISMATCH"),
    "no object": (b'["Zarathustra"]', "DECODE_FAILED"),
    "empty": (b"", "DECODE_FAILED"),
}


@pytest.mark.parametrize("fault", first_of(_OF_AVRO))
def test_bad_value_in_avro_is_named_with_its_place_and_what_to_do(topic: Topic, fault: str) -> None:
    value, reason, message = _OF_AVRO[fault]
    topic.write(avro(GOOD), value)
    options = {"valueFormat": "avro", "valueSchema": json.dumps(ORDER)}
    text = topic.failure(**options)
    begin = f"[BAD_RECORD] The value of the record at offset 1 of {topic.name}-0"
    assert text.startswith(begin)
    assert f"cannot be read as avro: {reason}: {message}" in text
    assert "Hint: " in text
    ((offset, code, said, schema_id),) = topic.faults(**options)
    assert (offset, code, schema_id) == (1, reason, None)
    assert said.startswith(message)


@pytest.mark.parametrize("fault", first_of(_OF_JSON))
def test_bad_value_in_json_is_named_with_its_place_and_what_to_do(topic: Topic, fault: str) -> None:
    value, reason = _OF_JSON[fault]
    topic.write(json.dumps(GOOD).encode(), value)
    options = {"valueFormat": "json", "valueSchema": "id INT, customer STRING"}
    text = topic.failure(**options)
    assert text.startswith(f"[BAD_RECORD] The value of the record at offset 1 of {topic.name}-0")
    assert f"cannot be read as json: {reason}: " in text
    assert "Hint: " in text
    ((offset, code, said, _),) = topic.faults(**options)
    assert (offset, code) == (1, reason)
    assert said
    # Nothing of what a record holds.
    assert not any(part in said + text for part in ("99999999999", "Zarathustra", "[["))


def test_wrong_framing_and_unknown_ids_are_bad_records(topic: Topic, schema_registry: SchemaRegistryServer) -> None:
    known = schema_registry.add(f"{topic.name}-value", json.dumps(ORDER))
    topic.write(behind(known, avro(GOOD)), b"\x01\x00\x00\x00\x01\x02", b"\x00\x00", behind(999, avro(GOOD)))
    options = {"valueFormat": "avro", "schema_registry_url": schema_registry.url}
    magic, short, unknown = topic.faults(**options)
    assert magic == (1, "INVALID_MAGIC_BYTE", "it begins with the byte 1, not with 0", None)
    assert short == (2, "INCOMPLETE_HEADER", "it has 2 bytes, fewer than the 5 before a value", None)
    assert unknown[:2] == (3, "SCHEMA_ID_NOT_FOUND")
    assert unknown[3] == "999"
    text = topic.failure(**options)
    assert "'valueFraming'" in text
    assert "INVALID_MAGIC_BYTE: it begins with the byte 1, not with 0" in text


def test_unknown_id_names_the_id_and_what_to_check(topic: Topic, schema_registry: SchemaRegistryServer) -> None:
    schema_registry.add(f"{topic.name}-value", json.dumps(ORDER))
    topic.write(behind(999, avro(GOOD)))
    text = topic.failure(valueFormat="avro", schema_registry_url=schema_registry.url)
    assert f"offset 0 of {topic.name}-0" in text
    assert "with schema 999: SCHEMA_ID_NOT_FOUND: its schema 999 is not in the schema registry " in text
    assert "Hint: Check that option 'schema.registry.url' names the registry of the topic's writers" in text


def test_schema_that_does_not_resolve_names_the_field(topic: Topic, schema_registry: SchemaRegistryServer) -> None:
    older = {**ORDER, "fields": ORDER["fields"][:1]}
    schema_id = schema_registry.add(f"{topic.name}-value", json.dumps(older))
    topic.write(behind(schema_id, avro({"id": 1}, older)))
    options = {
        "valueFormat": "avro", "valueSchema": json.dumps(ORDER), "schema_registry_url": schema_registry.url,
    }  # fmt: skip
    ((offset, reason, message, found),) = topic.faults(**options)
    assert (offset, reason, found) == (0, "RESOLUTION_FAILED", str(schema_id))
    assert message == (
        f"its schema {schema_id} does not fit the reader's at 'customer': it has no such field, and the reader's is "
        "string without a default"
    )
    text = topic.failure(**options)
    assert f"offset 0 of {topic.name}-0" in text
    assert "Hint: Use a 'valueSchema' or 'valueSchemaVersion' that all writers' schemas can be read as" in text


def test_registry_that_is_down_when_the_read_is_planned_is_named(topic: Topic) -> None:
    options = {"schema_registry_url": "http://127.0.0.1:1", "schema_registry_timeout": "2s"}
    text = topic.failure(valueFormat="avro", **options)
    assert text.startswith("[REGISTRY_UNREACHABLE] ")
    assert "127.0.0.1:1" in text
    assert "Hint: " in text


@pytest.mark.parametrize("mode", first_of(["PERMISSIVE", "FAILFAST", "DROPMALFORMED"]))
def test_registry_that_goes_down_fails_the_task_in_every_mode(
    topic: Topic, schema_registry: SchemaRegistryServer, mode: str
) -> None:
    schema_id = schema_registry.add(f"{topic.name}-value", json.dumps(ORDER))
    topic.write(behind(schema_id, avro(GOOD)))
    # Planning asks for nothing.
    given = {"valueFormat": "avro", "valueSchema": json.dumps(ORDER), "mode": mode}
    rows = topic.load(**given, schema_registry_url=schema_registry.url, schema_registry_timeout="2s")
    schema_registry.stop()
    text = error_text(rows.collect)
    assert text.startswith("[REGISTRY_UNREACHABLE] ")
    assert f"{topic.name}-0" in text
    assert "Hint: " in text


def test_subject_that_does_not_exist_is_named_by_load(topic: Topic, schema_registry: SchemaRegistryServer) -> None:
    text = topic.failure(valueFormat="avro", schema_registry_url=schema_registry.url)
    assert f"'{topic.name}-value'" in text
    assert "valueSubject" in text
    assert "Hint: " in text


def test_option_without_its_format_is_named(topic: Topic) -> None:
    text = topic.failure(valueSchema="id INT")
    assert "'valueSchema' is given without 'valueFormat'" in text
    assert "Set 'valueFormat' to json, avro or protobuf" in text


_WITHOUT_EXTRA = """
import sys
from pyspark.sql import SparkSession

servers, topic = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
schemas = {"json": "id INT", "protobuf": 'syntax = "proto3"; message M { int32 id = 1; }'}
for name, schema in schemas.items():
    read = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    try:
        read.option("valueFormat", name).option("valueSchema", schema).load().collect()
    except Exception as error:
        print(name, str(error).replace("\\n", " "))
spark.stop()
"""


@pytest.mark.full("Drivers of their own")
def test_format_without_its_extra_says_what_to_install(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    for package in ("arro3", "ptars"):
        place = tmp_path / "without" / package
        place.mkdir(parents=True)
        (place / "__init__.py").write_text(f"raise ModuleNotFoundError('No module', name={package!r})")
    path = os.pathsep.join(filter(None, [str(tmp_path / "without"), os.environ.get("PYTHONPATH")]))
    printed, _ = run_logging_program(
        _WITHOUT_EXTRA, bootstrap_servers, make_topic(), place=tmp_path, environment={"PYTHONPATH": path}
    )
    for name, line in zip(("json", "protobuf"), printed.splitlines(), strict=True):
        assert line.startswith(f"{name} ")
        assert "[MISSING_DEPENDENCY]" in line
        assert install_command(name) in line


def write(rows: DataFrame, servers: str, topic: str, **options: Any) -> None:
    named = {name.replace("_", "."): str(value) for name, value in options.items()}
    writer = rows.write.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).option("topic", topic)
    writer.options(**named).mode("append").save()


def test_row_that_does_not_fit_is_named_and_nothing_is_sent(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    rows = spark.sql("SELECT struct(id AS id, 'Ada' AS customer) AS value FROM VALUES (1L), (99999999999L) AS t(id)")
    text = error_text(
        lambda: write(rows.coalesce(1), bootstrap_servers, topic, valueFormat="avro", valueSchema=json.dumps(ORDER))
    )
    assert "id" in text
    assert "99999999999" not in text
    consume(bootstrap_servers, topic, 0)


def test_write_to_a_subject_without_schema_sends_nothing(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, schema_registry: SchemaRegistryServer
) -> None:
    topic = make_topic()
    rows = spark.sql("SELECT struct(1 AS id, 'Ada' AS customer) AS value")
    text = error_text(
        lambda: write(rows, bootstrap_servers, topic, valueFormat="avro", schema_registry_url=schema_registry.url)
    )
    assert f"{topic}-value" in text
    assert "Hint: " in text
    consume(bootstrap_servers, topic, 0)
