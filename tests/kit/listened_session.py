"""What stands for a Spark session whose queries `pyspark_kafka.metrics` listens to; it has no queries."""

from __future__ import annotations

import uuid


class StandInStreams:
    """Stands for `streams` of a session, which hold their listeners."""

    def __init__(self) -> None:
        self.listeners: list[object] = []
        self.active: list[object] = []

    def addListener(self, listener: object) -> None:  # noqa: N802 - Spark's contract
        self.listeners.append(listener)

    def removeListener(self, listener: object) -> None:  # noqa: N802 - Spark's contract
        self.listeners.remove(listener)


class StandInSession:
    """Stands for a session."""

    def __init__(self) -> None:
        self.session_id = str(uuid.uuid4())
        self.streams = StandInStreams()
