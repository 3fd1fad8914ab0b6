"""JSON: each value is read as it is read alone, whatever stands beside it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.codecs.json.encoding import JsonEncoder

KIND = pa.struct([("a", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.struct([("x", pa.float64())])))])
DECODER = JsonDecoder(KIND)
FRAGMENTS = st.sampled_from(
    [
        *(bytes([each]) for each in b'{}[]",:1\n \\\xff'),
        b'"a"',
        b'"s"',
        b'"v":',
        b"null",
        b"}\n{",
        rb"\ud840",
        rb"\uDC00",
    ]
)
WELL_FORMED = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(-(1 << 63), (1 << 63) - 1) | st.none(),
        "s": st.text(max_size=5) | st.none(),
        "l": st.lists(st.fixed_dictionaries({"x": st.floats(allow_nan=False, allow_infinity=False)}), max_size=2),
        "other": st.recursive(
            st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2), max_leaves=3
        ),
    },
)
VALUES = st.one_of(
    st.lists(FRAGMENTS, max_size=8).map(b"".join),
    WELL_FORMED.map(lambda row: json.dumps(row).encode()),
    st.none(),
)


@given(st.lists(VALUES, max_size=8))
def test_a_value_is_read_as_it_is_alone(values: list[bytes | None]) -> None:
    together = DECODER.decode(pa.array(values, pa.binary()))
    together.column.validate(full=True)
    alone = [DECODER.decode(pa.array([value], pa.binary())) for value in values]
    assert together.column.to_pylist() == [each.column.to_pylist()[0] for each in alone]
    assert [bad.row for bad in together.bad] == [row for row, each in enumerate(alone) if each.bad]
    assert [bad.message for bad in together.bad] == [bad.message for each in alone for bad in each.bad]


@given(st.lists(WELL_FORMED, min_size=1, max_size=5))
def test_documents_are_read_as_python_reads_them(rows: list[dict[str, Any]]) -> None:
    found = DECODER.decode(pa.array([json.dumps(row).encode() for row in rows], pa.binary()))
    assert found.bad == []
    assert found.column.to_pylist() == [{name: row.get(name) for name in ("a", "s", "l")} for row in rows]


@given(st.lists(WELL_FORMED | st.none(), min_size=1, max_size=5))
def test_columns_are_written_so_that_python_reads_the_same(rows: list[dict[str, Any] | None]) -> None:
    known = [None if row is None else {name: row.get(name) for name in ("a", "s", "l")} for row in rows]
    written = JsonEncoder(KIND).encode(pa.array(known, KIND)).to_pylist()
    read = [None if text is None else json.loads(text) for text in written]
    assert [None if row is None else {name: row.get(name) for name in ("a", "s", "l")} for row in read] == known
