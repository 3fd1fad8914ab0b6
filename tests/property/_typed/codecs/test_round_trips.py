"""The same values through each format and back."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kit.golden_formats import plain
from kit.portable_columns import columns_of, types, values_of
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder


@given(st.data())
def test_values_are_the_same_after_a_way_through_each_format(data: st.DataObject) -> None:
    kind = data.draw(types())
    column = pa.array(data.draw(st.lists(values_of(kind), min_size=1, max_size=5)), kind)
    for name, each in columns_of(kind).items():
        written = ColumnEncoder(each).encode(column)
        assert written.is_null().equals(column.is_null()), name
        found = ColumnDecoder(each, None).decode(written)
        found.column.validate(full=True)
        assert (found.bad, found.schema_ids) == ([], None), name
        assert found.column.to_pylist() == column.to_pylist(), name


@given(st.data())
def test_fewer_fields_are_those_of_all(data: st.DataObject) -> None:
    kind = data.draw(types())
    column = pa.array(data.draw(st.lists(values_of(kind), min_size=1, max_size=5)), kind)
    kept = data.draw(st.lists(st.sampled_from(list(kind)), min_size=1, unique_by=lambda field: field.name))
    narrow = pa.struct(kept)
    for name, each in columns_of(kind).items():
        written = ColumnEncoder(each).encode(column)
        fewer = type(each)(each.format, each.framing, narrow, each.schema, each.message)
        found = ColumnDecoder(fewer, None).decode(written)
        found.column.validate(full=True)
        assert found.bad == [], name
        wanted = [
            None if row is None else {field.name: row[field.name] for field in kept} for row in column.to_pylist()
        ]
        assert found.column.to_pylist() == wanted, name


@given(st.data())
def test_documents_of_any_type_are_read_as_python_wrote_them(data: st.DataObject) -> None:
    kind = data.draw(types())
    column = pa.array(data.draw(st.lists(values_of(kind), min_size=1, max_size=5)), kind)
    indent, only_ascii = data.draw(st.sampled_from((None, 1))), data.draw(st.booleans())
    values = [
        None if row is None else json.dumps(plain(row, kind), indent=indent, ensure_ascii=only_ascii).encode()
        for row in column.to_pylist()
    ]
    found = ColumnDecoder(columns_of(kind)["json"], None).decode(pa.array(values, pa.binary()))
    found.column.validate(full=True)
    assert found.bad == []
    assert found.column.to_pylist() == column.to_pylist()
