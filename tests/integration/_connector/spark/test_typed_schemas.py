"""Typed reads with schemas of Avro and Protobuf, given or from a registry; a version stays that of the query."""

from __future__ import annotations

import io
import itertools
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from kit.fakes.schema_registry import SchemaRegistryServer
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce

_FIELDS: list[Any] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"], "default": None},
]
_NUMBERS = itertools.count()
PERSON = {"type": "record", "name": "Person", "fields": _FIELDS}
# The same with a field more.
AGED_PERSON = {**PERSON, "fields": [*_FIELDS, {"name": "age", "type": "int", "default": -1}]}
PROTO = 'syntax = "proto3"; package shop; message Order { int64 id = 1; string name = 2; repeated int32 n = 3; }'


def avro(schema: Any, value: dict[str, Any], schema_id: int | None = None) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return (b"" if schema_id is None else b"\x00" + schema_id.to_bytes(4, "big")) + out.getvalue()


def read(spark: SparkSession, servers: str, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    return reader.options(subscribe=topic, **options).load()


def stream(spark: SparkSession, servers: str, topic: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    return reader.options(subscribe=topic, startingOffsets="earliest", **options).load()


def test_avro_with_the_schema_in_an_option_is_read(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    people = [{"id": i, "name": None if i % 3 == 0 else f"n{i}"} for i in range(20)]
    produce(bootstrap_servers, topic, [Record(None, avro(PERSON, each)) for each in people])
    frame = read(spark, bootstrap_servers, topic, valueFormat="avro", valueSchema=json.dumps(PERSON))
    assert [row.asDict() for row in frame.orderBy("offset").select("value.*").collect()] == people


def test_record_within_itself_is_read_as_deep_as_the_option_says(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    fields = [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Node"], "default": None}]
    node: Any = {"type": "record", "name": "Node", "fields": fields}
    deep = {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": {"v": 4, "next": None}}}}
    produce(bootstrap_servers, topic, [Record(None, avro(node, each)) for each in (deep, {"v": 5, "next": None})])
    given = {"valueFormat": "avro", "valueSchema": json.dumps(node)}
    with pytest.raises(AnalysisException, match="set option 'recursiveFieldMaxDepth' to the levels to read"):
        read(spark, bootstrap_servers, topic, **given)
    for most, expected in ((1, [{"v": 1}, {"v": 5}]), (2, [{"v": 1, "next": {"v": 2}}, {"v": 5, "next": None}])):
        frame = read(spark, bootstrap_servers, topic, **given, recursiveFieldMaxDepth=str(most))
        rows = frame.orderBy("offset").select("value.*").collect()
        assert [row.asDict(recursive=True) for row in rows] == expected
    twice = {**node, "fields": [*fields, {"name": "other", "type": ["null", "Node"], "default": None}]}
    options = {**given, "valueSchema": json.dumps(twice), "recursiveFieldMaxDepth": "15"}
    with pytest.raises(AnalysisException, match="with recursiveFieldMaxDepth 15 it has more than 20000 parts"):
        read(spark, bootstrap_servers, topic, **options)


def test_protobuf_with_the_schema_in_an_option_is_read(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    # By hand: id 300, name "x", n packed 1 and 2; and an empty message, whose fields have their defaults.
    produce(bootstrap_servers, topic, [Record(None, bytes.fromhex("08ac021201781a020102")), Record(None, b"")])
    frame = read(spark, bootstrap_servers, topic, valueFormat="protobuf", valueSchema=PROTO)
    rows = [row.value for row in frame.orderBy("offset").collect()]
    assert [(row.id, row.name, row.n) for row in rows] == [(300, "x", [1, 2]), (0, "", [])]


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    with SchemaRegistryServer() as server:
        yield server


def of_registry(registry: SchemaRegistryServer, **options: str) -> dict[str, str]:
    """Return options that are new each time: the answers for equal ones are remembered for some seconds."""
    timeout = {"schema.registry.timeout": f"{10_000 + next(_NUMBERS)}ms"}
    return {"valueFormat": "avro", "schema.registry.url": registry.url, **timeout, **options}


def test_values_of_several_schemas_are_read_with_the_latest(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, registry: SchemaRegistryServer
) -> None:
    topic = make_topic()
    first = registry.add(f"{topic}-value", json.dumps(PERSON))
    second = registry.add(f"{topic}-value", json.dumps(AGED_PERSON))
    produce(
        bootstrap_servers,
        topic,
        [
            Record(None, avro(PERSON, {"id": 1, "name": "a"}, first)),
            Record(None, avro(AGED_PERSON, {"id": 2, "name": None, "age": 40}, second)),
            Record(b"gone", None),
            Record(None, avro(PERSON, {"id": 3, "name": "c"}, 77)),
        ],
    )
    given = of_registry(registry, mode="PERMISSIVE", includeSchemaId="true")
    frame = read(spark, bootstrap_servers, topic, **given).orderBy("offset")
    rows = frame.select("value", "value_schema_id", "_corrupt_record").collect()
    assert [row.value and tuple(row.value) for row in rows] == [(1, "a", -1), (2, None, 40), None, None]
    assert [row.value_schema_id for row in rows] == [str(first), str(second), None, "77"]
    corrupt = [row["_corrupt_record"] for row in rows]
    assert corrupt[:3] == [None] * 3
    assert (corrupt[3].reason, corrupt[3].schemaId) == ("SCHEMA_ID_NOT_FOUND", "77")


def test_ids_of_schemas_in_headers_are_read_whether_or_not_headers_are_a_column(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, registry: SchemaRegistryServer
) -> None:
    topic = make_topic()
    guid = registry.guid(registry.add(f"{topic}-value", json.dumps(PERSON)))
    header: list[tuple[str, bytes | None]] = [("__value_schema_id", b"\x01" + uuid.UUID(guid).bytes)]
    produce(bootstrap_servers, topic, [Record(b"k", avro(PERSON, {"id": 1, "name": "a"}), headers=header)])
    given = of_registry(registry, valueFraming="confluentHeader", includeSchemaId="true")
    for headers in ("false", "true"):
        frame = read(spark, bootstrap_servers, topic, **given, includeHeaders=headers)
        assert ("headers" in frame.columns) is (headers == "true")
        (row,) = frame.collect()
        assert (tuple(row.value), row.value_schema_id) == ((1, "a"), guid)


@pytest.mark.full("Waits for limits of time")
def test_an_outage_of_the_registry_fails_the_task_and_makes_no_bad_record(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, registry: SchemaRegistryServer
) -> None:
    topic = make_topic()
    number = registry.add("people", json.dumps(AGED_PERSON))
    produce(bootstrap_servers, topic, [Record(None, avro(AGED_PERSON, {"id": 1, "name": "a", "age": 3}, number))])
    given = of_registry(registry, valueSchema=json.dumps(PERSON), valueFraming="confluent", mode="DROPMALFORMED")
    frame = read(spark, bootstrap_servers, topic, **{**given, "schema.registry.timeout": "8s"})
    registry.stop()
    with pytest.raises(Exception, match=rf"Reading the values of {topic}-0, offsets 0 to 0: "):
        frame.collect()
    registry.start()
    assert [tuple(row.value) for row in frame.collect()] == [(1, "a")]


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_restarted_query_keeps_its_schema_where_the_source_knows_the_checkpoint(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    registry: SchemaRegistryServer,
    tmp_path: Path,
    *,
    is_recorded: bool,
) -> None:
    topic, checkpoint = make_topic(), str(tmp_path / "checkpoint")
    batches: list[tuple[list[str], list[Any]]] = []

    def note(batch: DataFrame, _: int) -> None:
        rows = batch.orderBy("offset").select("value.*")
        batches.append((rows.columns, [tuple(row) for row in rows.collect()]))

    def run() -> None:
        given = {"checkpointLocation": checkpoint} if is_recorded else {}
        rows = stream(spark, bootstrap_servers, topic, **of_registry(registry, **given))
        query = rows.writeStream.foreachBatch(note).option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).start().awaitTermination()

    first = registry.add(f"{topic}-value", json.dumps(PERSON))
    produce(bootstrap_servers, topic, [Record(None, avro(PERSON, {"id": 1, "name": "a"}, first))])
    run()
    second = registry.add(f"{topic}-value", json.dumps(AGED_PERSON))
    produce(bootstrap_servers, topic, [Record(None, avro(AGED_PERSON, {"id": 2, "name": "b", "age": 5}, second))])
    run()
    assert batches[0] == (["id", "name"], [(1, "a")])
    assert batches[1] == ((["id", "name"], [(2, "b")]) if is_recorded else (["id", "name", "age"], [(2, "b", 5)]))
    assert (tmp_path / "checkpoint" / "sources" / "0" / "reader-schemas").exists() is is_recorded


def test_a_version_that_is_set_takes_precedence_over_the_one_of_the_checkpoint(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    registry: SchemaRegistryServer,
    tmp_path: Path,
) -> None:
    topic, checkpoint = make_topic(), str(tmp_path / "checkpoint")

    def run(**options: str) -> list[str]:
        rows = stream(
            spark, bootstrap_servers, topic, **of_registry(registry, checkpointLocation=checkpoint, **options)
        )
        query = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).start().awaitTermination()
        return rows.select("value.*").columns

    registry.add(f"{topic}-value", json.dumps(PERSON))
    assert run() == ["id", "name"]
    registry.add(f"{topic}-value", json.dumps(AGED_PERSON))
    assert run() == ["id", "name"]
    assert run(valueSchemaVersion="2") == ["id", "name", "age"]
    # From now on it is the one of the checkpoint.
    assert run() == ["id", "name", "age"]


def test_a_subject_that_was_recreated_is_found_out_at_a_restart(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    registry: SchemaRegistryServer,
    tmp_path: Path,
) -> None:
    topic, checkpoint = make_topic(), str(tmp_path / "checkpoint")
    given = of_registry(registry, checkpointLocation=checkpoint)
    registry.add(f"{topic}-value", json.dumps(PERSON), schema_id=5)
    query = stream(spark, bootstrap_servers, topic, **given).writeStream.format("noop")
    query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    registry.remove(f"{topic}-value")
    registry.add(f"{topic}-value", json.dumps(AGED_PERSON), schema_id=6)
    given = of_registry(registry, checkpointLocation=checkpoint)
    with pytest.raises(Exception, match=r"\[READER_SCHEMA_CHANGED\] The query reads values with version 1 of subject"):
        stream(spark, bootstrap_servers, topic, **given)
