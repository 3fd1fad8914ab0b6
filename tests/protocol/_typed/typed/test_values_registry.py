"""Arrays with the schemas of a registry, decoded and encoded by the public functions."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from kit.fakes.schema_registry import SchemaRegistryServer
from kit.pickled import copied
from pyspark_kafka._typed.typed.value_plans import plan_values
from pyspark_kafka.errors import RegistryError, SchemaError
from pyspark_kafka.formats import decode, encode

FIRST = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "n", "type": "int", "default": 5}]}
COLUMN = pa.array([{"id": 1}, None], pa.struct([("id", pa.int64())]))


def test_values_of_two_schemas_are_read_as_the_latest(schema_registry: SchemaRegistryServer) -> None:
    options = {"schema.registry.url": schema_registry.url}
    first = schema_registry.add("orders-value", json.dumps(FIRST))
    old = encode(COLUMN, "avro", schema=json.dumps(FIRST), registry=options, subject="orders-value")
    second = schema_registry.add("orders-value", json.dumps(SECOND))
    wide = pa.array([{"id": 2, "n": 3}], pa.struct([("id", pa.int64()), ("n", pa.int32())]))
    new = encode(wide, "avro", schema=json.dumps(SECOND), registry=options, subject="orders-value")
    values = pa.concat_arrays([old, new])
    decoded = decode(values, "avro", registry=options, subject="orders-value")
    assert decoded.column.to_pylist() == [{"id": 1, "n": 5}, None, {"id": 2, "n": 3}]
    assert decoded.schema_ids is not None
    assert decoded.schema_ids.to_pylist() == [str(first), None, str(second)]
    pinned = decode(values, "avro", registry=options, subject="orders-value", schema_version=1)
    assert pinned.column.to_pylist() == [{"id": 1}, None, {"id": 2}]


def test_plan_of_a_task_asks_the_registry_for_schemas_of_writers(schema_registry: SchemaRegistryServer) -> None:
    options = {"schema.registry.url": schema_registry.url}
    schema_registry.add("orders-value", json.dumps(FIRST))
    plan = plan_values(
        "avro", schema=None, framing=None, message=None, registry=options, subject="orders-value", schema_version=None
    )
    schema_registry.add("orders-value", json.dumps(SECOND))
    wide = pa.array([{"id": 2, "n": 3}], pa.struct([("id", pa.int64()), ("n", pa.int32())]))
    values = encode(wide, "avro", registry=options, subject="orders-value", schema_version=2)
    decoded = copied(plan).decoder(is_key=False).decode(values)
    assert decoded.column.to_pylist() == [{"id": 2}]


def test_schemas_that_a_registry_lacks_are_named(schema_registry: SchemaRegistryServer) -> None:
    options = {"schema.registry.url": schema_registry.url}
    with pytest.raises(SchemaError, match=r"SCHEMA_NOT_FOUND.*'orders-value'"):
        decode(pa.array([b""]), "avro", registry=options, subject="orders-value")
    schema_registry.add("orders-value", json.dumps(FIRST))
    with pytest.raises(SchemaError, match="Subject 'orders-value' of the registry does not have the given schema"):
        encode(COLUMN, "avro", schema=json.dumps(SECOND), registry=options, subject="orders-value")


def test_an_outage_is_an_error_and_makes_no_value_bad(schema_registry: SchemaRegistryServer) -> None:
    options = {"schema.registry.url": schema_registry.url, "schema.registry.timeout": "300"}
    values = encode(COLUMN, "avro", schema=json.dumps(FIRST), schema_id=7)
    schema_registry.stop()
    with pytest.raises(RegistryError):
        decode(values, "avro", schema=json.dumps(FIRST), registry=options, framing="confluent", on_bad="null")
