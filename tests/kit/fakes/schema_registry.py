"""A schema registry that follows Confluent's API on loopback, and misbehaves when a test wants it to.

It has subjects, versions, references and compatibility with the paths, codes and texts of Confluent's server; that a
schema fits is what a test says (`forbid`), it is not worked out. `next_answers` scripts what comes next, `stop` and
`start` are an outage, and all requests are kept. `tests/contract/test_schema_registries.py` asks a real registry the
same questions.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pyspark_kafka.testing.secured.certificates import CertificateAuthority

_SHUTDOWN_POLL_S = 0.02
_HELD_S = 60.0
# A client that connects and says nothing is not waited for any longer.
_IDLE_S = 5.0
_MOMENT_S = 0.02


@dataclass(frozen=True)
class RegistryRequest:
    """What a client asked for.

    Attributes:
        method: of HTTP.
        path: without what stands behind a question mark.
        query: what stands there.
        headers: with lower-case names.
        body: None if there is none.
    """

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class RegistryAnswer:
    """An answer that a test wants.

    Attributes:
        status: of HTTP.
        body: bytes as they are; anything else becomes JSON; None: what the registry would say.
        headers: more of them, such as Location.
        held: whether nothing is sent until `release`.
        cut: whether the connection is closed after this many bytes of the body.
        piecewise: whether the answer comes byte by byte, each after a moment, until `release` or the client leaves.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    held: bool = False
    cut: int | None = None
    piecewise: bool = False


@dataclass(frozen=True)
class HeldSchema:
    """A schema of the registry, under its id."""

    schema_id: int
    guid: str
    kind: str
    text: str
    references: tuple[tuple[str, str, int], ...]
    rule_set: str

    def fields(self) -> dict[str, Any]:
        """Return what answers say of it: AVRO is not named, as by Confluent's."""
        names = ("name", "subject", "version")
        return {
            "schema": self.text,
            "guid": self.guid,
            **({} if self.kind == "AVRO" else {"schemaType": self.kind}),
            **({"references": [dict(zip(names, each, strict=True)) for each in self.references]}
               if self.references else {}),
            **({"ruleSet": json.loads(self.rule_set)} if self.rule_set else {}),
        }  # fmt: skip


