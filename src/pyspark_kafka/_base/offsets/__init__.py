"""Offsets of a Kafka source as values.

`KafkaSourceOffset` is the position that a checkpoint holds; the range edges (`Earliest`, `Latest`, `SpecificOffsets`,
`AtTimestamp`, `SpecificTimestamps`) say where a read starts and ends. Only `partition_json` knows the nested JSON of
both.

Invariant: pure; no I/O, and no option names. Layer: above model and errors.
"""

from pyspark_kafka._base.offsets.range_edges import (
    AtTimestamp,
    Earliest,
    Latest,
    OffsetEdge,
    PartitionEdge,
    RangeEdge,
    SpecificOffsets,
    SpecificTimestamps,
    TimestampEdge,
    timestamp_text,
)
from pyspark_kafka._base.offsets.source_offset import KafkaSourceOffset

__all__ = [
    "AtTimestamp",
    "Earliest",
    "KafkaSourceOffset",
    "Latest",
    "OffsetEdge",
    "PartitionEdge",
    "RangeEdge",
    "SpecificOffsets",
    "SpecificTimestamps",
    "TimestampEdge",
    "timestamp_text",
]
