"""Functions on columns, on a classic session and on Spark Connect: what the source reads."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from pyspark_kafka.formats import decode_udf, encode_udf

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "counts", "type": {"type": "map", "values": ["null", "int"]}},
        ],
    }
)


def test_values_are_encoded_and_decoded_as_sink_and_source_do(
    either_session: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    session, topic = either_session, make_topic()
    rows = session.sql(
        "SELECT id AS n, struct(id, timestamp_micros(id) AS at, array(string(id)) AS tags, "
        "map('k', int(id), 'n', null) AS counts) AS v FROM range(5) WHERE id != 3 UNION ALL SELECT 3, null"
    )
    # In SQL, as a process with both kinds of sessions makes columns for one of them.
    encode, encode_key = registered(session, encode_udf("avro", schema=AVRO)), registered(session, encode_udf("long"))
    raw = rows.selectExpr(f"{encode_key}(n) AS key", f"{encode}(v) AS value")
    bad = session.sql("SELECT CAST('short' AS BINARY) AS key, CAST('x' AS BINARY) AS value")
    kafka = {"kafka.bootstrap.servers": bootstrap_servers}
    raw.unionAll(bad).write.format("pyspark_kafka").options(**kafka, topic=topic).mode("append").save()

    decode = registered(session, decode_udf("avro", schema=AVRO, on_bad="explain"))
    decode_key = registered(session, decode_udf("long", on_bad="null"))
    read = session.read.format("pyspark_kafka").options(**kafka, subscribe=topic)
    ours = read.load().selectExpr("partition", "offset", f"{decode_key}(key) AS key", f"{decode}(value) AS found")
    ours = ours.selectExpr("partition", "offset", "key", "found.value", "found.bad IS NULL AS good")
    theirs = read.options(valueFormat="avro", valueSchema=AVRO, keyFormat="long", mode="PERMISSIVE").load()
    theirs = theirs.selectExpr("partition", "offset", "key", "value", "_corrupt_record IS NULL AS good")
    assert ours.schema == theirs.schema
    found = ours.orderBy("partition", "offset").collect()
    assert found == theirs.orderBy("partition", "offset").collect()
    assert sorted((row.key, row.value and row.value.id) for row in found if row.good) == [
        (n, None if n == 3 else n) for n in range(5)
    ]


def test_bad_value_fails_the_query_with_its_reason(spark: SparkSession) -> None:
    frame = spark.sql("SELECT CAST('x' AS BINARY) AS value")
    with pytest.raises(Exception, match=r"\[VALUE_NOT_DECODABLE\] Row 0 of an Arrow batch cannot be read as json"):
        frame.select(decode_udf("json", schema="a INT")("value")).collect()


def registered(session: SparkSession, function: Any) -> str:
    """Return the name of a function of SQL."""
    name = f"f_{uuid.uuid4().hex}"
    session.udf.register(name, function)
    return name