class SchemaRegistryServer:
    """The server, on a free port of loopback; gone when the block ends.

    Example:
        >>> with SchemaRegistryServer() as registry:
        ...     registry.add("orders-value", '"long"')
        1
    """

    def __init__(
        self,
        *,
        users: dict[str, str] | None = None,
        token: str | None = None,
        authority: CertificateAuthority | None = None,
        asks_for_certificate: bool = False,
    ) -> None:
        """Describe it.

        Args:
            users: passwords by name; None: nobody logs in.
            token: a bearer token that is accepted; None: none is asked for.
            authority: issues the server's certificate; None: no TLS.
            asks_for_certificate: whether clients must have one of the same authority.
        """
        self._users = users
        self._token = token
        self._authority = authority
        self._asks_for_certificate = asks_for_certificate
        self._lock = threading.RLock()
        self._answers: list[RegistryAnswer] = []
        self._released = threading.Event()
        self._requests: list[RegistryRequest] = []
        self._schemas: dict[int, HeldSchema] = {}
        # By subject and version.
        self._versions: dict[str, dict[int, int]] = {}
        self._forbidden: dict[str, list[str]] = {}
        self._port = 0
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> SchemaRegistryServer:  # noqa: PYI034 - typing.Self needs Python 3.11
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self.stop()

    def start(self) -> None:
        """Listen; on the port of before, if it was stopped."""
        owner = self

        class Handler(_Handler):
            registry = owner

        class Server(ThreadingHTTPServer):
            # The end of the block waits for the threads of connections.
            daemon_threads = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Clients that hang up are what tests are about."""

        server = Server(("127.0.0.1", self._port), Handler)
        self._port = int(server.server_address[1])
        if self._authority is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._authority.write(self._authority.issue().pem, "registry.pem"))
            if self._asks_for_certificate:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(self._authority.file)
            # The handshake is made by the thread of the connection, not by the one that accepts.
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": _SHUTDOWN_POLL_S}, name="schema-registry"
        )
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections, until `start`. What it holds stays."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            self._thread.join()
            server.server_close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._port

    @property
    def url(self) -> str:
        """Its address."""
        return f"{'http' if self._authority is None else 'https'}://127.0.0.1:{self._port}"

    @property
    def requests(self) -> list[RegistryRequest]:
        """All requests, in order."""
        with self._lock:
            return list(self._requests)

    def count(self, path: str = "") -> int:
        """Return how many requests there were whose path begins like this."""
        return sum(each.path.startswith(path) for each in self.requests)

    def add(
        self,
        subject: str,
        text: str,
        kind: str = "AVRO",
        *,
        references: Sequence[tuple[str, str, int]] = (),
        rule_set: dict[str, Any] | None = None,
        schema_id: int | None = None,
    ) -> int:
        """Make a schema the next version of a subject, and return its id: that of an equal schema, if there is one.

        Args:
            subject: such as `orders-value`.
            text: of the schema.
            kind: AVRO, JSON or PROTOBUF.
            references: name, subject and version of each schema that it needs.
            rule_set: its rules, as JSON has them.
            schema_id: the id to have; None: the next one.
        """
        rules = json.dumps(rule_set) if rule_set else ""
        with self._lock:
            found = next((each for each in self._schemas.values() if _equal(each, kind, text, references, rules)), None)
            if found is None or schema_id not in (None, found.schema_id):
                number = schema_id or max(self._schemas, default=0) + 1
                guid = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number}"))
                found = HeldSchema(number, guid, kind, text, tuple(references), rules)
                self._schemas[number] = found
            versions = self._versions.setdefault(subject, {})
            if found.schema_id not in versions.values():
                versions[max(versions, default=0) + 1] = found.schema_id
            return found.schema_id

    def guid(self, schema_id: int) -> str:
        """Return the UUID of a schema, which stands in headers."""
        with self._lock:
            return self._schemas[schema_id].guid

    def versions(self, subject: str) -> list[int]:
        """Return the ids of the versions of a subject; the first one first."""
        with self._lock:
            return list(self._versions.get(subject, {}).values())

    def remove(self, subject: str) -> None:
        """Forget a subject and its schemas, as after a loss of the registry's own topic."""
        with self._lock:
            for schema_id in self._versions.pop(subject, {}).values():
                self._schemas.pop(schema_id, None)

    def forbid(self, subject: str, *messages: str) -> None:
        """Let no further schema fit a subject, with these reasons; without any: let each fit again."""
        with self._lock:
            self._forbidden[subject] = list(messages)

    def next_answers(self, answers: Iterable[RegistryAnswer]) -> None:
        """Answer the next requests like this, one each; replaces what was left."""
        with self._lock:
            self._answers = list(answers)
            self._released.clear()

    def release(self) -> None:
        """Send the answers that are held."""
        self._released.set()

    def _take(self, request: RegistryRequest) -> RegistryAnswer:
        with self._lock:
            self._requests.append(request)
            answer = self._answers.pop(0) if self._answers else RegistryAnswer()
        if answer.held:
            self._released.wait(_HELD_S)
        if answer.body is not None:
            return answer
        with self._lock:
            status, body = self._login(request) or self._respond(request)
        return RegistryAnswer(
            status if answer.status == 200 else answer.status, body, answer.headers, cut=answer.cut,
            piecewise=answer.piecewise,
        )  # fmt: skip

    def _login(self, request: RegistryRequest) -> tuple[int, Any] | None:
        kind, _, sent = request.headers.get("authorization", "").partition(" ")
        if self._token is not None and (kind, sent) != ("Bearer", self._token):
            return 401, {"error_code": 401, "message": "HTTP 401 Unauthorized"}
        if self._users is not None:
            user, _, password = base64.b64decode(sent).decode().partition(":") if kind == "Basic" else ("", "", "")
            if self._users.get(user) != password:
                return 401, {"error_code": 401, "message": "HTTP 401 Unauthorized"}
        return None

    def _respond(self, request: RegistryRequest) -> tuple[int, Any]:
        parts = [unquote(each) for each in request.path.strip("/").split("/")]
        match (request.method, *parts):
            case ("GET", "subjects"):
                return 200, sorted(self._versions)
            case ("GET", "config"):
                return 200, {"compatibilityLevel": "BACKWARD"}
            case ("GET", "schemas", "types"):
                return 200, ["JSON", "PROTOBUF", "AVRO"]
            case ("GET", "schemas", "ids", number) if number.isdigit():
                return self._schema(self._schemas.get(int(number)), f"Schema {number} not found")
            case ("GET", "schemas", "guids", guid):
                found = next((each for each in self._schemas.values() if each.guid == guid), None)
                return self._schema(found, f"Schema {guid} not found")
            case ("GET", "subjects", subject, "versions"):
                return (200, list(self._versions[subject])) if subject in self._versions else _no_subject(subject)
            case ("GET", "subjects", subject, "versions", version):
                return self._version(subject, version)
            case ("POST", "subjects", subject):
                return self._look_up(subject, request)
            case ("POST", "subjects", subject, "versions"):
                if self._forbidden.get(subject):
                    details = "; ".join(self._forbidden[subject])
                    said = f'Schema being registered is incompatible with an earlier schema for subject "{subject}"'
                    return 409, {"error_code": 409, "message": f"{said}, details: [{details}]"}
                kind, text, references = _sent(request.body)
                return 200, {"id": self.add(subject, text, kind, references=references)}
            case ("POST", "compatibility", "subjects", subject, "versions", *version):
                if version and subject not in self._versions:
                    return _no_subject(subject)
                messages = self._forbidden.get(subject, [])
                verbose = request.query.get("verbose", "").lower() == "true"
                return 200, {"is_compatible": not messages, **({"messages": messages} if verbose else {})}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _schema(self, found: HeldSchema | None, missing: str) -> tuple[int, Any]:
        if found is None:
            return 404, {"error_code": 40403, "message": missing}
        return 200, found.fields()

    def _version(self, subject: str, version: str) -> tuple[int, Any]:
        versions = self._versions.get(subject)
        if not versions:
            return _no_subject(subject)
        number = max(versions) if version in ("latest", "-1") else int(version) if version.isdigit() else 0
        if number not in versions:
            return 404, {"error_code": 40402, "message": f"Version {version} not found."}
        found = self._schemas[versions[number]]
        return 200, {
            "subject": subject,
            "version": number,
            "id": found.schema_id,
            **found.fields(),
        }

    def _look_up(self, subject: str, request: RegistryRequest) -> tuple[int, Any]:
        if subject not in self._versions:
            return _no_subject(subject)
        kind, text, references = _sent(request.body)
        for version, schema_id in self._versions[subject].items():
            found = self._schemas[schema_id]
            if _equal(found, kind, text, references, found.rule_set):
                return 200, {"subject": subject, "version": version, "id": schema_id, **found.fields()}
        return 404, {"error_code": 40403, "message": "Schema not found"}


