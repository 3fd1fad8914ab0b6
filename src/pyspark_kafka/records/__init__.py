"""The record codec: record batches of Kafka's format 2 to Arrow columns and back.

Entry points: `iter_decode` (a fetch response to Arrow batches), `encode_rows` (rows to record batches), `scan` (batch
headers only). Names are loaded when they are first used: a task reads or writes, seldom both.

`batch_header` walks over batches and checks them, `placement` finds batches that are not where they say, `decoding`
decides which records a reader gets, `abort_filter` hides aborted transactions, `compression` compresses and bounds what
it decompresses, `pieces` become Arrow batches. `encoding` builds batches from `arrow_bytes`, `batch_split` cuts them.
`_kernel_read` and `_kernel_write` are the hot loops, compiled if there was a compiler, else as plain Python
(`_variant`, `codec_info`).

Invariant: pure, and without topic-partitions, which callers add to errors. Every length is compared with the remaining
bytes before it is used. Both variants of the kernel return the same.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_kafka.records._variant import CodecInfo, codec_info
    from pyspark_kafka.records.batch_header import Jump, ScannedHeaders, scan
    from pyspark_kafka.records.batch_split import split_batch
    from pyspark_kafka.records.decoding import DEFAULT_TARGET_BYTES, DEFAULT_TARGET_ROWS, Decoded, decode, iter_decode
    from pyspark_kafka.records.encoding import (
        PreparedHeaders,
        RecordColumns,
        encode,
        encode_rows,
        group_by_partition,
        int32_extremes,
        murmur2_partitions,
        patch_header,
    )
    from pyspark_kafka.records.pieces import COLUMN_NAMES, HEADERS_TYPE, record_schema
    from pyspark_kafka.records.placement import Claim, Placement, place

__all__ = [
    "COLUMN_NAMES",
    "DEFAULT_TARGET_BYTES",
    "DEFAULT_TARGET_ROWS",
    "HEADERS_TYPE",
    "Claim",
    "CodecInfo",
    "Decoded",
    "Jump",
    "Placement",
    "PreparedHeaders",
    "RecordColumns",
    "ScannedHeaders",
    "codec_info",
    "decode",
    "encode",
    "encode_rows",
    "group_by_partition",
    "int32_extremes",
    "iter_decode",
    "murmur2_partitions",
    "patch_header",
    "place",
    "record_schema",
    "scan",
    "split_batch",
]
__dir__ = __all__.copy

_NAMES = {
    "_variant": ("CodecInfo", "codec_info"),
    "batch_header": ("Jump", "ScannedHeaders", "scan"),
    "decoding": ("DEFAULT_TARGET_BYTES", "DEFAULT_TARGET_ROWS", "Decoded", "decode", "iter_decode"),
    "encoding": (
        "PreparedHeaders",
        "RecordColumns",
        "encode",
        "encode_rows",
        "group_by_partition",
        "int32_extremes",
        "murmur2_partitions",
        "patch_header",
    ),
    "pieces": ("COLUMN_NAMES", "HEADERS_TYPE", "record_schema"),
    "placement": ("Claim", "Placement", "place"),
    "batch_split": ("split_batch",),
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found
    return found
