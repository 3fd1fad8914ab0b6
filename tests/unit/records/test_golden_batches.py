"""Batches that Java's client wrote: MemoryRecordsBuilder of kafka-clients 4.3.0, 60 records from offset 1000."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.record_batches import whole

GOLDEN = Path(__file__).with_name("golden")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_golden_batches_of_java_are_read(codec: str) -> None:
    records = (GOLDEN / f"kafka-clients-4.3.0-{codec}.bin").read_bytes()
    table, next_offset = whole(records, 1000)
    found: dict[str, Any] = table.drop_columns(["timestamp"]).to_pydict()
    numbers = range(60)
    headers = [{"key": "a", "value": b"\x01"}, {"key": "\u00e9", "value": None}]
    assert found == {
        "key": [None if i % 3 == 0 else b"key%d" % i for i in numbers],
        "value": [None if i % 5 == 0 else b"value value value %d" % i for i in numbers],
        "offset": [1000 + i for i in numbers],
        "timestampType": [0] * 60,
        "headers": [headers if i % 4 == 0 else None for i in numbers],
    }
    assert table.column("timestamp").cast("int64").to_pylist() == [(1_700_000_000_000 + i * 3) * 1000 for i in numbers]
    assert next_offset == 1060
