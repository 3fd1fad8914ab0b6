"""The columns of lag in Arrow: one row for each partition."""

from __future__ import annotations

import pyarrow as pa

_TIME = pa.timestamp("us", tz="UTC")

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
