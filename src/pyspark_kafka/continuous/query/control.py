"""What other threads ask of a query that runs, and what they see of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True)
class QueryControl:
    """Shared by the thread of a query and those that hold its handle.

    Attributes:
        stop_asked: the query is to end.
        give_up: it is to end now, without the epoch that runs.
        message: what the query does now, in a sentence.
        is_reading: whether every lane reads.
        has_said_all_slots: whether the log has said that the query takes every slot.
        open_question: asks the source something since a run before, and must end before the next one is planned.
        wake: has the thread of the query look what is asked, which it does without a call within a second.
    """

    stop_asked: threading.Event = field(default_factory=threading.Event)
    give_up: threading.Event = field(default_factory=threading.Event)
    message: str = "Starting"
    is_reading: bool = False
    has_said_all_slots: bool = False
    open_question: threading.Thread | None = None
    wake: Callable[[], None] = lambda: None
