"""What a test sets in the session of the run, or makes active, ends with the test."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from kit.fixtures.spark import session_kept

_OF_THE_RUN, _OF_SPARK = "spark.sql.shuffle.partitions", "spark.sql.python.filterPushdown.enabled"


def test_settings_that_a_block_changes_are_put_back(spark: SparkSession) -> None:
    before = [spark.conf.get(name) for name in (_OF_THE_RUN, _OF_SPARK)]
    with session_kept(spark):
        spark.conf.set(_OF_THE_RUN, "1")
        spark.conf.unset(_OF_THE_RUN)
        spark.conf.set(_OF_SPARK, "true")
        # Spark's own, and not that of the run.
        assert spark.conf.get(_OF_THE_RUN) == "200"
    assert [spark.conf.get(name) for name in (_OF_THE_RUN, _OF_SPARK)] == before == ["2", "false"]


def test_session_is_active_for_a_block_only_also_after_use_of_another_one(spark: SparkSession) -> None:
    other = spark.newSession()
    with session_kept(spark):
        assert active_beside(spark) == spark._jsparkSession
        assert other.createDataFrame([(1,)], "n INT").count() == 1
        assert active_beside(spark) == other._jsparkSession
    assert (active_beside(spark), SparkSession.getActiveSession()) == (None, None)


def active_beside(session: Any) -> Any:
    """Return the active session of Spark itself, not of PySpark; None without one."""
    active = session._get_j_spark_session_class(session._jvm).getActiveSession()
    return active.get() if active.isDefined() else None
