"""Writes of typed keys and values through Spark, read back by other programs' decoders."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kit.fakes.schema_registry import SchemaRegistryServer
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume, consume_committed, produce
from kit.protobuf_schema import everything, file_set
from kit.waiting import eventually

_FURTHER = pytest.mark.full("Further codecs and framings")
ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "DONE"]}},
            {"name": "tags", "type": {"type": "map", "values": "string"}},
            {"name": "parts", "type": {"type": "array", "items": ["null", "int"]}},
        ],
    }
)
ORDER_COLUMNS = (
    "named_struct('id', id, 'at', IF(id % 2 = 0, timestamp_micros(id * 1000), NULL), "
    "'price', CAST(id AS DECIMAL(10, 2)), 'state', IF(id % 2 = 0, 'NEW', 'DONE'), 'tags', map('k', CAST(id AS STRING)),"
    " 'parts', array(CAST(id AS INT), NULL))"
)


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    with SchemaRegistryServer() as server:
        yield server


def save(rows: DataFrame, servers: str, **options: Any) -> None:
    writer = rows.write.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    writer.options(**{name.replace("__", "."): value for name, value in options.items()}).mode("append").save()


def avro(schema: str, raw: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(raw), fastavro.parse_schema(json.loads(schema)), None)


def framed(record: Record) -> tuple[int, bytes]:
    assert record.value is not None
    assert record.value[:1] == b"\0"
    return int.from_bytes(record.value[1:5], "big"), record.value[5:]


def order(number: int) -> dict[str, Any]:
    at = dt.datetime.fromtimestamp(0, dt.timezone.utc) + dt.timedelta(milliseconds=number)
    return {
        "id": number,
        "at": None if number % 2 else at,
        "price": decimal.Decimal(number).quantize(decimal.Decimal("0.01")),
        "state": "DONE" if number % 2 else "NEW",
        "tags": {"k": str(number)},
        "parts": [number, None],
    }


def test_avro_of_a_registry_is_read_by_fastavro(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, registry: SchemaRegistryServer
) -> None:
    topic = make_topic(partitions=2)
    registry.add(f"{topic}-key", '"string"')
    schema_id = registry.add(f"{topic}-value", ORDER)
    # Every tenth one is a tombstone.
    rows = spark.range(100).selectExpr("CAST(id AS STRING) AS key", f"IF(id % 10 = 9, NULL, {ORDER_COLUMNS}) AS value")
    save(rows, bootstrap_servers, topic=topic, keyFormat="avro", valueFormat="avro", schema__registry__url=registry.url)
    found: dict[int, tuple[int, bytes] | None] = {}
    for record in consume(bootstrap_servers, topic, 100):
        assert record.key is not None
        number = int(avro('"string"', record.key[5:]))
        found[number] = None if record.value is None else framed(record)
    assert sorted(found) == [*range(100)]
    for number, value in found.items():
        if number % 10 == 9:
            assert value is None
        else:
            assert value is not None
            assert value[0] == schema_id
            assert avro(ORDER, value[1]) == order(number)
    # Found on the driver alone.
    assert registry.count("/subjects/") == 2


def test_protobuf_is_read_by_googles_library(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    schema = base64.b64encode(file_set().SerializeToString()).decode()
    rows = spark.range(3).selectExpr(
        "IF(id = 1, NULL, named_struct('l', id, 's', 'é', 'at', timestamp_micros(1500000), 'n', array(id), 'e', 'SOME',"
        " 'm', map('k', 1), 'o', named_struct('x', 0.5D))) AS value"
    )
    save(
        rows.coalesce(1), bootstrap_servers, topic=topic, valueFormat="protobuf", valueSchema=schema,
        valueMessage="kit.Everything",
    )  # fmt: skip
    first, tombstone, last = (record.value for record in consume(bootstrap_servers, topic, 3))
    assert tombstone is None
    _, made = everything()
    expected = {"s": "é", "e": 1, "m": {"k": 1}, "o": {"x": 0.5}}
    messages = [made(l=number, n=[number], **expected) for number in (0, 2)]
    for message in messages:
        message.at.FromMilliseconds(1500)
    assert [made.FromString(raw or b"") for raw in (first, last)] == messages


PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Row {
  optional int64 id = 1;
  optional string text = 2;
  google.protobuf.Timestamp at = 3;
  repeated int32 parts = 4;
  map<string, double> rates = 5;
  Inner inner = 6;
  message Inner { optional bool yes = 1; bytes raw = 2; }
}
"""
COLUMNS = (
    "id BIGINT, text STRING, at TIMESTAMP, parts ARRAY<INT>, rates MAP<STRING, DOUBLE>, "
    "inner STRUCT<yes: BOOLEAN, raw: BINARY>"
)
# Spark returns times without a zone.
FIRST, SECOND = dt.datetime(2026, 1, 2, 3, 4, 5, 678901), dt.datetime(1999, 12, 31)  # noqa: DTZ001
ROWS = [
    (1, "é", FIRST, [1, 2], {"k": 0.5}, (True, bytearray(b"\0"))),
    (None, None, SECOND, [], {}, (False, bytearray())),
]


