"""A REST API on this machine, to try `rest_source.py` on: pages behind a cursor, a token, faults of real APIs.

    python examples/rest_server.py 8080

| Request | Response |
| --- | --- |
| `GET /readings?limit=50` | `{"items": [...]}`: the first 50 readings |
| `GET /readings?after=r-7&limit=50` | 50 readings behind `r-7`; 404 if there is no `r-7` |
| `GET /readings?order=desc&limit=1` | the newest reading |
| `POST /readings?count=10` | ten more readings are there |

Each request takes the next one of `faults` first. A response has an `ETag`, and is a 304 if the client has it already.
"""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class ReadingsServer(ThreadingHTTPServer):
    """The API; serves from `start` to the end of a `with` block.

    Attributes:
        items: the readings, oldest first.
        faults: what happens to each request: `500`; `429 2` and `503 2` with a Retry-After of seconds; `429 date`, two
            seconds later as a date; `reset`; `slow`; `drip`; `cut`; `302 URL`; None: nothing.
        seen: each request with the status of its response, 0 if there was none.
    """

    daemon_threads = True

    def __init__(self, token: str, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Readings)
        self.url = f"http://127.0.0.1:{self.server_port}/readings"
        self.token = token
        self.items: list[dict[str, Any]] = []
        self.faults: Iterator[str | None] = iter(())
        self.seen: list[tuple[str, int]] = []
        self.ended = threading.Event()

    def start(self) -> ReadingsServer:
        """Serve, in a thread."""
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()

    def add(self, count: int) -> None:
        """Make more readings."""
        for number in range(len(self.items) + 1, len(self.items) + count + 1):
            self.items.append({"id": f"r-{number}", "station": f"s{number % 3}", "celsius": number / 2, "unit": "C"})


class _Readings(BaseHTTPRequestHandler):
    server: ReadingsServer

    def do_GET(self) -> None:
        fault = next(self.server.faults, None) or ""
        kind, _, detail = fault.partition(" ")
        if self.headers["Authorization"] != f"Bearer {self.server.token}":
            # Some servers repeat what they were sent.
            self._send(401, {"error": self.headers["Authorization"]})
        elif kind in {"slow", "reset"}:
            self.server.seen.append((self.path, 0))
            if kind == "slow":
                self.server.ended.wait(60)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
        elif kind == "302":
            self._send(302, {}, Location=detail)
        elif kind.isdecimal():
            after = formatdate(_now() + 2, usegmt=True) if detail == "date" else detail
            self._send(int(kind), {"error": kind}, **({"Retry-After": after} if detail else {}))
        elif (page := self._page()) is None:
            self._send(404, {"error": "nobody knows this cursor"})
        else:
            self._send(200, {"items": page}, fault=kind)

    def do_POST(self) -> None:
        self.server.add(int(self._query()["count"]))
        self._send(200, {})

    def _query(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.path).query).items()}

    def _page(self) -> list[dict[str, Any]] | None:
        query, items = self._query(), list(self.server.items)
        limit = min(int(query.get("limit", "100")), 100)
        if query.get("order") == "desc":
            return items[::-1][:limit]
        ids = [item["id"] for item in items]
        if "after" not in query:
            return items[:limit]
        if query["after"] not in ids:
            return None
        first = ids.index(query["after"]) + 1
        return items[first : first + limit]

    def _send(self, status: int, content: object, *, fault: str = "", **headers: str) -> None:
        body = json.dumps(content).encode()
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if status == 200 and self.headers["If-None-Match"] == etag:
            status, body = 304, b""
        self.server.seen.append((self.path, status))
        self.send_response(status)
        for name, value in {"ETag": etag, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if fault == "drip":
            # A byte at a time: each arrives soon, all of them never.
            while not self.server.ended.wait(0.05):
                self.wfile.write(b" ")
                self.wfile.flush()
        else:
            self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string(_now() if timestamp is None else timestamp)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _now() -> float:
    # An hour ahead: the clocks of servers and clients differ.
    return time.time() + 3600


if __name__ == "__main__":
    with ReadingsServer("secret", int(sys.argv[1]) if sys.argv[1:] else 0) as server:
        print(server.url, flush=True)
        server.serve_forever()
