"""Values of several schemas in one array."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kit.fakes.clock import Clock
from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.avro.schema import parse_schema
from pyspark_kafka._typed.codecs.framed import MAX_UNKNOWN, MAX_UNKNOWN_S, decode_framed, find_schemas
from pyspark_kafka._typed.codecs.schemas import SchemaId, UnknownSchemaError
from pyspark_kafka._typed.codecs.values import BadValue, DecodedValues, Reason
from pyspark_kafka._typed.codecs.wire_format import confluent_prefix, read_wire_format

READER = parse_schema('"long"')
WRITERS = {1: "long", 2: "int"}


class Registry:
    def __init__(self) -> None:
        self.asked: list[SchemaId] = []
        self.known: set[SchemaId] = set()

    def decoder_of(self, schema_id: SchemaId) -> AvroDecoder:
        self.asked.append(schema_id)
        writer = WRITERS.get(int(schema_id))
        if writer is None:
            raise UnknownSchemaError("is not in the registry")
        return AvroDecoder(parse_schema(writer), READER)


def value(schema_id: int, number: int) -> bytes:
    return confluent_prefix(schema_id) + bytes([2 * number])


def decode(values: list[bytes | None], registry: Registry) -> DecodedValues:
    framed = read_wire_format(pa.array(values, pa.binary()), "confluent")
    return decode_framed(framed, pa.int64(), registry.decoder_of, registry.known.__contains__)


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


def test_invented_schema_ids_cause_a_bounded_number_of_requests() -> None:
    registry = Registry()
    found = decode([value(number, 1) for number in range(10, 60 + MAX_UNKNOWN)], registry)
    assert len(registry.asked) == MAX_UNKNOWN
    assert len(found.bad) == MAX_UNKNOWN + 50
    message = "its schema 159 was not looked up, after 100 others that do not exist"
    assert found.bad[-1] == BadValue(149, Reason.SCHEMA_ID_NOT_FOUND, message)


@pytest.mark.parametrize("known", [False, True])
def test_made_up_ids_in_front_spoil_no_good_value(known: bool) -> None:
    registry = Registry()
    registry.known = {1, 2} if known else set()
    # A schema that was seen costs no question; of others, those with the most rows are asked for first.
    made_up = [value(number, 1) for number in range(10, 10 + 2 * MAX_UNKNOWN)]
    good = [value(1, 3), value(2, 4)] * (1 if known else 2)
    found = decode([*made_up, *good], registry)
    assert found.column.to_pylist() == [None] * len(made_up) + [3, 4] * (len(good) // 2)
    assert [each.row for each in found.bad] == list(range(len(made_up)))


def test_schemas_that_exist_are_read_however_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(100, 101 + MAX_UNKNOWN):
        monkeypatch.setitem(WRITERS, number, "int")
    registry = Registry()
    found = decode([value(number, 1) for number in WRITERS], registry)
    assert (found.bad, len(registry.asked)) == ([], len(WRITERS))


def test_ids_that_are_known_not_to_exist_are_no_questions() -> None:
    registry = Registry()
    numbers = range(10, 10 + MAX_UNKNOWN)
    registry.known = set(numbers)
    found = decode([*(value(number, 1) for number in numbers), value(1, 2)], registry)
    assert len(found.bad) == MAX_UNKNOWN
    assert found.column[MAX_UNKNOWN].as_py() == 2


def test_questions_about_made_up_ids_end_with_their_time() -> None:
    clock = Clock()
    asked: list[SchemaId] = []

    def look_up(schema_id: SchemaId) -> SchemaId:
        asked.append(schema_id)
        clock.now += 5
        if int(schema_id) < 10:
            return schema_id
        raise UnknownSchemaError("is not in the registry")

    bad: list[BadValue] = []
    framed = read_wire_format(pa.array([value(number, 1) for number in range(20)], pa.binary()), "confluent")
    found = [each for each, _, _ in find_schemas(framed, look_up, lambda _: False, bad, clock)]
    # Those that exist take as long as they do.
    assert (found, asked) == (list(range(10)), list(range(10 + int(MAX_UNKNOWN_S) // 5)))
    assert [each.row for each in bad] == list(range(10, 20))


def test_an_outage_makes_no_value_bad() -> None:
    def decoder_of(schema_id: SchemaId) -> AvroDecoder:
        raise TimeoutError(schema_id)

    with pytest.raises(TimeoutError):
        decode_framed(read_wire_format(pa.array([value(1, 1)], pa.binary()), "confluent"), pa.int64(), decoder_of, bool)
