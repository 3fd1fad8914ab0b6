"""The first connection to a cluster: any bootstrap server that answers, or one error that names them all.

Layer: client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.client.connection import Connection
from pyspark_kafka.client.retry import Action, Backoff, decide
from pyspark_kafka.errors import ConnectorError, OptionError, TransportError

if TYPE_CHECKING:
    from pyspark_kafka.client.buffers import FrameBuffers
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.options.connection import ConnectionOptions

# Below this, an attempt fails on machines that are merely busy.
_SHORTEST_ATTEMPT_MS = 1_000
# A server that closes every connection without a word is a confusion of listeners rather than a broker that starts:
# about 5 s of attempts tell them apart.
_WORDLESS_ATTEMPTS = 8


def connect_to_any(options: ConnectionOptions, deadline: Deadline, buffers: FrameBuffers | None = None) -> Connection:
    """Connect to one of the bootstrap servers; go through them until one answers or time is over.

    The time is shared out, so that a server that swallows packets does not take the turn of the ones after it.

    Raises:
        TransportError: none answered within the deadline; the text names each server and why it failed.
        AccessError: all servers that answered refused the credentials.
        OptionError: the options themselves cannot work.
    """
    backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
    failures: dict[tuple[str, int], ConnectorError] = {}
    rounds = 0
    while True:
        final = 0
        rounds += 1
        for index, (host, port) in enumerate(options.bootstrap_servers):
            share_ms = deadline.remaining_s() * 1000 / (len(options.bootstrap_servers) - index)
            attempt = deadline.within(max(_SHORTEST_ATTEMPT_MS, share_ms))
            if attempt.expired and (host, port) in failures:
                continue
            try:
                return Connection.open(host, port, options, attempt, buffers=buffers)
            except OptionError:
                raise
            except ConnectorError as error:
                failures[host, port] = error
                wordless = error.condition == "BROKER_CLOSED_FIRST_READ" and rounds >= _WORDLESS_ATTEMPTS
                if wordless or decide(error).action is Action.FAIL:
                    final += 1
        last = next(reversed(failures.values()))
        if final == len(options.bootstrap_servers) == 1 and not last.retriable:
            # One server and one reason that will not change: that reason says it all.
            raise last
        if final == len(options.bootstrap_servers) or deadline.expired:
            raise _unreachable(failures, deadline, retriable=final < len(options.bootstrap_servers)) from last
        deadline.pause(backoff.next_s())


def _unreachable(
    failures: dict[tuple[str, int], ConnectorError], deadline: Deadline, *, retriable: bool
) -> TransportError:
    tried = "; ".join(f"{host}:{port}: {_reason(error)}" for (host, port), error in failures.items())
    hints = {str(error).partition(" Hint: ")[2] for error in failures.values()} - {""}
    hint = hints.pop() if len(hints) == 1 else "check that the brokers run and that this machine may reach them."
    return TransportError(
        f"No server of option 'kafka.bootstrap.servers' could be used within {deadline.timeout_ms:.0f} ms "
        f"({deadline.elapsed_ms()} ms elapsed). Tried: {tried} Nothing was read or written.",
        condition="BOOTSTRAP_FAILED",
        hint=f"check 'kafka.bootstrap.servers'; {hint}",
        retriable=retriable,
        facts={"servers": ",".join(f"{host}:{port}" for host, port in failures), "timeout_ms": deadline.timeout_ms},
    )


def _reason(error: ConnectorError) -> str:
    """Give the sentence of an error without its hint; the condition stays, it can be searched for."""
    return str(error).partition(" Hint: ")[0]
