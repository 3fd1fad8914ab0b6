"""Values in JSON whose few bytes become many cells."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs import bounds
from pyspark_kafka._typed.codecs.bounds import CELLS_PER_BYTE, TOO_MANY_CELLS, cell_budget
from pyspark_kafka._typed.codecs.json.cells import cell_counter, widest_item
from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.codecs.values import BadValue, Reason
from pyspark_kafka._typed.typed.spark_schema.ddl import parse_ddl

WIDE = "STRUCT<" + ", ".join(f"f{number} INT" for number in range(199)) + ">"


LISTS = {
    f"ARRAY<{WIDE}>": (b'{"a":[%s]}', b""),
    # A key of a map may stand many times.
    f"MAP<STRING, {WIDE}>": (b'{"a":{%s}}', b'"":'),
    f"STRUCT<x: ARRAY<STRUCT<y: ARRAY<{WIDE}>>>>": (b'{"a":{"x":[{"y":[%s]}]}}', b""),
}


@pytest.mark.parametrize("kind", LISTS, ids=lambda each: each[:12])
def test_bytes_that_become_many_cells_are_a_bad_value(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "FREE_CELLS", 16_000)

    document, key = LISTS[kind]

    def value(count: int) -> bytes:
        return document % b",".join([key + b"{}"] * (count - 1) + [key + b"null"])

    decoder = JsonDecoder(parse_ddl(f"a {kind}"))
    good = json.dumps({"a": None}).encode()
    found = decoder.decode(pa.array([value(90), value(300), good, value(90)]))
    assert found.bad == [
        BadValue(1, Reason.DECODE_FAILED, TOO_MANY_CELLS),
        BadValue(3, Reason.DECODE_FAILED, TOO_MANY_CELLS),
    ]
    assert found.column.is_valid().to_pylist() == [True, False, True, False]
    # A batch has cells of its own.
    assert decoder.decode(pa.array([value(90)])).bad == []


def test_a_value_with_the_bytes_for_its_cells_is_read_whatever_stands_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "FREE_CELLS", 0)
    item = {f"f{number}": number for number in range(199)}
    good, many = json.dumps({"a": [item] * 20}).encode(), b'{"a":[{},{},{},{},{},{},{},{}]}'
    found = JsonDecoder(parse_ddl(f"a ARRAY<{WIDE}>")).decode(pa.array([many, good]))
    assert [each.row for each in found.bad] == [0]
    assert found.column[1].as_py() == {"a": [item] * 20}


def test_parts_of_a_batch_share_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "FREE_CELLS", 16_000)
    decoder, budget = JsonDecoder(parse_ddl(f"a ARRAY<{WIDE}>")), cell_budget()
    value = pa.array([b'{"a":[' + b"{}," * 89 + b"{}]}"])
    assert [len(decoder.decode(value, budget=budget).bad) for _ in range(2)] == [0, 1]
    assert budget.free == 16_000 - (90 * 200 - CELLS_PER_BYTE * len(value[0].as_py()))


def test_items_of_few_columns_are_not_counted() -> None:
    assert widest_item(parse_ddl("a ARRAY<INT>, b MAP<STRING, STRUCT<x: INT>>, c STRUCT<x: INT>")) == 0
    assert widest_item(parse_ddl(f"a {WIDE}")) == 0
    assert widest_item(parse_ddl(f"a STRUCT<x: ARRAY<ARRAY<{WIDE}>>>")) == 200


def test_cells_are_those_of_all_items() -> None:
    kind = parse_ddl("l ARRAY<STRUCT<a: INT, b: ARRAY<INT>>>, m MAP<STRING, INT>, s STRUCT<x: INT>")
    value = {"l": [{"a": 1, "b": [1, 2, 3]}, None, 7], "m": {"a": 1, "b": 2}, "s": {"x": 1}, "other": [1]}
    count = cell_counter(kind)
    assert count is not None
    assert count(value) == 3 * 3 + 3 + 2 * 2
    assert count({"l": 1, "m": [1]}) == 0
