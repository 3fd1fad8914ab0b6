"""Logical types: which have a column, and what the others keep."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_kafka._typed.codecs.avro.logical_types import Logical, logical_type, nanos_of, scale_of


def decimal(kind: str = "bytes", **words: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": "decimal", **words}


@pytest.mark.parametrize(
    ("given", "size", "expected"),
    [
        (decimal(precision=38, scale=38), None, Logical("decimal", 38, 38)),
        (decimal("fixed", precision=4), 2, Logical("decimal", 4, 0)),
        ({"type": "int", "logicalType": "date"}, None, Logical("date")),
        ({"type": "fixed", "logicalType": "uuid"}, 16, Logical("uuid")),
        ({"type": "fixed", "logicalType": "uuid"}, 15, None),
        ({"type": "long", "logicalType": "date"}, None, None),
        ({"type": "string", "logicalType": ["date"]}, None, None),
        (decimal(precision=39), None, None),
        (decimal(precision=True), None, None),
        (decimal(precision=5, scale=6), None, None),
        (decimal(precision=5, scale=-1), None, None),
        (decimal(precision="5"), None, None),
        (decimal(), None, None),
        (decimal("fixed", precision=5), 2, None),
        (decimal("long", precision=5), None, None),
    ],
)
def test_logical_type_has_a_column_only_if_it_fits(given: Any, size: int | None, expected: Logical | None) -> None:
    assert logical_type(given, size) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (decimal(precision=64, scale=2), 2),
        (decimal(precision=64, scale=127), 127),
        (decimal(precision=64, scale=-127), -127),
        (decimal(precision="x", scale="2"), 2),
        (decimal(scale=2), 2),
        (decimal(scale=2.0), 2),
        (decimal(precision=64), 0),
        (decimal("fixed", precision=9, scale=2), 2),
        (decimal(), None),
        (decimal(precision=64, scale="two"), None),
        (decimal(precision=64, scale=2.5), None),
        (decimal("string", precision=9, scale=2), None),
        ({"type": "bytes", "scale": 2}, None),
    ],
)
def test_decimal_keeps_its_scale_though_it_has_no_column(given: Any, expected: int | None) -> None:
    assert scale_of(given) == expected


def test_number_of_nanoseconds_keeps_its_unit() -> None:
    assert nanos_of({"type": "long", "logicalType": "timestamp-nanos"}) == "timestamp-nanos"
    assert nanos_of({"type": "int", "logicalType": "timestamp-nanos"}) == ""
