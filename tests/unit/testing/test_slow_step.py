"""Lines about a step that takes long."""

from __future__ import annotations

import threading

from kit.waiting import PATIENCE_S
from pyspark_kafka.testing.slow_step import SlowStep


def test_step_that_takes_long_is_named_with_its_newest_text() -> None:
    told, lines = threading.Event(), []

    def tell(line: str) -> None:
        lines.append(line)
        told.set()

    with SlowStep("Starting", tell, quiet_s=0.01) as step:
        step.update("Getting Apache Kafka")
        assert told.wait(PATIENCE_S)
    assert lines[0].startswith(("Getting Apache Kafka … ", "Starting … "))
    assert lines[0].endswith(" s")


def test_step_that_is_quick_is_silent() -> None:
    lines: list[str] = []
    with SlowStep("Starting", lines.append):
        pass
    assert lines == []
