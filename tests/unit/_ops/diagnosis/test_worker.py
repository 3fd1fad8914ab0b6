"""What is made of a task that failed: Spark has no codes for these, only texts."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._ops.diagnosis import Finding, FindingStatus
from pyspark_kafka._ops.diagnosis.worker import judge_worker
from pyspark_kafka.errors import SetupError


class Failing:
    """A session whose tasks fail."""

    def __init__(self, text: str) -> None:
        self._text = text

    def addTag(self, _: str) -> None:  # noqa: N802 - Spark's name
        pass

    def range(self, *_: int) -> Any:
        raise RuntimeError(self._text)


def judged(text: str) -> Finding:
    (found,) = judge_worker(Failing(text), None, Deadline(20_000), 1_000)
    assert (found.status, found.where) == (FindingStatus.FAILED, "worker")
    return found


@pytest.mark.parametrize(
    ("text", "shown", "remedy"),
    [
        (
            "Job aborted\n[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than 3.11\nat x",
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than 3.11",
            "Set PYSPARK_PYTHON to a Python of the driver's version",
        ),
        (
            'java.io.IOException: Cannot run program "python9": No such file',
            'java.io.IOException: Cannot run program "python9": No such file',
            "Set PYSPARK_PYTHON to a Python that is there",
        ),
        (
            "Traceback\n  File x\nModuleNotFoundError: No module named 'x'\n",
            "The task on a worker failed: ModuleNotFoundError: No module named 'x'",
            "Look at the logs of the executors",
        ),
        ("It broke", "The task on a worker failed: It broke", "Look at the logs of the executors"),
    ],
)
def test_task_that_failed_is_one_sentence_with_what_to_do(text: str, shown: str, remedy: str) -> None:
    found = judged(text)
    assert found.text == shown
    assert found.remedy.startswith(remedy)


def test_long_texts_of_spark_are_cut() -> None:
    assert len(judged("x" * 10_000).text) < 500


def test_time_that_is_over_leaves_the_worker_alone() -> None:
    (found,) = judge_worker(Failing("never called"), None, Deadline(0), 1_000)
    assert found.status is FindingStatus.SKIPPED


def test_session_that_cannot_be_made_is_said_to_be_missing() -> None:
    def make() -> Any:
        raise RuntimeError("\n[JAVA_GATEWAY_EXITED] Java gateway process exited.\nmore")

    (found,) = judge_worker(make, None, Deadline(20_000), 1_000)
    assert found.text == "There is no Spark session: [JAVA_GATEWAY_EXITED] Java gateway process exited."
    assert found.remedy.startswith("Correct the master")


def test_session_that_needs_what_the_machine_lacks_keeps_the_hint() -> None:
    def make() -> Any:
        raise SetupError("No Java.", condition="JAVA_MISSING", hint="Install Java 17.")

    (found,) = judge_worker(make, None, Deadline(20_000), 1_000)
    assert (found.text, found.remedy) == ("No Java.", "Install Java 17.")