@pytest.mark.parametrize(
    ("name", "framing"),
    [
        ("avro", "confluent"),
        ("json", "confluentHeader"),
        ("protobuf", "confluent"),
        pytest.param("avro", "confluentHeader", marks=_FURTHER),
        pytest.param("json", "confluent", marks=_FURTHER),
        pytest.param("protobuf", "confluentHeader", marks=_FURTHER),
    ],
)
def test_values_of_each_format_are_read_as_they_were_written(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    registry: SchemaRegistryServer,
    name: str,
    framing: str,
) -> None:
    topic = make_topic()
    rows = spark.createDataFrame([(row,) for row in ROWS] + [(None,)], f"value STRUCT<{COLUMNS}>").coalesce(1)
    options = {"valueFormat": name, "valueFraming": framing, "schema__registry__url": registry.url}
    given = {}
    if name == "avro":
        given["autoRegisterSchemas"] = "true"
    elif name == "protobuf":
        registry.add(f"{topic}-value", PROTO, "PROTOBUF")
    else:
        properties = {"id": "integer", "text": "string", "parts": "array", "rates": "object", "inner": "object"}
        schema: dict[str, Any] = {each: {"type": kind} for each, kind in properties.items()}
        schema["at"] = {"type": "string", "format": "date-time"}
        schema["parts"]["items"] = {"type": "integer"}
        schema["rates"]["additionalProperties"] = {"type": "number"}
        inner = {"yes": {"type": "boolean"}, "raw": {"type": "string", "contentEncoding": "base64"}}
        schema["inner"]["properties"] = inner
        order = {each.split()[0]: schema[each.split()[0]] for each in COLUMNS.split(", ") if each.split()[0] in schema}
        registry.add(f"{topic}-value", json.dumps({"type": "object", "properties": order}), "JSON")
    save(rows, bootstrap_servers, topic=topic, **options, **given)
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    if framing == "confluentHeader":
        reader = reader.option("includeHeaders", "true")
    reader = reader.options(**{key.replace("__", "."): text for key, text in options.items()}, subscribe=topic)
    found = [row["value"] for row in reader.load().orderBy("offset").collect()]
    assert found[-1] is None
    assert [row.asDict(recursive=True) for row in found[:-1]] == [
        row["value"].asDict(recursive=True) for row in rows.collect()[:-1]
    ]


