"""The columns of the source, in the types of Spark."""

from __future__ import annotations

import pytest

from pyspark_kafka._connector.source.executor.columns import source_schema
from pyspark_kafka._connector.spark.compat import spark_schema
from pyspark_kafka._connector.spark.source_schema import spark_source_schema


@pytest.mark.parametrize("include_headers", [False, True])
def test_the_columns_are_the_same_in_the_types_of_spark_and_of_arrow(include_headers: bool) -> None:
    arrow = source_schema(include_headers=include_headers)
    assert spark_source_schema(include_headers=include_headers) == spark_schema(arrow)
