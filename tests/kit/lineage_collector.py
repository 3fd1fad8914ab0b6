"""A collector of OpenLineage in Python: keeps the events that are posted to it, and checks them by the schemas."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kit.openlineage_schemas import check_event


class LineageCollector:
    """The events of a collector, in the order of their arrival.

    Attributes:
        url: where it is, for `OPENLINEAGE_URL`.
        events: what has arrived.
        refused: what was wrong with others.
        status: the answer to the next events.
    """

    def __init__(self, url: str) -> None:
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

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = collector.take(body) if self.path == "/api/v1/lineage" else 404
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector = LineageCollector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
