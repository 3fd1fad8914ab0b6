"""The tables of docs/parity.md about values in JSON: each row is what the decoder returns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kit.parity_page import Difference, differences, shown
from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.typed.spark_schema.ddl import parse_ddl


@pytest.mark.parametrize("row", differences(), ids=lambda row: f"{row.kind}-{row.document}")
def test_value_in_json_is_read_as_the_page_says(row: Difference) -> None:
    decoded = JsonDecoder(parse_ddl(f"v {row.kind}")).decode(pa.array([row.document]))
    if decoded.bad:
        found = "a bad record"
    else:
        value = decoded.column[0].as_py()
        found = "a null struct" if value is None else shown(value["v"])
    assert (row, found) == (row, row.ours)


def test_name_of_more_than_50_000_characters_is_skipped() -> None:
    text = '{"%s": 1, "v": 1}' % ("x" * 50_001)
    assert JsonDecoder(parse_ddl("v INT")).decode(pa.array([text])).column.to_pylist() == [{"v": 1}]
