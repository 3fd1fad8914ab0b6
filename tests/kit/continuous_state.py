"""A function that keeps state: a running count by key, of the rows that `kit.continuous.FilesTable` returns."""

from __future__ import annotations

import pyarrow as pa

from pyspark_kafka.continuous.state.by_key import StateByKey

COUNTS = pa.schema([("file", pa.string()), ("n", pa.int64()), ("count", pa.int64())])


def running_count(rows: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch:
    """Return each row with how many rows of its key there were; the key is the rest of a division by 5."""
    keys = [f"k{number % 5}" for number in rows.column("n").to_pylist()]
    distinct = pa.array(sorted(set(keys)))
    known = state.get(distinct).column("count").to_pylist()
    counts = {key: count or 0 for key, count in zip(distinct.to_pylist(), known, strict=True)}
    numbered = []
    for key in keys:
        counts[key] += 1
        numbered.append(counts[key])
    state.update(distinct, count=list(counts.values()))
    return pa.RecordBatch.from_arrays([rows.column("file"), rows.column("n"), pa.array(numbered)], schema=COUNTS)
