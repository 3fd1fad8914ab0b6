"""Arrays of values in parts."""

from __future__ import annotations

import pyarrow as pa

from pyspark_kafka._typed.codecs.parts import split_by_size


def test_parts_are_bounded_and_have_all_rows_in_order() -> None:
    values = pa.array([b"aa", None, b"b" * 9, b"", b"cc", b"dd", b"e"], pa.binary())
    parts = list(split_by_size(values, 4))
    assert [start for start, _ in parts] == [sum(len(part) for _, part in parts[:at]) for at in range(len(parts))]
    assert pa.concat_arrays([part for _, part in parts]) == values
    sizes = [sum(len(each or b"") for each in part.to_pylist()) for _, part in parts]
    assert all(size <= 4 or len(part) == 1 for size, (_, part) in zip(sizes, parts, strict=True))
