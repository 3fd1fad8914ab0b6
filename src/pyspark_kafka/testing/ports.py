"""Free loopback ports for a broker."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import ExitStack

from pyspark_kafka.testing.broker_config import HOST, BrokerAddress


def choose_ports(port: int | None, listeners: Iterable[str] = ()) -> BrokerAddress:
    """Find ports that are free now: all are bound at the same time, so they differ.

    Args:
        port: of the PLAINTEXT listener; None: a free one.
        listeners: the names of other listeners.
    """
    with ExitStack() as held:

        def free() -> int:
            taken = held.enter_context(socket.socket())
            taken.bind((HOST, 0))
            return int(taken.getsockname()[1])

        controller = free()
        return BrokerAddress(free() if port is None else port, controller, {name: free() for name in listeners})
