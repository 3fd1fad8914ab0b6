"""A TCP connection to a host by its name: all addresses tried, socket options set. Nothing of Kafka's protocol.

Layer: client.
"""

from __future__ import annotations

import functools
import socket
from typing import TYPE_CHECKING

from pyspark_kafka.errors import TransportError

if TYPE_CHECKING:
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.options.connection import ConnectionOptions


def connect(host: str, port: int, options: ConnectionOptions, deadline: Deadline) -> socket.socket:
    """Connect to the first address of a name that answers.

    Runs on: driver and executor; blocks, at most `connect_timeout_ms` an address.

    Raises:
        TransportError: no address answers (each is named), or the name is unknown.
        DeadlineError: time is over before all addresses were tried.
    """
    where = f"{host}:{port}"
    try:
        # getaddrinfo knows no timeout; the resolver's own (5 to 30 s) bounds it.
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TransportError(
            f"The name of broker {where} cannot be resolved: {error}.",
            condition="HOST_UNKNOWN",
            hint="check kafka.bootstrap.servers, and the advertised listeners of the cluster.",
            retriable=True,
            facts={"broker": where, "reason": error},
        ) from error
    failures: list[str] = []
    last: OSError | None = None
    for family, kind, number, _, address in addresses:
        attempt = deadline.within(options.connect_timeout_ms)
        if failures:
            deadline.check(f"Connecting to {where}", last)
        sock = socket.socket(family, kind, number)
        try:
            # Before connect: the window scale is agreed in the handshake.
            if _is_granted(socket.SO_RCVBUF, options.receive_buffer_bytes):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer_bytes)
            if _is_granted(socket.SO_SNDBUF, options.send_buffer_bytes):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer_bytes)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.settimeout(max(0.001, attempt.remaining_s()))
            sock.connect(address)
        except OSError as error:
            sock.close()
            last = error
            reason = f"no answer in {attempt.elapsed_ms()} ms" if isinstance(error, TimeoutError) else str(error)
            failures.append(f"{address[0]} ({reason})")
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise TransportError(
        f"Broker {where} cannot be reached: {'; '.join(failures)}.",
        condition="CONNECTION_FAILED",
        hint="check that the broker runs and that this machine may reach it.",
        retriable=True,
        facts={"broker": where, "reason": "; ".join(failures)},
    ) from last


@functools.lru_cache(maxsize=16)
def _is_granted(option: int, size: int) -> bool:
    """Whether the kernel gives a socket buffer of this size.

    Asking for more than net.core.rmem_max (208 KiB on an untuned Linux) silently gives that much AND ends the
    kernel's own growing of the buffer, which goes up to 6 MiB: then it is better not to ask.
    """
    if size <= 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, option, size)
        return probe.getsockopt(socket.SOL_SOCKET, option) >= size
