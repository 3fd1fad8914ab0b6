"""A connection to the first server of a cluster that responds, or one error that names them all."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.net.connection import Connection
from pyspark_kafka._client.client.net.dials import Dials
from pyspark_kafka._client.client.net.polling import wait_readable
from pyspark_kafka._client.client.waiting.retry import Backoff, ClosedAtOnce, RetryAction, decide
from pyspark_kafka._client.client.waiting.stalls import note_failure
from pyspark_kafka.errors import AccessError, ConnectorError, OptionError, TransportError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._client.client.net.buffers import FrameBuffers
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import ConnectionOptions

Server = tuple[str, int]

# A server that has not responded by then is waited for together with the next one.
_HEAD_START_S = 1.0
_CLOSED_AT_ONCE = ("BROKER_CLOSED_FIRST_READ", "TLS_HANDSHAKE_FAILED")
# A dial that ends with the deadline takes a moment to report why it failed.
_GRACE_S = 0.2
# How many servers an error names.
_NAMED = 10


def connect_to_any(
    options: ConnectionOptions,
    deadline: Deadline,
    buffers: FrameBuffers,
    servers: Sequence[Server] = (),
    unless: Connection | None = None,
) -> Connection | None:
    """Connect to one of the servers; try them until one responds or time is over.

    The next server is tried as soon as the one before it fails, or has not responded for a second: a server that
    swallows packets does not take the time of the ones after it.

    Runs on: driver and executor; blocks.

    Args:
        options: how to reach the cluster.
        deadline: for all attempts.
        buffers: receive buffers that connections share.
        servers: what to try, in this order; empty for the bootstrap servers.
        unless: a connection whose response is waited for as well.

    Returns:
        The first ready connection; None if there is something to read from `unless`.

    Raises:
        TransportError: none responded within the deadline; the text names the servers and why they failed.
        AccessError: all servers that responded refused the credentials.
        OptionError: the options themselves cannot work.
    """
    chosen = tuple(dict.fromkeys(servers)) or tuple(dict.fromkeys(options.bootstrap_servers))
    dials: Dials[Server] = Dials(options, buffers)
    try:
        return _Search(options, deadline, chosen, dials, unless).run()
    finally:
        dials.close()


class _Search:
    """Attempts to connect to servers, each with retries of its own, until one can be used."""

    def __init__(
        self,
        options: ConnectionOptions,
        deadline: Deadline,
        servers: Sequence[Server],
        dials: Dials[Server],
        unless: Connection | None,
    ) -> None:
        self._options = options
        self._deadline = deadline
        self._ends_at = time.monotonic() + deadline.remaining_s()
        self._servers = servers
        self._dials = dials
        self._unless = unless
        self._failures: dict[Server, ConnectorError] = {}
        self._closed_at_once = {server: ClosedAtOnce() for server in servers}
        self._backoffs = {server: Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms) for server in servers}
        # Servers not tried yet, and when to try the others again.
        self._untried = deque(servers)
        self._due_at: dict[Server, float] = {}

    def run(self) -> Connection | None:
        # All of many servers get their turn within half of the time.
        head_start_s = min(_HEAD_START_S, self._deadline.remaining_s() / 2 / len(self._servers))
        next_at = 0.0
        # Not `retry.attempts`: each server has waits of its own, and all are watched at the same time.
        while True:
            now = time.monotonic()
            if self._untried and (now >= next_at or not len(self._dials)):
                self._start(self._untried.popleft())
                next_at = now + head_start_s
            if now >= self._ends_at:
                self._due_at.clear()
            for server in [server for server, due_at in self._due_at.items() if due_at <= now]:
                del self._due_at[server]
                self._start(server)
            next_start = [next_at] if self._untried else []
            grace_s = _GRACE_S if len(self._dials) else 0.0
            wake_at = min([*self._due_at.values(), *next_start, self._ends_at + grace_s])
            watched = [] if self._unless is None else [self._unless]
            if wait_readable(watched, max(0.0, wake_at - now), others=[self._dials.fileno()]):
                return None
            ready = self._take()
            if ready is not None:
                return ready
            self._raise_if_over()

    def _start(self, server: Server) -> None:
        host, port = server
        self._dials.start(server, host, port, self._deadline)

    def _take(self) -> Connection | None:
        ready: Connection | None = None
        for server, outcome in self._dials.take_outcomes():
            if isinstance(outcome, Connection):
                if ready is None:
                    ready = outcome
                else:
                    outcome.close()
                continue
            if isinstance(outcome, OptionError):
                if ready is not None:
                    ready.close()
                raise outcome
            self._failures.pop(server, None)
            self._failures[server] = outcome
            note_failure(outcome)
            self._closed_at_once[server].note(outcome.condition in _CLOSED_AT_ONCE, self._deadline.elapsed_ms())
            if not self._is_final(server):
                self._due_at[server] = time.monotonic() + self._backoffs[server].next_s()
        return ready

    def _raise_if_over(self) -> None:
        """Raise if no attempt can succeed any more, or time is over."""
        final = sum(self._is_final(server) for server in self._failures)
        if final < len(self._servers):
            now = time.monotonic()
            # Dials that are not finished end with the deadline as well, and then report why they failed.
            if now < self._ends_at or ((len(self._dials) or self._untried) and now < self._ends_at + _GRACE_S):
                return
        last = next(reversed(self._failures.values()), None)
        refused = all(isinstance(error, AccessError) for error in self._failures.values())
        if last is not None and not last.retriable and final == len(self._servers) and (final == 1 or refused):
            # One reason that will not change explains everything.
            raise last
        refusals = [error for error in self._failures.values() if isinstance(error, AccessError)]
        if refusals and all(error.retriable for error in self._failures.values() if error not in refusals):
            # The others have not responded. To wait for them would not help, and would hide the reason.
            raise refusals[-1]
        raise self._unreachable(retriable=final < len(self._servers)) from last

    def _is_final(self, server: Server) -> bool:
        return self._closed_at_once[server].is_final or decide(self._failures[server]).action is RetryAction.FAIL

    def _unreachable(self, *, retriable: bool) -> TransportError:
        named = [server for server in self._servers if server in self._failures][-_NAMED:]
        tried = "; ".join(f"{host}:{port}: {_reason(self._failures[host, port])}" for host, port in named)
        others = f" (and {len(self._failures) - len(named)} other brokers.)" if len(self._failures) > len(named) else ""
        hints = {error.hint for error in self._failures.values()} - {""}
        hint = hints.pop() if len(hints) == 1 else "Check that the brokers run and that this machine may reach them."
        learned = set(self._servers) - set(self._options.bootstrap_servers)
        which = "No server of option 'kafka.bootstrap.servers'"
        if learned:
            which += ", and no broker learned from them,"
        return TransportError(
            f"{which} could be used within {self._deadline.timeout_ms:.0f} ms ({self._deadline.elapsed_ms()} ms "
            f"elapsed). Tried: {tried}{others} Nothing was read or written.",
            condition="BOOTSTRAP_FAILED",
            # If brokers were learned from the cluster before, spelling is not the reason.
            hint=hint if learned else f"Check 'kafka.bootstrap.servers'. {hint}",
            retriable=retriable,
            parameters={
                "servers": ",".join(f"{host}:{port}" for host, port in self._failures),
                "timeout_ms": self._deadline.timeout_ms,
                # Servers that are there and close connections silently: see `outage.may_be_outage`.
                "closed_at_once": ",".join(
                    f"{host}:{port}"
                    for (host, port), error in self._failures.items()
                    if error.retriable and error.condition in _CLOSED_AT_ONCE
                ),
            },
        )


def _reason(error: ConnectorError) -> str:
    """Return the text of an error without its hint; the condition stays, so that it can be searched for."""
    return f"[{error.condition}] {error.message}"
