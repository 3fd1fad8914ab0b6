"""What a test lets a fake cluster do with a request instead of the usual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class Close:
    """Instead of a response: the connection is closed."""


class Silence:
    """Instead of a response: nothing is sent, the connection stays open."""


@dataclass
class Raw:
    """Instead of a response: these bytes, as they are."""

    data: bytes


# Close, Silence, Raw, a response, or a function that makes one of these from the request.
Response = Any
Script = Any
