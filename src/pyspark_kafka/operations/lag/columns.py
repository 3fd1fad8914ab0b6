"""Lag as Arrow columns: one row for each partition. Pure. Layer: operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark_kafka.operations.lag.values import LagReport

_TIME = pa.timestamp("us", tz="UTC")
_US_IN_MS = 1_000
# Microseconds of later times do not fit in 64 bits.
_LATEST_MS = (2**63 - 1) // _US_IN_MS

# Null: not known. The column `missing` has all sentences of a partition, separated by semicolons.
LAG_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("position", pa.int64()),
        pa.field("log_start", pa.int64()),
        pa.field("log_end", pa.int64()),
        pa.field("records_behind", pa.int64()),
        pa.field("records_lost", pa.int64()),
        pa.field("bytes_behind", pa.int64()),
        pa.field("seconds_behind", pa.float64()),
        pa.field("position_time", _TIME),
        pa.field("newest_time", _TIME),
        pa.field("produced_per_s", pa.float64()),
        pa.field("consumed_per_s", pa.float64()),
        pa.field("catch_up_s", pa.float64()),
        pa.field("headroom_s", pa.float64()),
        pa.field("headroom_reason", pa.string()),
        pa.field("missing", pa.string()),
    ]
)


def to_batch(report: LagReport) -> pa.RecordBatch:
    """Return the partitions of a report as rows, with the columns of `LAG_SCHEMA`."""
    rows = [
        (
            each.topic,
            each.partition,
            each.state.value,
            each.position,
            each.log_start,
            each.end,
            each.records_behind,
            each.records_lost,
            each.bytes_behind,
            each.seconds_behind,
            _us(each.position_time_ms),
            _us(each.newest_time_ms),
            each.produced_per_s,
            each.consumed_per_s,
            each.catch_up_s,
            each.headroom_s,
            each.headroom_reason or None,
            "; ".join(each.missing) or None,
        )
        for each in report.partitions
    ]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(LAG_SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, LAG_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=LAG_SCHEMA)


def _us(time_ms: int | None) -> int | None:
    return None if time_ms is None or abs(time_ms) > _LATEST_MS else time_ms * _US_IN_MS
