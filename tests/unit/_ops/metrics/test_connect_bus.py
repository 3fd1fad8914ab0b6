"""PySpark's own listener bus of Spark Connect, with a server that the test plays; no JVM."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.connect import proto
from pyspark.sql.connect.streaming.query import StreamingQueryListenerBus
from pyspark.sql.streaming.listener import StreamingQueryListener

from pyspark_kafka._ops.metrics.connect_bus import join_again, join_bus, leave_bus

EVENT = (
    '{{"id":"8c0e2b1e-0000-4000-8000-00000000000{0}","runId":"51f20000-0000-4000-8000-000000000002","exception":null,'
    '"errorClassOnException":null}}'
)
GIVE_UP_S = 20


class ScriptedServer:
    """The client of a session, and the server behind it: each stream of events ends when its listener is removed."""

    def __init__(self) -> None:
        self.streams: list[queue.SimpleQueue[int | None]] = []
        self.pending: list[int] = []
        self.ends_streams = True
        self.failure: Exception | None = None
        self.silent: threading.Event | None = None

    def execute_command_as_iterator(self, command: proto.Command) -> Iterator[dict[str, Any]]:
        assert command.streaming_query_listener_bus_command.add_listener_bus_listener
        events: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self.streams.append(events)

        def results() -> Iterator[dict[str, Any]]:
            yield {"streaming_query_listener_events_result": proto.StreamingQueryListenerEventsResult(
                listener_bus_listener_added=True
            )}  # fmt: skip
            while (number := events.get()) is not None:
                result = proto.StreamingQueryListenerEventsResult()
                result.events.add(
                    event_json=EVENT.format(number),
                    event_type=proto.StreamingQueryEventType.QUERY_TERMINATED_EVENT,
                )
                yield {"streaming_query_listener_events_result": result}

        return results()

    def execute_command(self, command: proto.Command) -> None:
        assert command.streaming_query_listener_bus_command.remove_listener_bus_listener
        if self.silent is not None:
            self.silent.wait()
        if self.failure is not None:
            raise self.failure
        # PySpark's lock is held by nobody, or by the one who asks: what comes now is pending when it waits for the end.
        for number in self.pending:
            self.streams[-1].put(number)
        if self.ends_streams:
            self.streams[-1].put(None)


class Hearing(StreamingQueryListener):
    """Notes the last digit of the queries that ended."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self.in_call = threading.Event()
        self.resume = threading.Event()
        self.resume.set()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's contract
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's contract
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's contract
        self.in_call.set()
        self.resume.wait(GIVE_UP_S)
        self.heard.append(int(str(event.id)[-1]))


class ConnectStreams:
    """`spark.streams` of Spark Connect."""

    def __init__(self, session: Any) -> None:
        self._sqlb = StreamingQueryListenerBus(SimpleNamespace(_session=session))  # type: ignore[arg-type]

    def addListener(self, listener: StreamingQueryListener) -> None:  # noqa: N802 - PySpark's name
        self._sqlb.append(listener)

    def removeListener(self, listener: StreamingQueryListener) -> None:  # noqa: N802 - PySpark's name
        self._sqlb.remove(listener)


@pytest.fixture
def server() -> ScriptedServer:
    return ScriptedServer()


@pytest.fixture
def session(server: ScriptedServer) -> Any:
    session = SimpleNamespace(client=server)
    session.streams = ConnectStreams(session)
    return session


def bus_of(session: Any) -> Any:
    return session.streams._sqlb


def leave_in_time(session: Any, listener: StreamingQueryListener, within_ms: float = 60_000) -> None:
    """Have the test fail, not hang, if the removal does."""
    leaving = threading.Thread(target=leave_bus, args=(session, listener, within_ms), daemon=True)
    leaving.start()
    leaving.join(GIVE_UP_S)
    assert not leaving.is_alive(), "the removal hangs"


def test_last_listener_leaves_after_it_handled_the_pending_events(session: Any, server: ScriptedServer) -> None:
    """PySpark's own `removeListener` never returns here (SPARK-59623)."""
    listener = Hearing()
    join_bus(session, listener)
    server.pending = [1, 2, 3]
    leave_in_time(session, listener)
    assert listener.heard == [1, 2, 3]
    assert (bus_of(session)._listener_bus, bus_of(session)._execution_thread) == ([], None)


def test_bus_can_be_joined_again_after_a_removal(session: Any, server: ScriptedServer) -> None:
    first, second = Hearing(), Hearing()
    join_bus(session, first)
    leave_in_time(session, first)
    join_bus(session, second)
    server.pending = [4]
    leave_in_time(session, second)
    assert (first.heard, second.heard, len(server.streams)) == ([], [4], 2)