def test_columns_that_no_format_has_are_refused_by_name(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    rows = spark.range(1).selectExpr("named_struct('a', named_struct('d', INTERVAL '1' DAY)) AS value")
    with pytest.raises(PySparkException, match=r"SCHEMA_COLUMN_MISMATCH.*Column 'a.d' has the type duration"):
        save(rows, bootstrap_servers, topic=make_topic(), valueFormat="json")


def test_json_is_what_to_json_makes_but_for_known_differences(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    rows = spark.range(1).selectExpr(
        """named_struct(
          'same', named_struct('i', id, 's', 'a"\\n/é', 'none', CAST(NULL AS INT), 'b', true, 'f', 1.5F, 'd', 0.1D,
            'n', CAST(1.20 AS DECIMAL(5, 2)), 'day', DATE'2026-01-02', 'raw', X'00FF', 'l', array(1, NULL),
            'm', map('k', 1), 'numbers', map(1, 'v'), 'empty', named_struct('x', CAST(NULL AS INT))),
          'at', TIMESTAMP'2026-01-02 03:04:05.123456', 'whole', TIMESTAMP'2026-01-02 03:04:05',
          'wall', TIMESTAMP_NTZ'2026-01-02 03:04:05', 'large', 1e20D, 'nulls', map('k', CAST(NULL AS INT))
        ) AS value"""
    )
    save(rows, bootstrap_servers, topic=topic, valueFormat="json")
    ((record),) = consume(bootstrap_servers, topic, 1)
    assert record.value is not None
    ours = record.value.decode()
    theirs: str = rows.selectExpr("to_json(value) AS v").first()["v"]  # type: ignore[index]
    same = ours[: ours.index(',"at"')]
    assert same == theirs[: theirs.index(',"at"')]
    assert json.loads(ours[len(same) + 1 :].join(["{", ""])) == {
        "at": "2026-01-02T03:04:05.123456Z",
        "whole": "2026-01-02T03:04:05Z",
        "wall": "2026-01-02T03:04:05",
        "large": 1e20,
        "nulls": {},
    }
    # Milliseconds, with the zone of the session; and nulls of maps.
    assert json.loads(theirs[len(same) + 1 :].join(["{", ""])) == {
        "at": "2026-01-02T03:04:05.123Z",
        "whole": "2026-01-02T03:04:05.000Z",
        "wall": "2026-01-02T03:04:05.000",
        "large": 1e20,
        "nulls": {"k": None},
    }


def test_a_row_that_does_not_fit_is_named_and_nothing_of_its_batch_is_visible(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    rows = spark.range(0, 1000, 1, 1).selectExpr("named_struct('a', IF(id = 700, 1L << 40, id)) AS value")
    with pytest.raises(PySparkException) as caught:
        save(rows, bootstrap_servers, topic=topic, valueFormat="avro", valueSchema=schema)
    text = str(caught.value)
    assert (
        "[VALUE_NOT_ENCODABLE] Row 700 of the task, counted from 0, cannot be written: column 'value', field 'a'"
        in text
    )
    assert "the number is out of the range of the schema's type" in text
    assert str(1 << 40) not in text
    assert consume(bootstrap_servers, topic, 0) == []


def test_a_refusal_of_the_registry_fails_the_write_before_a_record_is_sent(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, registry: SchemaRegistryServer
) -> None:
    topic = make_topic()
    subject = f"{topic}-value"
    rows = spark.range(3).selectExpr("named_struct('a', id) AS value")
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]})
    options = {"topic": topic, "valueFormat": "avro", "schema__registry__url": registry.url}
    with pytest.raises(PySparkException, match=rf"SCHEMA_NOT_FOUND.*{subject}"):
        save(rows, bootstrap_servers, **options)
    with pytest.raises(PySparkException, match=r"SCHEMA_NOT_REGISTERED.*POST /subjects/"):
        save(rows, bootstrap_servers, **options, valueSchema=schema)
    registry.forbid(subject, "reader field a is missing")
    registry.add(subject, '"long"')
    with pytest.raises(PySparkException, match=r"SCHEMA_INCOMPATIBLE.*reader field a is missing"):
        save(rows, bootstrap_servers, **options, valueSchema=schema, autoRegisterSchemas=True)
    with pytest.raises(PySparkException, match=r"SCHEMA_COLUMN_MISMATCH.*Column 'value' has the type struct"):
        save(rows, bootstrap_servers, **options)
    registry.stop()
    with pytest.raises(PySparkException, match="REGISTRY_"):
        save(rows, bootstrap_servers, **options, schema__registry__timeout="1s")
    registry.start()
    assert consume(bootstrap_servers, topic, 0) == []
    registry.forbid(subject)
    save(rows, bootstrap_servers, **options, valueSchema=schema, autoRegisterSchemas=True)
    ids = {framed(record)[0] for record in consume(bootstrap_servers, topic, 3)}
    assert ids == {registry.versions(subject)[-1]}


def test_a_schema_is_made_of_the_columns_and_registered_if_that_is_asked_for(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, registry: SchemaRegistryServer
) -> None:
    topic = make_topic()
    rows = spark.range(2).coalesce(1).selectExpr("named_struct('id', id, 'at', timestamp_micros(id)) AS value")
    save(
        rows, bootstrap_servers, topic=topic, valueFormat="avro", schema__registry__url=registry.url,
        autoRegisterSchemas=True,
    )  # fmt: skip
    (schema_id,) = registry.versions(f"{topic}-value")
    sent = next(each.body["schema"] for each in registry.requests if each.method == "POST" and "versions" in each.path)
    found = [framed(record) for record in consume(bootstrap_servers, topic, 2)]
    assert [(number, avro(sent, raw)["id"]) for number, raw in found] == [(schema_id, 0), (schema_id, 1)]


