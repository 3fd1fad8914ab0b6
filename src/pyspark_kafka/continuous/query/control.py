"""What other threads ask of a query that runs, and what they see of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class QueryControl:
    """Shared by the thread of a query and those that hold its handle.

    Attributes:
        stop_asked: the query is to end.
        message: what the query does now, in a sentence.
        is_reading: whether every lane reads.
    """

    stop_asked: threading.Event = field(default_factory=threading.Event)
    message: str = "Starting"
    is_reading: bool = False
