"""Functions that keep state: running counts by key, of the rows of `kit.continuous.FilesTable` and of Kafka."""

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


def counted(rows: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch:
    """Return each value, which is a number that rises by key, with the number of records of its key so far."""
    keys = rows.column("key").to_pylist()
    distinct = sorted(set(keys))
    known = state.get(pa.array(distinct)).column("n").to_pylist()
    counts = {key: count or 0 for key, count in zip(distinct, known, strict=True)}
    written = []
    for key, value in zip(keys, rows.column("value").to_pylist(), strict=True):
        counts[key] += 1
        written.append(value + b" %d" % counts[key])
    state.update(pa.array(distinct), n=[counts[key] for key in distinct])
    return pa.RecordBatch.from_arrays([rows.column("key"), pa.array(written)], ["key", "value"])
