"""What tests set in the session of the run stays with them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from kit.fixtures.spark import settings_kept

_OF_THE_RUN, _OF_SPARK = "spark.sql.shuffle.partitions", "spark.sql.python.filterPushdown.enabled"


def test_settings_that_a_block_changes_are_put_back(spark: SparkSession) -> None:
    before = [spark.conf.get(name) for name in (_OF_THE_RUN, _OF_SPARK)]
    with settings_kept(spark):
        spark.conf.set(_OF_THE_RUN, "1")
        spark.conf.unset(_OF_THE_RUN)
        spark.conf.set(_OF_SPARK, "true")
        # Spark's own, and not that of the run.
        assert spark.conf.get(_OF_THE_RUN) == "200"
    assert [spark.conf.get(name) for name in (_OF_THE_RUN, _OF_SPARK)] == before == ["2", "false"]
