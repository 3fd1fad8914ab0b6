"""One question to several servers, within a time that the question need not know."""

from __future__ import annotations

import threading

from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.diagnosis.side_by_side import ask_all
from pyspark_kafka.errors import DeadlineError


def test_results_and_failures_are_in_the_order_of_the_keys() -> None:
    def ask(key: int) -> int:
        if key == 2:
            raise ValueError("two")
        return key * 10

    found = ask_all([3, 2, 1, 3], ask, Deadline(5_000))
    assert list(found) == [3, 2, 1]
    assert (found[3], found[1]) == (30, 10)
    assert str(found[2]) == "two"


def test_a_question_that_never_ends_is_a_deadline_error_and_holds_up_no_other() -> None:
    release = threading.Event()

    def ask(key: str) -> str:
        if key == "stuck":
            release.wait()
        return key

    try:
        found = ask_all(["stuck", "quick"], ask, Deadline(1_000))
    finally:
        release.set()
    assert found["quick"] == "quick"
    assert isinstance(found["stuck"], DeadlineError)
