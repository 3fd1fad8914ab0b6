"""Adds a listener to a session and removes it so that no program waits forever, also on Spark Connect.

The client of Spark Connect hands events to its listeners in a thread of its own. PySpark 4.2 and 4.3 wait for the end
of that thread while they hold the lock that the thread takes for each event: `removeListener` of the last listener
never returns if an event is pending (SPARK-59623). Also a program does not end before that thread, if nobody removed
the listener.
"""

from __future__ import annotations

import logging
from concurrent.futures import wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.threads import begin
from pyspark_kafka._client.client.waiting.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener

_LOG = logging.getLogger(__name__)

_LEAVE_WITHIN_MS = 60_000.0
# The attributes of PySpark's bus. A later PySpark may lack them; then its documented interface is used.
_READ = ("_lock", "_listener_bus", "_execution_thread")


def join_bus(session: SparkSession, listener: StreamingQueryListener) -> None:
    """Add a listener to a session; on Spark Connect so that the program can end without its removal.

    Blocks: on Spark Connect for one request, as long as PySpark tries it again.
    """
    if _bus_of(session) is None:
        session.streams.addListener(listener)
        return
    # A thread is a daemon if the thread that starts it is one, and PySpark's bus does not choose.
    _run_in_daemon(lambda: session.streams.addListener(listener))


def join_again(session: SparkSession, listener: StreamingQueryListener) -> None:
    """Add a listener that has been added before, if PySpark has dropped it: Spark Connect's events had ended.

    Blocks as `join_bus` does.
    """
    bus = _bus_of(session)
    if bus is not None and listener not in bus._listener_bus:  # noqa: SLF001 - see the module
        join_bus(session, listener)


def leave_bus(session: SparkSession, listener: StreamingQueryListener, within_ms: float = _LEAVE_WITHIN_MS) -> None:
    """Remove a listener from a session; on Spark Connect, the last one after it has handled the pending events.

    Does not raise if the server does not respond: a line of the log says so.

    Args:
        session: classic or Spark Connect.
        listener: may be absent already, then nothing happens.
        within_ms: how long to wait on Spark Connect for the pending events.
    """
    bus = _bus_of(session)
    if bus is None:
        session.streams.removeListener(listener)
        return
    deadline = Deadline(within_ms)
    try:
        with _held(bus, deadline):
            if bus._listener_bus != [listener]:  # noqa: SLF001 - see the module
                if listener in bus._listener_bus:  # noqa: SLF001
                    bus._listener_bus.remove(listener)  # noqa: SLF001
                return
            events = bus._execution_thread  # noqa: SLF001
        # The lock is free: the thread of the events can handle pending events, and then ends.
        _run_in_daemon(lambda: _end_events(session), deadline)
        _run_in_daemon(events.join, deadline, f"events are still pending after {int(within_ms)} ms")
        with _held(bus, deadline):
            # If the events ended with an error, PySpark has removed all listeners itself.
            ended = bus._execution_thread is events  # noqa: SLF001
            added = [other for other in bus._listener_bus if other is not listener] if ended else []  # noqa: SLF001
            if ended:
                bus._listener_bus.clear()  # noqa: SLF001
                bus._execution_thread = None  # noqa: SLF001
    except Exception:  # noqa: BLE001 - logged
        _LOG.warning(
            "The metrics listener cannot be removed from Spark Connect. It logs no more; queries are not affected.",
            exc_info=True,
        )
        return
    for other in added:
        # Somebody added it in the meantime. It was not the first, so PySpark did not request events from the server.
        join_bus(session, other)


def _bus_of(session: SparkSession) -> Any:
    """Return the bus of a Spark Connect client; None on classic Spark."""
    bus = getattr(session.streams, "_sqlb", None)
    return bus if all(hasattr(bus, name) for name in _READ) else None


@contextmanager
def _held(bus: Any, deadline: Deadline) -> Iterator[None]:
    """Hold the lock of the bus, which a listener that is being called, or a removal that hangs, may keep."""
    if not bus._lock.acquire(timeout=deadline.remaining_s()):  # noqa: SLF001 - see the module
        raise TimeoutError(f"another listener of the session has been busy for {deadline.elapsed_ms()} ms")
    try:
        yield
    finally:
        bus._lock.release()  # noqa: SLF001


def _run_in_daemon(
    call: Callable[[], None], deadline: Deadline | None = None, otherwise: str = "the server does not respond"
) -> None:
    """Run a call in a thread for which the program does not wait when it ends, and wait for it here."""
    begun = begin(call, "metrics listener")
    wait([begun], None if deadline is None else deadline.remaining_s())
    if not begun.done():
        raise TimeoutError(otherwise)
    begun.result()


def _end_events(session: Any) -> None:
    """Cancel the server's events: it sends its pending events, and then the end."""
    # Needs gRPC, which classic Spark runs without.
    from pyspark.sql.connect import proto  # noqa: PLC0415

    command = proto.Command()
    command.streaming_query_listener_bus_command.remove_listener_bus_listener = True
    session.client.execute_command(command)
