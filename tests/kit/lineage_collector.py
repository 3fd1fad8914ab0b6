"""A collector of OpenLineage in Python: keeps the events that are posted to it, and checks them by the schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kit.openlineage_schemas import check_event
from kit.posts import served_posts


class LineageCollector:
    """The events of a collector, in the order of their arrival.

    Attributes:
        url: where it is, for `OPENLINEAGE_URL`.
        events: what has arrived.
        refused: what was wrong with others.
        status: the answer to the next events.
    """

    def __init__(self, url: str = "") -> None:
        self.url = url
        self.events: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.status = 201

    def take(self, body: bytes) -> int:
        """Keep an event; return the status of the answer."""
        if self.status >= 300:
            return self.status
        event = json.loads(body)
        try:
            check_event(event)
        except Exception as error:  # noqa: BLE001 - shown by the test
            self.refused.append(f"{error}\n{event}")
            return 422
        self.events.append(event)
        return self.status

    def of_job(self, part: str) -> list[dict[str, Any]]:
        """Return the events of the jobs with a part in their names."""
        return [each for each in self.events if part in each["job"]["name"]]

    def states(self, part: str = "") -> list[str]:
        """Return the states of those events."""
        return [each["eventType"] for each in self.of_job(part)]


@contextmanager
def lineage_collector() -> Iterator[LineageCollector]:
    """Serve a collector on a free port of the loopback interface."""
    collector = LineageCollector()
    with served_posts("/api/v1/lineage", collector.take) as collector.url:
        yield collector
