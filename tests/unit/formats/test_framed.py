"""Values of several schemas in one array."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_kafka.formats.avro.decoding import AvroDecoder
from pyspark_kafka.formats.avro.schema import parse_schema
from pyspark_kafka.formats.framed import MOST_SCHEMAS, decode_framed
from pyspark_kafka.formats.framing import CONFLUENT, read_framing
from pyspark_kafka.formats.schemas import SchemaId, UnknownSchemaError
from pyspark_kafka.formats.values import BadValue, DecodedValues, Reason

READER = parse_schema('"long"')
WRITERS = {1: "long", 2: "int"}


class Registry:
    def __init__(self) -> None:
        self.asked: list[SchemaId] = []

    def decoder_of(self, schema_id: SchemaId) -> AvroDecoder:
        self.asked.append(schema_id)
        writer = WRITERS.get(int(schema_id))
        if writer is None:
            raise UnknownSchemaError("is not in the registry")
        return AvroDecoder(parse_schema(writer), READER)


def value(schema_id: int, number: int) -> bytes:
    return CONFLUENT.prefix(schema_id) + bytes([2 * number])


def decode(values: list[bytes | None], registry: Registry) -> DecodedValues:
    framed = read_framing(pa.array(values, pa.binary()), "confluent")
    return decode_framed(framed, pa.int64(), registry.decoder_of)


def test_values_of_one_schema_are_read_in_place() -> None:
    registry = Registry()
    found = decode([value(1, 3), None, value(1, 4)], registry)
    assert (found.column.to_pylist(), found.bad, registry.asked) == ([3, None, 4], [], [1])


def test_values_of_several_schemas_keep_their_rows() -> None:
    registry = Registry()
    values = [value(2, 1), None, value(1, 2), b"\0\0", value(9, 5), value(2, 3), value(1, 4) + b"!", value(1, 6)]
    found = decode(values, registry)
    assert found.column.to_pylist() == [1, None, 2, None, None, 3, None, 6]
    assert found.bad == [
        BadValue(3, Reason.INCOMPLETE_HEADER, "it has 2 bytes, fewer than the 5 before a value"),
        BadValue(4, Reason.SCHEMA_ID_NOT_FOUND, "its schema 9 is not in the registry"),
        BadValue(6, Reason.DECODE_FAILED, "bytes follow the value, after 6 bytes"),
    ]
    assert sorted(registry.asked) == [1, 2, 9]


def test_an_unknown_schema_alone_is_bad_in_every_row() -> None:
    found = decode([value(9, 1), value(9, 2)], Registry())
    assert found.column.to_pylist() == [None, None]
    assert [each.row for each in found.bad] == [0, 1]


def test_schemas_that_were_made_up_are_not_all_asked_for() -> None:
    registry = Registry()
    found = decode([value(number, 1) for number in range(MOST_SCHEMAS + 50)], registry)
    assert len(registry.asked) == MOST_SCHEMAS
    assert len(found.bad) == MOST_SCHEMAS + 50 - 2


def test_an_outage_makes_no_value_bad() -> None:
    def decoder_of(schema_id: SchemaId) -> AvroDecoder:
        raise TimeoutError(schema_id)

    with pytest.raises(TimeoutError):
        decode_framed(read_framing(pa.array([value(1, 1)], pa.binary()), "confluent"), pa.int64(), decoder_of)
