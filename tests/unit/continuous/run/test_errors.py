"""What the handle says about runs that ended."""

from __future__ import annotations

from pyspark_kafka.continuous.run.errors import job_ended, task_lost


def test_executors_without_the_package_are_named() -> None:
    error = job_ended(RuntimeError("…\nModuleNotFoundError: No module named 'pyspark_kafka'\n\tat org"))
    assert "Install pyspark-kafka in the Python of the executors" in str(error)
    assert "at org" not in str(error)


def test_job_that_ends_by_itself_is_named() -> None:
    error = job_ended(None)
    assert "its Spark job ended: without an error" in str(error)
    assert error.__cause__ is None


def test_lost_task_is_named_with_its_lanes_and_what_to_do() -> None:
    silent = str(task_lost(3, "it was silent for 20 s (process 7 at h:1)", {5, 2}))
    assert "task 3 is lost: it was silent for 20 s (process 7 at h:1), with lanes 2, 5." in silent
    assert "raise option taskTimeout" in silent
    paused = "its connection ended; before, this program itself was silent, as it held the interpreter"
    assert "raise option taskTimeout" in str(task_lost(3, paused))
    assert "Hint: Read the log of its executor." in str(task_lost(3, "its connection ended", {5}))