def _no_subject(subject: str) -> tuple[int, Any]:
    return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}


def _sent(body: Any) -> tuple[str, str, list[tuple[str, str, int]]]:
    references = [(each["name"], each["subject"], each["version"]) for each in body.get("references") or ()]
    return body.get("schemaType") or "AVRO", body["schema"], references


def _equal(held: HeldSchema, kind: str, text: str, references: Sequence[tuple[str, str, int]], rule_set: str) -> bool:
    """Return whether a schema is the one that is held; spaces of JSON do not count."""
    if (held.kind, held.references, held.rule_set) != (kind, tuple(references), rule_set):
        return False
    return _canonical(held.text, kind) == _canonical(text, kind)


def _canonical(text: str, kind: str) -> str:
    if kind == "PROTOBUF":
        return re.sub(r"\s+", " ", text).strip()
    try:
        return json.dumps(json.loads(text))
    except ValueError:
        return text


class _Handler(BaseHTTPRequestHandler):
    registry: SchemaRegistryServer
    timeout = _IDLE_S

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name of the base class
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def _answer(self, method: str) -> None:
        parts = urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = RegistryRequest(
            method,
            parts.path,
            {name: values[0] for name, values in parse_qs(parts.query).items()},
            {name.lower(): value for name, value in self.headers.items()},
            json.loads(content) if content else None,
        )
        self._send(self.registry._take(request))

    def _send(self, answer: RegistryAnswer) -> None:
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if answer.piecewise:
            for place in range(len(body)):
                self.wfile.write(body[place : place + 1])
                if self.registry._released.wait(_MOMENT_S):
                    return
            return
        self.wfile.write(body[: answer.cut])
