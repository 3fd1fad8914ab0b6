"""What a process says while it waits for brokers: when, what, and that it is over."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from kit.fakes.clock import Clock
from kit.fakes.threads import ThreadOverTheLimit
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka._base.counters import OUTAGE_SECONDS, OUTAGES, OUTAGES_ACTIVE, Counters
from pyspark_kafka._client.client.net.errors import closed_by_broker, silent
from pyspark_kafka._client.client.waiting import stalls
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.stalls import (
    Contact,
    Stall,
    StallMonitor,
    clock_time,
    contact_of,
    note_failure,
    what_failed,
)
from pyspark_kafka._client.options import ConnectionOptions
from pyspark_kafka.errors import ConnectorError, TransportError

REFUSED = TransportError("Connecting to a:1 failed: refused.", condition="CONNECTION_FAILED", hint="Look.")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counters() -> Counters:
    return Counters()


@pytest.fixture
def monitor(clock: Clock, counters: Counters) -> Iterator[StallMonitor]:
    """A monitor whose thread never looks; tests call `report`."""
    made = StallMonitor(clock=clock, look_every_s=3_600.0, counters=counters)
    made._thread = threading.current_thread()
    yield made
    assert not made._waiting


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        self.kept.append(record)


@pytest.fixture
def lines() -> Iterator[list[logging.LogRecord]]:
    handler, logger = Lines(), logging.getLogger("pyspark_kafka._client.client.waiting.stalls")
    logger.addHandler(handler)
    yield handler.kept
    logger.removeHandler(handler)


def _texts(lines: list[logging.LogRecord]) -> list[str]:
    return [line.getMessage() for line in lines]


def test_a_wait_is_reported_after_five_seconds_and_then_every_thirty(
    clock: Clock, monitor: StallMonitor, lines: list[logging.LogRecord]
) -> None:
    at: list[float] = []
    with Stall(lambda: "listing partitions", Contact(), monitor):
        for second in range(100):
            clock.now = 1_000.0 + second
            before = len(lines)
            monitor.report()
            at += [second] * (len(lines) - before)
    assert at == [5, 35, 65, 95]
    assert {line.levelno for line in lines} == {logging.WARNING}


def test_a_line_says_what_is_waited_for_since_when_why_and_who_answered_last(
    clock: Clock, monitor: StallMonitor, lines: list[logging.LogRecord]
) -> None:
    contact = Contact()
    contact.answered("kafka-2:9092")
    with Stall(lambda: "listing partitions", contact, monitor) as stall:
        stall.failed(REFUSED)
        clock.now += 6
        monitor.report()
    (text,) = _texts(lines)
    assert text.startswith("Waiting for Kafka: listing partitions, for 6 s (since ")
    assert "Last failure: [CONNECTION_FAILED] Connecting to a:1 failed: refused; kafka-2:9092 answered last" in text
    assert text.endswith("(0 s ago).")
    assert "Hint" not in text


def test_silence_is_no_failure_and_a_cluster_that_never_answered_has_no_last_broker(
    clock: Clock, monitor: StallMonitor, lines: list[logging.LogRecord]
) -> None:
    with Stall(lambda: "reading", Contact(), monitor):
        clock.now += 6
        monitor.report()
    (text,) = _texts(lines)
    assert "Last failure: no failure, no answer; no broker has answered this process yet." in text


def test_progress_after_a_line_gives_one_line_that_it_is_over(
    clock: Clock, monitor: StallMonitor, lines: list[logging.LogRecord]
) -> None:
    contact = Contact()
    with Stall(lambda: "listing partitions", contact, monitor) as stall:
        clock.now += 47
        monitor.report()
        contact.answered("kafka-2:9092")
        stall.progress()
        stall.progress()
        monitor.report()
    over = _texts(lines)[1:]
    assert len(over) == 1
    assert over[0].startswith("Waiting for Kafka is over after 47 s (since ")
    assert "listing partitions; kafka-2:9092 answered last" in over[0]


def test_progress_without_a_line_before_says_nothing_and_starts_the_time_again(
    clock: Clock, monitor: StallMonitor, lines: list[logging.LogRecord]
) -> None:
    with Stall(lambda: "reading", Contact(), monitor) as stall:
        for _ in range(10):
            clock.now += 4
            monitor.report()
            stall.progress()
    assert not lines


def test_time_between_calls_is_not_waited_for_brokers(
    clock: Clock, monitor: StallMonitor, lines: list[logging.LogRecord]
) -> None:
    stall = Stall(lambda: "writing", Contact(), monitor)
    for _ in range(4):
        with stall:
            clock.now += 1
            monitor.report()
        clock.now += 60
        monitor.report()
    assert not lines
    with stall:
        clock.now += 1
        assert stall.waited_s == 5
        monitor.report()
    assert "for 5 s" in _texts(lines)[0]


def test_a_wait_inside_of_another_is_reported_as_a_step_of_it(
    clock: Clock, monitor: StallMonitor, lines: list[logging.LogRecord]
) -> None:
    with Stall(lambda: "committing batch 7", Contact(), monitor) as outer:
        with Stall(lambda: "writing to t-0", Contact(), monitor) as inner:
            inner.failed(REFUSED)
            clock.now += 6
            monitor.report()
            inner.progress()
        assert outer.failure is None
        assert outer.waited_s == 0
    assert "Waiting for Kafka: committing batch 7: writing to t-0, for 6 s" in _texts(lines)[0]
    assert "CONNECTION_FAILED" in _texts(lines)[0]
    assert len(lines) == 2


def test_a_wait_that_ends_in_an_error_is_not_called_over(
    clock: Clock, monitor: StallMonitor, lines: list[logging.LogRecord]
) -> None:
    def fail() -> None:
        with Stall(lambda: "reading", Contact(), monitor):
            clock.now += 6
            monitor.report()
            raise REFUSED

    with pytest.raises(TransportError):
        fail()
    clock.now += 60
    monitor.report()
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            silent("a:1", "ApiVersions", Deadline(1_500), "PLAINTEXT"),
            "[BROKER_SILENT] a:1 accepted the connection, but did not respond to the first request within 1500 ms.",
        ),
        (
            closed_by_broker("a:1", "ApiVersions", 0, ConnectionOptions((("a", 1),)), None),
            "[BROKER_CLOSED_FIRST_READ] a:1 closed the connection before its first response.",
        ),
        (REFUSED, "[CONNECTION_FAILED] Connecting to a:1 failed: refused."),
    ],
)
def test_query_that_has_run_is_not_told_what_newcomers_are(error: ConnectorError, expected: str) -> None:
    assert what_failed(error) == expected


def test_failures_are_told_to_the_wait_of_the_thread() -> None:
    note_failure(REFUSED)  # outside of any wait: nothing to tell it to
    with Stall(lambda: "reading", Contact()) as stall:
        other = threading.Thread(target=note_failure, args=(REFUSED,))
        other.start()
        other.join()
        assert stall.failure is None
        note_failure(REFUSED)
        assert stall.failure is REFUSED


def test_the_thread_reports_a_step_that_is_blocked_and_ends_by_itself(
    monkeypatch: pytest.MonkeyPatch, lines: list[logging.LogRecord]
) -> None:
    monkeypatch.setattr(stalls, "_IDLE_LOOKS", 3)
    monitor = StallMonitor(first_s=0.05, every_s=3_600.0, look_every_s=0.01)
    with Stall(lambda: "reading", Contact(), monitor):
        thread = monitor._thread
        assert thread is not None
        assert thread.daemon
        eventually(lambda: bool(lines))
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    with Stall(lambda: "writing", Contact(), monitor):
        eventually(lambda: len(lines) == 2)
    assert [text.partition(",")[0] for text in _texts(lines)] == [
        "Waiting for Kafka: reading",
        "Waiting for Kafka: writing",
    ]


def test_thread_that_could_not_be_started_is_started_by_the_next_wait(
    monkeypatch: pytest.MonkeyPatch, lines: list[logging.LogRecord]
) -> None:
    monkeypatch.setattr(stalls, "_IDLE_LOOKS", 1)
    monitor = StallMonitor(first_s=0.05, every_s=3_600.0, look_every_s=0.01)
    with monkeypatch.context() as full:
        full.setattr(threading, "Thread", ThreadOverTheLimit)
        with pytest.raises(RuntimeError, match="can't start new thread"), Stall(lambda: "lost", Contact(), monitor):
            pytest.fail("entered")
    assert monitor.innermost() is None
    with Stall(lambda: "reading", Contact(), monitor) as stall:
        thread = monitor._thread
        assert thread is not None
        assert thread.is_alive()
        assert monitor.innermost() is stall
        eventually(lambda: bool(lines))
    thread.join(PATIENCE_S)
    assert [text.partition(",")[0] for text in _texts(lines)] == ["Waiting for Kafka: reading"]


def test_a_cluster_is_known_by_its_servers() -> None:
    contact = contact_of((("never-heard-of", 1),))
    assert not contact.known
    contact.answered("b:2")
    assert contact_of((("never-heard-of", 1),)).known
    assert not contact_of((("never-heard-of", 2),)).known


def test_the_time_of_another_day_has_its_date() -> None:
    assert len(clock_time(0)) == len("12:34:56")
    assert len(clock_time(86_400 * 2)) == len("2026-01-01 12:34:56")


def test_a_wait_that_is_reported_is_counted_as_an_outage_until_it_is_over(
    clock: Clock, monitor: StallMonitor, counters: Counters
) -> None:
    with Stall(lambda: "listing partitions", Contact(), monitor) as stall:
        for second in range(12):
            clock.now = 1_000.0 + second
            monitor.report()
        assert counters.values() == {OUTAGES: 1, OUTAGE_SECONDS: 11, OUTAGES_ACTIVE: 1}
        stall.progress()
        clock.now += 1
        monitor.report()
        assert counters.values() == {OUTAGES: 1, OUTAGE_SECONDS: 11, OUTAGES_ACTIVE: 0}


def test_a_short_wait_is_not_counted(clock: Clock, monitor: StallMonitor, counters: Counters) -> None:
    with Stall(lambda: "listing partitions", Contact(), monitor):
        clock.now += 4.9
        monitor.report()
    assert OUTAGES not in counters.values()
