"""Events of queries that run in this process: who gets them, in which order, and what a bad listener can do."""

# ruff: noqa: N802, ARG002 - the listeners have the methods of Spark's contract

from __future__ import annotations

import logging
import sys
import threading
import uuid
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from kit.fakes.threads import ThreadOverTheLimit
from kit.fixtures.leftovers import collect_quietly
from kit.waiting import PATIENCE_S
from pyspark_kafka._connector.spark import local_bus
from pyspark_kafka._connector.spark.local_bus import LocalListenerBus, session_key

QUERY, RUN = uuid.uuid4(), uuid.uuid4()
IDLE = QueryIdleEvent(QUERY, RUN, "now")


class Notes(StreamingQueryListener):
    """Notes what it hears, on which thread; tells when it has heard a number of events."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.threads: set[str] = set()
        self._changed = threading.Condition()

    def note(self, what: str) -> None:
        with self._changed:
            self.heard.append(what)
            self.threads.add(threading.current_thread().name)
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.heard) >= count, PATIENCE_S), self.heard
        return self.heard

    def onQueryStarted(self, event: Any) -> None:
        self.note(f"started {event.name}")

    def onQueryProgress(self, event: Any) -> None:
        self.note(f"progress {event.progress}")

    def onQueryIdle(self, event: Any) -> None:
        self.note(f"idle {event.timestamp}")

    def onQueryTerminated(self, event: Any) -> None:
        self.note(f"terminated {event.exception}")


def started(name: str | None) -> QueryStartedEvent:
    return QueryStartedEvent.fromJson({"id": str(QUERY), "runId": str(RUN), "name": name, "timestamp": "now"})


def progress(number: int) -> QueryProgressEvent:
    made: Any = number
    return QueryProgressEvent(made)


def test_listener_gets_each_kind_of_event_in_order() -> None:
    bus, notes = LocalListenerBus(), Notes()
    bus.add_listener(notes)
    bus.call(started("orders"))
    assert notes.heard == ["started orders"]
    assert notes.threads == {threading.current_thread().name}
    bus.post(progress(1))
    bus.post(IDLE)
    bus.post(progress(2))
    bus.post(QueryTerminatedEvent(QUERY, RUN, "why", None))
    assert notes.wait_for(5)[1:] == ["progress 1", "idle now", "progress 2", "terminated why"]
    assert notes.threads == {threading.current_thread().name, "query-events"}
    bus.remove(notes)


def test_listener_of_a_session_hears_of_its_queries_only() -> None:
    bus, ours, everyone = LocalListenerBus(), Notes(), Notes()
    bus.add_listener(ours, "ours")
    bus.add_listener(everyone)
    bus.post(progress(1), "theirs")
    bus.post(progress(2), "ours")
    for each in (ours, everyone):
        bus.remove(each)
    assert ours.heard == ["progress 2"]
    assert everyone.heard == ["progress 1", "progress 2"]


def test_listener_that_raises_is_logged_and_the_others_hear(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Notes):
        def onQueryStarted(self, event: Any) -> None:
            raise RuntimeError("boom")

        def onQueryProgress(self, event: Any) -> None:
            raise RuntimeError("boom")

    bus, broken, notes = LocalListenerBus(), Broken(), Notes()
    bus.add_listener(broken)
    bus.add_listener(notes)
    bus.call(started(None))
    bus.post(progress(1))
    bus.post(progress(2))
    for each in (broken, notes):
        bus.remove(each)
    assert notes.heard == ["started None", "progress 1", "progress 2"]
    assert [record.getMessage() for record in caplog.records] == [
        f"A listener, {Broken.__qualname__}, raised an error in {method}; the query continues. Further errors of it "
        "there are not logged."
        for method in ("onQueryStarted", "onQueryProgress")
    ]


def test_listener_that_exits_is_logged_and_the_others_hear(caplog: pytest.LogCaptureFixture) -> None:
    class Exiting(Notes):
        def onQueryProgress(self, event: Any) -> None:
            sys.exit("enough")

    bus, exiting, notes = LocalListenerBus(), Exiting(), Notes()
    bus.add_listener(exiting)
    bus.add_listener(notes)
    bus.post(progress(1))
    bus.post(progress(2))
    assert notes.wait_for(2) == ["progress 1", "progress 2"]
    for each in (exiting, notes):
        bus.remove(each)
    assert [record.getMessage() for record in caplog.records] == [
        (
            f"A listener, {Exiting.__qualname__}, raised an error in onQueryProgress; the query continues. Further "
            "errors of it there are not logged."
        )
    ]


def test_bus_starts_its_thread_for_the_next_listener_after_it_could_not_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bus, refused, notes = LocalListenerBus(), Notes(), Notes()
    with monkeypatch.context() as full:
        full.setattr(threading, "Thread", ThreadOverTheLimit)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            bus.add_listener(refused)
    bus.add_listener(notes)
    bus.post(IDLE)
    bus.remove(notes, 30)
    assert (refused.heard, notes.heard) == ([], ["idle now"])


def test_removal_waits_for_what_is_pending_and_nothing_comes_after_it() -> None:
    class Slow(Notes):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.in_call = threading.Event(), threading.Event()

        def onQueryProgress(self, event: Any) -> None:
            self.in_call.set()
            assert self.gate.wait(PATIENCE_S)
            super().onQueryProgress(event)

    bus, slow = LocalListenerBus(), Slow()
    bus.add_listener(slow)
    for number in range(3):
        bus.post(progress(number))
    assert slow.in_call.wait(PATIENCE_S)
    # Still in its first call: what is behind it is left out.
    bus.remove(slow, within_s=0.01)
    slow.gate.set()
    assert slow.wait_for(1) == ["progress 0"]
    again = Slow()
    again.gate.set()
    bus.add_listener(again)
    for number in range(3):
        bus.post(progress(number))
    bus.remove(again)
    assert again.heard == ["progress 0", "progress 1", "progress 2"]
    bus.post(progress(3))
    bus.remove(again)
    assert len(again.heard) == 3
    assert slow.heard == ["progress 0"]


def test_flush_waits_for_what_is_pending() -> None:
    class Held(Notes):
        def __init__(self) -> None:
            super().__init__()
            self.gate = threading.Event()

        def onQueryProgress(self, event: Any) -> None:
            assert self.gate.wait(PATIENCE_S)
            super().onQueryProgress(event)

    bus, held = LocalListenerBus(), Held()
    bus.add_listener(held)
    for number in range(3):
        bus.post(progress(number))
    assert not bus.flush(held, within_s=0.01)
    held.gate.set()
    assert bus.flush(held, PATIENCE_S)
    assert held.heard == ["progress 0", "progress 1", "progress 2"]
    bus.remove(held)


def test_listener_can_remove_itself() -> None:
    class Once(Notes):
        def onQueryProgress(self, event: Any) -> None:
            bus.remove(self)
            super().onQueryProgress(event)

    bus, once = LocalListenerBus(), Once()
    bus.add_listener(once)
    bus.post(progress(1))
    bus.post(progress(2))
    assert once.wait_for(1) == ["progress 1"]
    assert not bus.has_listeners


def test_thread_of_the_bus_lives_while_there_are_listeners() -> None:
    bus, notes = LocalListenerBus(), Notes()
    bus.post(IDLE)
    bus.add_listener(notes)
    thread: Any = bus._thread
    assert thread.daemon
    bus.remove(notes)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert not bus.has_listeners
    bus.add_listener(notes)
    bus.post(IDLE)
    assert notes.wait_for(1) == ["idle now"]
    bus.remove(notes)


def test_listener_that_is_added_weakly_is_called_until_nobody_has_it() -> None:
    bus, kept, dropped = LocalListenerBus(), Notes(), Notes()
    bus.add_listener(kept, weakly=True)
    bus.add_listener(dropped, weakly=True)
    bus.post(progress(1))
    for each in (kept, dropped):
        assert each.wait_for(1) == ["progress 1"]
    gone = weakref.ref(dropped)
    del dropped, each
    # The thread of the bus lets go of the last event before it takes the next one.
    bus.post(progress(2))
    assert kept.wait_for(2) == ["progress 1", "progress 2"]
    bus.post(progress(3))
    bus.remove(kept)
    collect_quietly()
    assert gone() is None
    assert not bus.has_listeners


def test_listener_is_held_unless_it_is_added_weakly() -> None:
    bus, notes = LocalListenerBus(), Notes()
    bus.add_listener(notes)
    held = weakref.ref(notes)
    del notes
    collect_quietly()
    found = held()
    assert found is not None
    assert bus.has_listeners
    bus.remove(found)


def test_thread_of_the_bus_ends_when_its_last_listener_is_gone() -> None:
    bus, notes = LocalListenerBus(), Notes()
    bus.add_listener(notes, weakly=True)
    thread: Any = bus._thread
    del notes
    collect_quietly()
    assert not bus.has_listeners
    bus.post(IDLE)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_slow_listener_loses_the_oldest_events(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(local_bus, "_MAX_PENDING", 5)
    called, gate = threading.Event(), threading.Event()

    class Slow(Notes):
        def onQueryIdle(self, event: Any) -> None:
            called.set()
            assert gate.wait(PATIENCE_S)

    bus, slow = LocalListenerBus(), Slow()
    bus.add_listener(slow)
    bus.post(IDLE)
    assert called.wait(PATIENCE_S)
    with caplog.at_level(logging.WARNING):
        for number in range(8):
            bus.post(progress(number))
    gate.set()
    bus.remove(slow)
    assert slow.heard == [f"progress {number}" for number in range(3, 8)]
    assert caplog.messages == ["A listener of continuous queries is slower than their events: 1 are lost."]


def test_key_of_a_session_is_that_of_all_its_python_objects() -> None:
    java = SimpleNamespace(sessionUUID=lambda: "uuid")
    assert session_key(SimpleNamespace(_jsparkSession=java)) == "uuid"
    assert session_key(SimpleNamespace(session_id="id")) == "id"