def test_listener_that_pyspark_dropped_is_added_again_and_another_is_not_added_twice(
    session: Any, server: ScriptedServer
) -> None:
    """As PySpark does when the events of a server break."""
    listener = Hearing()
    join_bus(session, listener)
    join_again(session, listener)
    assert (bus_of(session)._listener_bus, len(server.streams)) == ([listener], 1)
    bus_of(session)._listener_bus.clear()
    bus_of(session)._execution_thread = None
    join_again(session, listener)
    assert (bus_of(session)._listener_bus, len(server.streams)) == ([listener], 2)
    server.pending = [7]
    leave_in_time(session, listener)
    assert listener.heard == [7]
    # Of the events that broke.
    server.streams[0].put(None)


def test_thread_of_the_events_does_not_keep_a_program_from_its_end(session: Any) -> None:
    listener = Hearing()
    join_bus(session, listener)
    assert bus_of(session)._execution_thread.daemon
    leave_in_time(session, listener)


def test_other_listeners_stay_when_one_leaves(session: Any, server: ScriptedServer) -> None:
    one, other = Hearing(), Hearing()
    join_bus(session, one)
    join_bus(session, other)
    leave_in_time(session, one)
    server.pending = [5]
    leave_in_time(session, other)
    assert (one.heard, other.heard, len(server.streams)) == ([], [5], 1)


def test_listener_that_is_added_during_a_removal_hears_events(session: Any, server: ScriptedServer) -> None:
    leaving, added = Hearing(), Hearing()
    join_bus(session, leaving)
    server.pending, server.ends_streams = [6], False
    removal = threading.Thread(target=leave_bus, args=(session, leaving), daemon=True)
    removal.start()
    assert leaving.in_call.wait(GIVE_UP_S)
    join_bus(session, added)
    server.ends_streams = True
    server.streams[0].put(None)
    removal.join(GIVE_UP_S)
    assert not removal.is_alive()
    assert leaving.heard == [6]
    server.pending = [7]
    leave_in_time(session, added)
    assert (added.heard, len(server.streams)) == ([7], 2)


def test_listener_that_pyspark_dropped_already_leaves_without_a_request(session: Any, server: ScriptedServer) -> None:
    listener = Hearing()
    join_bus(session, listener)
    leave_in_time(session, listener)
    server.failure = AssertionError("asked again")
    leave_in_time(session, listener)


def assert_warned(caplog: pytest.LogCaptureFixture, reason: str) -> None:
    (line,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert line.getMessage() == (
        "The metrics listener cannot be removed from Spark Connect. It logs no more; queries are not affected."
    )
    assert line.exc_info is not None
    assert reason in str(line.exc_info[1])


def test_removal_warns_if_the_server_refuses(
    session: Any, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    listener = Hearing()
    join_bus(session, listener)
    server.failure = RuntimeError("no active session")
    leave_in_time(session, listener)
    assert_warned(caplog, "no active session")
    server.streams[-1].put(None)


def test_removal_warns_if_the_server_is_silent(
    session: Any, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    listener = Hearing()
    join_bus(session, listener)
    server.silent = threading.Event()
    leave_in_time(session, listener, within_ms=50)
    assert_warned(caplog, "the server does not respond")
    server.silent.set()


def test_removal_warns_if_events_stay_pending(
    session: Any, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    listener = Hearing()
    join_bus(session, listener)
    server.ends_streams = False
    leave_in_time(session, listener, within_ms=50)
    assert_warned(caplog, "events are still pending after 50 ms")
    server.streams[-1].put(None)


def test_removal_warns_if_a_listener_of_the_session_never_returns(
    session: Any, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    listener = Hearing()
    listener.resume.clear()
    join_bus(session, listener)
    server.streams[-1].put(8)
    assert listener.in_call.wait(GIVE_UP_S)
    leave_in_time(session, listener, within_ms=50)
    assert_warned(caplog, "another listener of the session has been busy for ")
    listener.resume.set()
    server.streams[-1].put(None)


def test_classic_spark_is_asked_directly() -> None:
    asked: list[Any] = []
    streams = SimpleNamespace(
        addListener=lambda listener: asked.append(("add", listener)),
        removeListener=lambda listener: asked.append(("remove", listener)),
    )
    session, listener = SimpleNamespace(streams=streams), Hearing()
    join_bus(session, listener)  # type: ignore[arg-type]
    leave_bus(session, listener)  # type: ignore[arg-type]
    assert asked == [("add", listener), ("remove", listener)]
