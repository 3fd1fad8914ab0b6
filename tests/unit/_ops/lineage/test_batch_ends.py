"""The calls of the JVM at the end of batches, on stand-ins for its objects."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from kit.listened_session import StandInSession
from pyspark_kafka._ops.lineage.batch_ends import BatchEnds, await_reports


def failure(text: str) -> Any:
    return SimpleNamespace(toString=lambda: text)


def test_ends_are_reported_until_the_listener_leaves() -> None:
    found: list[object] = []
    ends = BatchEnds(lambda *each: found.append(each))
    ends.onSuccess("collect", "plan", 1_000)
    ends.onFailure("command", "other plan", failure("broken"))
    ends.leave()
    ends.onSuccess("collect", "plan", 1_000)
    assert found == [("plan", 1_000, None), ("other plan", 0, "broken")]


def test_end_that_cannot_be_noted_raises_nothing_into_the_jvm(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("boom")

    with caplog.at_level(logging.WARNING, "pyspark_kafka.lineage"):
        BatchEnds(broken).onSuccess("collect", "plan", 1)
    assert "the end of a batch query cannot be read" in caplog.text


def test_session_of_spark_connect_has_no_ends_to_report() -> None:
    session: Any = StandInSession()
    BatchEnds(lambda *_: None).join(session)
    await_reports(session, 0.0)


def test_interface_is_the_one_of_the_jvm() -> None:
    assert BatchEnds.Java.implements == ["org.apache.spark.sql.util.QueryExecutionListener"]
