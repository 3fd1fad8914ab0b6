"""The thread that sends events: order, failures, a collector that is too slow, the end."""

from __future__ import annotations

import logging
import threading

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka._ops.lineage import sender as module
from pyspark_kafka._ops.lineage.sender import EventSender


def test_sender_sends_events_in_their_order_and_closes_at_the_end() -> None:
    sent: list[int] = []
    closed = threading.Event()
    sender = EventSender(sent.append, closed.set)
    for number in range(10):
        sender.post(lambda number=number: [number, -number])  # type: ignore[misc]
    assert sender.stop(PATIENCE_S)
    assert sent == [each for number in range(10) for each in (number, -number)]
    assert closed.wait(PATIENCE_S)
    assert (sender.sent, sender.failed, sender.dropped) == (20, 0, 0)


def test_sender_gives_an_event_up_that_fails_and_logs_the_first_without_a_login(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def emit(event: str) -> None:
        if event == "good":
            return
        raise ConnectionError("401 for http://user:password@collector/api")

    def exits() -> list[str]:
        raise SystemExit

    sender = EventSender(emit)
    with caplog.at_level(logging.WARNING, "pyspark_kafka.lineage"):
        for event in ("bad", "good", "bad"):
            sender.post(lambda event=event: [event])  # type: ignore[misc]
        sender.post(exits)
        assert sender.stop(PATIENCE_S)
    assert (sender.sent, sender.failed) == (1, 3)
    (record,) = caplog.records
    assert record.getMessage() == (
        "Lineage: an event cannot be sent: ConnectionError: 401 for http://collector/api. Queries are not affected. "
        "This is logged once."
    )


def test_sender_drops_the_oldest_events_behind_a_collector_that_hangs(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_PENDING", 3)
    asked, answer = threading.Event(), threading.Event()
    sent: list[int] = []

    def emit(event: int) -> None:
        asked.set()
        answer.wait(PATIENCE_S)
        sent.append(event)

    sender = EventSender(emit)
    sender.post(lambda: [0])
    assert asked.wait(PATIENCE_S)
    with caplog.at_level(logging.WARNING, "pyspark_kafka.lineage"):
        for number in range(1, 6):
            sender.post(lambda number=number: [number])  # type: ignore[misc]
    assert not sender.flush(0.01)
    answer.set()
    assert sender.stop(PATIENCE_S)
    assert (sent, sender.dropped) == ([0, 3, 4, 5], 2)
    assert len(caplog.records) == 1


def test_sender_that_was_stopped_takes_no_events() -> None:
    sent: list[int] = []
    sender = EventSender(sent.append)
    assert sender.stop(0.0)
    sender.post(lambda: [1])
    assert sender.stop(0.0)
    assert sent == []


def test_stop_does_not_wait_longer_than_asked_for_a_collector_that_hangs() -> None:
    asked, answer = threading.Event(), threading.Event()

    def emit(_: int) -> None:
        asked.set()
        answer.wait(PATIENCE_S)

    sender = EventSender(emit)
    sender.post(lambda: [1])
    assert asked.wait(PATIENCE_S)
    assert not sender.stop(0.01)
    answer.set()
