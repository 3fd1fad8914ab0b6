"""How bytes pass a proxy. Pure: no sockets, no clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kit.network.frames import Answer

# Edits a response in flight from a broker to a client.
Change = Callable[[Answer], None]


@dataclass(frozen=True)
class Drip:
    """Bytes from brokers arrive in small pieces.

    Attributes:
        size: bytes of one piece.
        pause_s: the time between two pieces; with 0 s they are pieces only, as fast as they can be sent.
    """

    size: int = 1
    pause_s: float = 0.0


@dataclass(frozen=True)
class Wire:
    """How a proxy handles what passes.

    Attributes:
        delay_s: bytes arrive this much later, in both directions; the rate stays as it is.
        rate: bytes per second, in each direction, for all connections of the proxy together; None for no limit.
        drip: the pieces in which brokers' bytes arrive.
        black_hole: nothing passes and nothing is closed; connections are still accepted.
        reset: all connections, new ones included, are reset.
        cut: the share of brokers' chunks of which only a half passes, before the connection is reset.
        flip: the share of brokers' chunks with one flipped bit, at a random place.
        forget_after_s: a connection that was idle for longer passes nothing more, in either direction, and is not
            closed: neither side learns of it, as behind a load balancer that dropped the state of an idle connection.
        changes: what edits brokers' responses, in this order. Only for Kafka's protocol without TLS.
    """

    delay_s: float = 0.0
    rate: float | None = None
    drip: Drip | None = None
    black_hole: bool = False
    reset: bool = False
    cut: float = 0.0
    flip: float = 0.0
    forget_after_s: float | None = None
    changes: tuple[Change, ...] = ()


CLEAN = Wire()