@pytest.mark.parametrize(
    "guarantee", [pytest.param("at_least_once", marks=pytest.mark.full("The weaker guarantee")), "exactly_once"]
)
def test_a_stream_keeps_its_schema_over_batches_and_restarts(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    registry: SchemaRegistryServer,
    tmp_path: Path,
    guarantee: str,
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=2)
    first = json.dumps({"type": "record", "name": "R", "fields": [{"name": "v", "type": "string"}]})
    second = json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": "v", "type": "string"}, {"name": "w", "type": "int"}]}
    )
    subject = f"{target}-value"
    schema_id = registry.add(subject, first)

    def run(columns: str, **more: str) -> int:
        """Write what the source has; return how many batches it was."""
        reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        rows = reader.options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="10").load()
        writer = (
            rows.selectExpr(columns)
            .writeStream.format("pyspark_kafka")
            .options(
                **{
                    "kafka.bootstrap.servers": bootstrap_servers,
                    "topic": target,
                    "deliveryGuarantee": guarantee,
                    "checkpointLocation": str(tmp_path),
                    "valueFormat": "avro",
                    "schema.registry.url": registry.url,
                    **more,
                }
            )
        )
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return len(query.recentProgress)

    def written() -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for record in consume_committed(bootstrap_servers, target):
            number, raw = framed(record)
            found.setdefault(number, []).append(avro(first, raw)["v"])
        return {number: sorted(texts) for number, texts in found.items()}

    produce(bootstrap_servers, source, [Record(None, b"v%02d" % number) for number in range(40)])
    assert run("named_struct('v', CAST(value AS STRING)) AS value") >= 4
    expected = [f"v{number:02}" for number in range(40)]
    eventually(lambda: written() == {schema_id: expected})
    assert registry.count(f"/subjects/{subject}") == 1
    # A newer version does not matter, nor a registry that is gone.
    registry.add(subject, second)
    registry.stop()
    if guarantee == "exactly_once":
        # A batch whose commit Spark has not noted runs again, and writes nothing.
        numbers = [int(each.name) for each in (tmp_path / "commits").iterdir() if each.name.isdigit()]
        for name in (f"{max(numbers)}", f".{max(numbers)}.crc"):
            (tmp_path / "commits" / name).unlink(missing_ok=True)
    produce(bootstrap_servers, source, [Record(None, b"w")])
    run("named_struct('v', CAST(value AS STRING)) AS value")
    eventually(lambda: written() == {schema_id: [*expected, "w"]})
    # Other columns are another plan.
    registry.start()
    produce(bootstrap_servers, source, [Record(None, b"x")])
    # The version is named, as a process remembers for 5 s which one is the latest.
    run("named_struct('v', CAST(value AS STRING), 'w', 7) AS value", valueSchemaVersion="2")
    newest = registry.versions(subject)[-1]
    eventually(lambda: written() == {schema_id: [*expected, "w"], newest: ["x"]})


def test_a_client_of_spark_connect_writes_typed_values(
    connect_url: str, bootstrap_servers: str, make_topic: TopicMaker, registry: SchemaRegistryServer
) -> None:
    from pyspark.sql.connect.session import SparkSession as ConnectSession  # noqa: PLC0415 - a client of its own

    topic = make_topic()
    schema_id = registry.add(f"{topic}-value", ORDER)
    session = ConnectSession.builder.remote(connect_url).create()
    try:
        rows = session.range(5).selectExpr(f"{ORDER_COLUMNS} AS value")
        save(rows, bootstrap_servers, topic=topic, valueFormat="avro", schema__registry__url=registry.url)
    finally:
        session.stop()
    found = [framed(record) for record in consume(bootstrap_servers, topic, 5)]
    assert {number for number, _ in found} == {schema_id}
    assert sorted((avro(ORDER, raw) for _, raw in found), key=lambda each: each["id"]) == [order(n) for n in range(5)]
