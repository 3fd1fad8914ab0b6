"""An S3 server on the loopback, moto's, that counts what it is asked, takes as long for it as a far one, or fails."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, quote

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

_KEY, _SECRET = "test", "not-a-secret"


class ObjectStore:
    """Use as a context manager; `uri` returns locations in its bucket.

    Args:
        bucket: made at the start.
        latency_s: what each call takes beside moto's own time.

    Attributes:
        calls: how often each kind of call came: PUT, GET, HEAD, LIST, DELETE, COPY, and POST for uploads in parts.
        before: called with the kind and the key of each call before it is served, on a thread of its own.
        lost: keys of which the next response is lost: the call is served, and a gateway answers with an error.
        ignores_conditions: whether it writes as if no condition were asked for, as some stores do.
    """

    def __init__(self, bucket: str, *, latency_s: float = 0.0) -> None:
        self._bucket = bucket
        self._latency_s = latency_s
        self._lock = threading.Lock()
        self.calls: Counter[str] = Counter()
        self.before: Callable[[str, str], object] = lambda *_: None
        self.lost: set[str] = set()
        self.ignores_conditions = False
        # A service decides one call after the other; moto looks first and writes then.
        self._deciding = threading.Lock()
        # One line a call.
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        application = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._counting(application), threaded=True)
        # Seconds between two looks whether it is to end.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> ObjectStore:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._thread.start()
        from pyarrow import fs  # noqa: PLC0415 - has the clients of clouds in it

        opened, root = fs.FileSystem.from_uri(self.uri("") + "&allow_bucket_creation=true")
        opened.create_dir(root)
        self.calls.clear()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def uri(self, path: str) -> str:
        """Return a location in the bucket that pyarrow opens."""
        endpoint = quote(f"127.0.0.1:{self._server.server_port}", safe="")
        place = "/".join(part for part in (self._bucket, path) if part)
        return f"s3://{_KEY}:{_SECRET}@{place}?scheme=http&endpoint_override={endpoint}&region=us-east-1"

    def take(self) -> Counter[str]:
        """Return the calls since the last time."""
        with self._lock:
            found, self.calls = self.calls, Counter()
        return found

    def _counting(self, application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
        def counted(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            kind, key = _kind(environ), str(environ["PATH_INFO"]).removeprefix(f"/{self._bucket}/")
            with self._lock:
                self.calls[kind] += 1
                is_lost = key in self.lost
                self.lost.discard(key)
            time.sleep(self._latency_s)
            self.before(kind, key)
            if self.ignores_conditions:
                environ.pop("HTTP_IF_NONE_MATCH", None)
            with self._deciding:
                if not is_lost:
                    return application(environ, start_response)
                list(application(environ, lambda *_: None))
            start_response("502 Bad Gateway", [("Content-Length", "0")])
            return []

        return counted


def _kind(environ: dict[str, Any]) -> str:
    method, query = str(environ["REQUEST_METHOD"]), parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    if method == "GET" and ("list-type" in query or "prefix" in query):
        return "LIST"
    if method == "PUT" and "HTTP_X_AMZ_COPY_SOURCE" in environ:
        return "COPY"
    if method == "POST" and "delete" in query:
        return "DELETE"
    return method
