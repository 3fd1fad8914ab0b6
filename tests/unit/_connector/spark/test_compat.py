"""Differences between versions of PySpark: limits, and what is missing."""

from __future__ import annotations

import pytest
from pyspark.sql import functions

from pyspark_kafka._connector.spark.compat import arrow_udf, from_spark_limit, spark_limits, to_spark_limit
from pyspark_kafka.connector import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.errors import CapabilityError


def test_limits_keep_their_meaning_both_ways() -> None:
    assert from_spark_limit(spark_limits.ReadAllAvailable()) == ReadAllAvailable()
    assert from_spark_limit(to_spark_limit(ReadMaxRows(9))) == ReadMaxRows(9)
    assert from_spark_limit(to_spark_limit(ReadMinRows(9))) == ReadMinRows(9)
    assert isinstance(to_spark_limit(ReadAllAvailable()), spark_limits.ReadAllAvailable)


def test_limits_that_are_unknown_are_refused() -> None:
    class Foreign(spark_limits.ReadLimit):  # type: ignore[misc]
        pass

    with pytest.raises(NotImplementedError, match="is unknown to this source"):
        from_spark_limit(Foreign())
    with pytest.raises(NotImplementedError, match="is unknown to this source"):
        from_spark_limit(Foreign(), ReadMaxRows(5))
    for limit in (ReadLimit(), CompositeReadLimit(())):
        with pytest.raises(NotImplementedError, match="no counterpart"):
            to_spark_limit(limit)


def test_version_without_functions_on_arrow_arrays_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(functions, "arrow_udf", raising=False)
    with pytest.raises(CapabilityError, match="no functions on Arrow arrays"):
        arrow_udf()
