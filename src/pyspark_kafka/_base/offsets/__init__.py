"""Offsets of a Kafka source as values.

`KafkaSourceOffset` (`source_offset`) is the position in a checkpoint; the range edges (`range_edges`: `Earliest`,
`Latest`, `SpecificOffsets`, `AtTimestamp`, `SpecificTimestamps`) say where a read starts and ends. Only
`partition_json` knows the nested JSON of both.

Invariant: pure; no option names.
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
