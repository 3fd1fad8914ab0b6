"""What a test lets a fake cluster do with a request instead of the usual."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kit.waiting import PATIENCE_S


class Close:
    """Instead of a response: the connection is closed."""


class Silence:
    """Instead of a response: nothing is sent, the connection stays open."""


@dataclass
class Raw:
    """Instead of a response: these bytes, as they are."""

    data: bytes


@dataclass
class Drip:
    """A response that arrives in pieces, as over a slow link.

    Attributes:
        response: all of it.
        piece_bytes: how much arrives at a time.
        pause_s: the time between two pieces.
        most_bytes: after this number of bytes the connection is closed.
    """

    response: Any
    piece_bytes: int
    pause_s: float
    most_bytes: int = 1 << 30


# Close, Silence, Drip, Raw, a response, or a function that makes one of these from the request.
Response = Any
Script = Any


class Meeting:
    """A script that answers nobody before several requests wait for their response at the same time.

    Shows that a client asks brokers side by side, without a look at the time: one that asks them one after the other
    never gets the first response.

    Args:
        parties: how many requests meet; later ones are answered at once.
        then: the script that answers them.

    Attributes:
        waited: how many requests came.
    """

    def __init__(self, parties: int, then: Callable[[Any], Any]) -> None:
        self.waited = 0
        self._parties = parties
        self._then = then
        self._lock = threading.Lock()
        self._met = threading.Event()

    def __call__(self, request: Any) -> Any:
        with self._lock:
            self.waited += 1
            if self.waited >= self._parties:
                self._met.set()
        return self._then(request) if self._met.wait(PATIENCE_S) else Close()

    @property
    def took_place(self) -> bool:
        """Whether this number of requests waited at the same time."""
        return self._met.is_set()
