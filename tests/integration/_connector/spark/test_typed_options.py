"""Options of typed keys and values reach the source through Spark, whose own files have options of the same names."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

READ = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "valueFormat": "json", "valueSchema": "id INT"}


@pytest.mark.parametrize("streaming", [False, True], ids=["batch", "stream"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"mode": "IGNORE"}, "Option 'mode' must be one of FAILFAST, PERMISSIVE, DROPMALFORMED; got 'IGNORE'"),
        (
            {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "offset"},
            "Option 'columnNameOfCorruptRecord' is 'offset', which is another column of the read",
        ),
        ({"mode": "DROPMALFORMED", "maxCorruptRatio": "2"}, "Option 'maxCorruptRatio' must"),
        ({"schema.registry.url": "registry:8081"}, "Option 'schema.registry.url' must be http or https URLs"),
    ],
    ids=lambda given: ",".join(given) if isinstance(given, dict) else "",
)  # fmt: skip
def test_option_reaches_the_source(
    spark: SparkSession, options: dict[str, str], expected: str, streaming: bool
) -> None:
    reader = spark.readStream if streaming else spark.read
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark wraps what a source raises
        reader.format("pyspark_kafka").options(**{**READ, **options}).load()
    assert expected in str(caught.value)
