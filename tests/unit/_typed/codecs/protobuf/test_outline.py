"""The walk over fields: what it says of values, and what it leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kit.protobuf_schema import everything
from pyspark_kafka._base import compiled
from pyspark_kafka._typed.codecs.bounds import CELLS_PER_BYTE, FREE_CELLS
from pyspark_kafka._typed.codecs.protobuf import _variant
from pyspark_kafka._typed.codecs.protobuf.descriptors import build_handler, find_message
from pyspark_kafka._typed.codecs.protobuf.outline import (
    build_form_walk,
    build_walk,
    check_values,
    find_too_many,
)
from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema

VARIANTS = (_variant.outline, compiled.load_source("pyspark_kafka._typed.codecs.protobuf", "_kernel_outline"))
GOOD, BAD, TOO_DEEP, UNMERGED, TOO_SHORT = range(5)


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(_variant, "outline", request.param)
    return request.param


def walk_of(descriptor: Any) -> Any:
    return build_walk(descriptor, pa.struct(build_handler(descriptor).fields))


def message(text: str) -> Any:
    return find_message(read_file_set(RegisteredSchema("PROTOBUF", text)))


@pytest.mark.usefixtures("variant")
def test_each_value_has_its_verdict_and_its_cells() -> None:
    values = [
        b"",
        b"id\x08\x01",
        None,
        b"i",
        b"id\x08",
        b"id\xb2\x01\x00\xb2\x01\x09" + b"\x09" + bytes(8),
        b"id\x80\x02\x01\x8a\x02\x00",
        b"id" + b"\x0b" * 101,
        b"id\xfa\x01\x03\x01\x02\x03",
    ]
    found = check_values(walk_of(everything()[0]), pa.array([b"?", *values], pa.binary()).slice(1), 2)
    assert found.verdicts.tolist() == [TOO_SHORT, GOOD, GOOD, TOO_SHORT, BAD, GOOD, UNMERGED, TOO_DEEP, GOOD]
    # An item of `os` is a struct with one field, one of `n` a number.
    assert found.cells.tolist() == [0, 0, 0, 0, 0, 4, 0, 0, 3]
    assert (found.are_good, found.all_cells) == (False, 7)
    none = check_values(walk_of(everything()[0]), pa.array([], pa.large_binary()))
    assert (none.are_good, none.all_cells) == (True, 0)


@pytest.mark.parametrize(
    "value",
    [
        b"\x00\x01",
        b"\x07",
        b"\x0e",
        b"\x0c",
        b"\x0b\x14",
        b"\x08" + b"\x80" * 10 + b"\x01",
        b"\x88\x80\x80\x80\x80\x00\x01",
        b"\x88\x80\x80\x80\x10\x01",
        b"\x42\x02\x00",
        b"\x42" + b"\xff" * 9 + b"\x01",
        b"\xfa\x01\x01\x80",
    ],
)
@pytest.mark.usefixtures("variant")
def test_bytes_that_are_no_fields_are_bad(value: bytes) -> None:
    walk = walk_of(everything()[0])
    assert check_values(walk, pa.array([value])).verdicts.tolist() == [BAD]
    # As in a message within this one.
    assert check_values(walk, pa.array([b"\xa2\x01" + bytes([len(value)]) + value + b"\x00"])).verdicts.tolist() == [
        BAD
    ]


LARGE = """
syntax = "proto3";
message A { repeated A small = 255; repeated A first = 256; oneof o { int64 a = 300; string b = 99999; A c = 500000; } }
"""


@pytest.mark.usefixtures("variant")
def test_fields_of_large_numbers_are_found() -> None:
    walk = walk_of(message(LARGE))
    values = [b"\xe0\x12\x05\xfa\xe9\x30\x01x", b"\xfa\xe9\x30\x01x\x82\x92\xf4\x01\x00", b"\xe0\x12\x05\xe8\x12\x05"]
    found = check_values(walk, pa.array([*values, b"\xfa\x0f\x00\x82\x10\x00"]))
    assert found.verdicts.tolist() == [UNMERGED, UNMERGED, GOOD, GOOD]
    assert found.cells.tolist() == [0, 0, 0, 2]
    assert [walk.merged(each) for each in values[:2]] == [b"\xfa\xe9\x30\x01x", b"\x82\x92\xf4\x01\x00"]


@pytest.mark.usefixtures("variant")
def test_the_form_of_a_message_within_itself_is_checked_at_any_depth() -> None:
    walk = build_form_walk(message(LARGE))
    inner = b"\x82\x10\x00"
    for _ in range(20):
        inner = b"\x82\x10" + bytes([len(inner)]) + inner
    # The last byte is the length of the innermost.
    values = pa.array([inner, inner[:-1] + b"\x01"])
    assert check_values(walk, values).verdicts.tolist() == [GOOD, BAD]
    assert check_values(walk_of(message(LARGE)), values).verdicts.tolist() == [GOOD, BAD]


@pytest.mark.usefixtures("variant")
def test_fields_that_are_merged_keep_the_order_of_the_others() -> None:
    walk = walk_of(
        message('syntax="proto3"; message A { repeated int32 n=1; A a=2; oneof o { int32 x=3; int32 y=4; } }')
    )
    value = (
        b"\x08\x01" + b"\x12\x02\x08\x07" + b"\x18\x05" + b"\x08\x02" + b"\x12\x02\x18\x08" + b"\x20\x06" + b"\x08\x03"
    )
    assert walk.merged(value) == b"\x08\x01\x08\x02\x08\x03" + b"\x12\x04\x08\x07\x18\x08" + b"\x20\x06"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([(FREE_CELLS, 0)], []),
        ([(FREE_CELLS + 1, 0)], [0]),
        # Each byte allows some.
        ([(FREE_CELLS + 1, 1), (CELLS_PER_BYTE * 10**9, 10**9)], []),
        # Bytes of one value allow no cells of another.
        ([(0, 10**9), (FREE_CELLS + 1, 0)], [1]),
        # The one with the highest surplus is out, wherever it stands.
        ([(FREE_CELLS, 0), (3, 0), (4, 0)], [0]),
        ([(3, 0), (4, 0), (FREE_CELLS, 0)], [2]),
        ([(FREE_CELLS // 2, 0)] * 4, [2, 3]),
    ],
)
def test_values_with_the_most_cells_are_too_many(given: Any, expected: list[int]) -> None:
    cells, sizes = np.array(given, np.int64).reshape(-1, 2).T
    assert find_too_many(cells, sizes) == expected
