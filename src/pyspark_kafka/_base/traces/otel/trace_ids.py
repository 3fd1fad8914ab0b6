"""Trace ids that a step chooses, so that the processes of a micro-batch share one."""

from __future__ import annotations

import threading

from opentelemetry.sdk.trace.id_generator import RandomIdGenerator


class ChosenTraceIds(RandomIdGenerator):
    """Random ids, but for the next trace of a thread that has chosen one."""

    def __init__(self) -> None:
        super().__init__()
        self._of_thread = threading.local()

    def choose(self, trace_id: int) -> None:
        """Choose the id of the next trace of this thread; 0: random."""
        self._of_thread.chosen = trace_id

    def generate_trace_id(self) -> int:
        """Return the chosen id, once, or a random one."""
        chosen: int = getattr(self._of_thread, "chosen", 0)
        self._of_thread.chosen = 0
        return chosen or int(super().generate_trace_id())
