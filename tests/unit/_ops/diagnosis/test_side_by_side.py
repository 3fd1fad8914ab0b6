"""One question to several servers, within a time that the question need not know."""

from __future__ import annotations

import threading

import pytest

from kit.texts import said
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._ops.diagnosis.side_by_side import ask_all
from pyspark_kafka.errors import ConnectorError, DeadlineError, OptionError


def test_results_and_failures_are_in_the_order_of_the_keys() -> None:
    def ask(key: int) -> int:
        if key == 2:
            raise OptionError("two", condition="OPTION_INVALID")
        return key * 10

    found = ask_all([3, 2, 1, 3], ask, Deadline(5_000))
    assert list(found) == [3, 2, 1]
    assert (found[3], found[1]) == (30, 10)
    assert said(found[2]) == "[OPTION_INVALID] two"


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


def fail_to_encode(key: str) -> bytes:
    return f"{key} hunter2\udcdf".encode()


def test_defect_is_told_as_one_with_its_place_and_without_its_text() -> None:
    with pytest.raises(ConnectorError, match=r"The check cannot judge this: UnicodeEncodeError in .*, line") as caught:
        ask_all(["one"], fail_to_encode, Deadline(5_000))
    assert caught.value.condition == "CHECK_FAILED"
    assert "hunter2" not in f"{caught.value!r} {caught.value.parameters}"


def test_error_of_another_package_is_a_result_where_it_is_expected() -> None:
    assert isinstance(ask_all(["one"], fail_to_encode, Deadline(5_000), foreign=True)["one"], UnicodeEncodeError)
