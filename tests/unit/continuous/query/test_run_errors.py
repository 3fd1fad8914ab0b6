"""What the handle says about runs that ended."""

from __future__ import annotations

from pyspark_kafka.continuous.query.run_errors import job_ended


def test_executors_without_the_package_are_named() -> None:
    error = job_ended(RuntimeError("…\nModuleNotFoundError: No module named 'pyspark_kafka'\n\tat org"))
    assert "Install pyspark-kafka in the Python of the executors" in str(error)
    assert "at org" not in str(error)


def test_job_that_ends_by_itself_is_named() -> None:
    error = job_ended(None)
    assert "its Spark job ended: without an error" in str(error)
    assert error.__cause__ is None
