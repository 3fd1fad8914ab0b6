"""Lag as Arrow: one row a partition, null for what is not known."""

from __future__ import annotations

import math
from datetime import datetime, timezone

from pyspark_kafka._ops.operations.lag.columns import LAG_SCHEMA
from pyspark_kafka._ops.operations.lag.values import LagReport, LagState, PartitionLag


def test_columns_have_null_for_what_is_not_known() -> None:
    known = PartitionLag("t", 0, LagState.KNOWN, 5, 0, 9, 4, 0, position_time_ms=1_000, headroom_s=math.inf)
    unknown = PartitionLag("t", 1, missing=("one", "two"))
    batch = LagReport("g", 0, None, (known, unknown)).to_arrow()
    assert batch.schema == LAG_SCHEMA
    first, second = batch.to_pylist()
    assert (first["position"], first["log_end"], first["records_behind"], first["missing"]) == (5, 9, 4, None)
    assert first["position_time"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)
    assert first["headroom_s"] == math.inf
    assert (second["state"], second["records_behind"], second["missing"]) == ("unknown", None, "one; two")


def test_columns_of_no_partitions_have_no_rows() -> None:
    report = LagReport("g", 0, None, ())
    assert report.to_arrow().num_rows == 0
    assert report.to_arrow().schema == LAG_SCHEMA


def test_columns_leave_out_a_time_that_does_not_fit() -> None:
    batch = LagReport("g", 0, None, (PartitionLag("t", 0, position_time_ms=2**62),)).to_arrow()
    assert batch.to_pylist()[0]["position_time"] is None
