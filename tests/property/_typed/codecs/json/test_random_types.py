"""JSON of random types: what the page says of each value, alone and beside others, and written and read again."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kit.json_documents import documents, structs
from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.codecs.json.encoding import JsonEncoder

FRAGMENTS = st.sampled_from(
    [
        *(bytes([each]) for each in b'{}[]",:1-e.0 \n\\\xff\0'),
        b'"a"',
        b"null",
        b"tru",
        b"1e400",
        rb"\u0000",
        rb"\ud83d",
        b"}}",
    ]
)


@given(st.data())
def test_documents_are_read_by_the_rules_of_the_page(data: st.DataObject) -> None:
    kind = data.draw(structs())
    given_documents = data.draw(st.lists(documents(kind), min_size=1, max_size=5))
    decoder = JsonDecoder(kind)
    found = decoder.decode(pa.array([each.text for each in given_documents]))
    found.column.validate(full=True)
    assert [each.row for each in found.bad] == [row for row, each in enumerate(given_documents) if each.is_bad]
    assert found.column.to_pylist() == [each.value for each in given_documents]
    written = JsonEncoder(found.column.type).encode(found.column)
    again = decoder.decode(written)
    assert again.bad == []
    assert [without_nulls(each) for each in again.column.to_pylist()] == [
        without_nulls(each) for each in found.column.to_pylist()
    ]
    assert all(each is None or json.loads(each) is not None for each in written.to_pylist())


@given(st.data())
def test_documents_that_were_changed_are_read_as_they_are_alone(data: st.DataObject) -> None:
    kind = data.draw(structs())
    texts = [bytearray(data.draw(documents(kind)).text.encode()) for _ in range(data.draw(st.integers(1, 4)))]
    for text in texts:
        for _ in range(data.draw(st.integers(0, 2))):
            at = data.draw(st.integers(0, len(text)))
            text[at : at + data.draw(st.integers(0, 2))] = data.draw(FRAGMENTS)
    values = [bytes(each) for each in texts]
    found = JsonDecoder(kind).decode(pa.array(values, pa.binary()))
    found.column.validate(full=True)
    alone = [JsonDecoder(kind).decode(pa.array([each], pa.binary())) for each in values]
    assert str(found.column) == str(pa.concat_arrays([each.column for each in alone]))
    assert [(each.row, each.message) for each in found.bad] == [
        (row, each.bad[0].message) for row, each in enumerate(alone) if each.bad
    ]
    for value, each in zip(values, alone, strict=True):
        if not each.bad:
            json.loads(value.decode(), parse_constant=int)


def without_nulls(value: Any) -> Any:
    """Return a value without the entries of maps that are null, which are not written."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items()}
    if isinstance(value, list):
        pairs = value and all(isinstance(each, tuple) for each in value)
        return (
            [(name, without_nulls(each)) for name, each in value if each is not None]
            if pairs
            else [*map(without_nulls, value)]
        )
    return value
