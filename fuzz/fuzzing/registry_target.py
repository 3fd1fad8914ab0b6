"""The targets of what comes from schema registries: their answers, and the text of a `.proto` file."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fuzzing.draw import Draw
from fuzzing.oracles import outcome_of, require
from pyspark_kafka._client.options import RegistryOptions, Secret
from pyspark_kafka._typed.codecs.protobuf.by_schema import read_message
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema, UnknownSchemaError
from pyspark_kafka._typed.registry import clients
from pyspark_kafka._typed.registry.confluent import ConfluentRegistry
from pyspark_kafka._typed.registry.glue import GlueRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka._typed.codecs.schemas import SchemaRegistry
    from pyspark_kafka.records._variant import Kernel

# In no answer that a mutation makes by chance.
PLANTED = "Pl4nted-S3cret-of-the-fuzzer"
KINDS = ("confluent", "glue")
QUESTIONS = ("schema_by_id", "guid", "latest", "version", "find_id", "incompatibilities", "register")
STATUSES = (200, 404, 401, 403, 409, 422, 301, 204, 418)
_LONGEST_ERROR = 3_000
_MOST_ANSWERS = 30
_SCHEMA = RegisteredSchema("AVRO", '"long"')
_URL = "http://registry.invalid"
_CLIENTS: dict[str, Any] = {}


class _Answers:
    """The answers that an input has, one after the other; the last one again and again."""

    def __init__(self, draw: Draw) -> None:
        self._all: list[tuple[int, bytes]] = []
        while not self._all or (not draw.spent and len(self._all) < _MOST_ANSWERS):
            status = draw.pick(STATUSES)
            self._all.append((status, draw.taken(draw.number(2))))
        self.asked = 0

    def next(self) -> tuple[int, bytes]:
        found = self._all[min(self.asked, len(self._all) - 1)]
        self.asked += 1
        # More than this asks nobody: references have a bound.
        require(self.asked < 500, "the registry is asked again and again")
        return found


class _Glue:
    """boto3's client of Glue, which answers every operation with the JSON of an input."""

    def __init__(self, answers: _Answers) -> None:
        self._answers = answers

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(**_: Any) -> Any:
            status, body = self._answers.next()
            try:
                answer = json.loads(body)
            except (ValueError, RecursionError):
                answer = {}
            if status == 200:
                # As botocore reads it: the service says of each field whether it is text.
                return answer if isinstance(answer, dict) else {}
            error = RuntimeError("refused")
            error.response = {  # type: ignore[attr-defined]
                "Error": answer if isinstance(answer, dict) else {},
                "ResponseMetadata": {"HTTPStatusCode": status},
            }
            raise error

        return ask


def _client(url: str, answers: _Answers) -> Any:
    """Return a client without sockets: to build one takes longer than to ask it."""
    if url not in _CLIENTS:
        _CLIENTS[url] = clients._open_client(url, RegistryOptions(urls=(url,), basic_auth=Secret(f"me:{PLANTED}")))  # noqa: SLF001 - a part of it
    session = clients.rest_of(_CLIENTS[url]).session
    library = sys.modules[type(session).__module__.partition(".")[0]]

    def answer(_: Any) -> Any:
        status, body = answers.next()
        return library.Response(status, content=body)

    session._transport = library.MockTransport(answer)  # noqa: SLF001 - instead of sockets
    session._mounts = {}  # noqa: SLF001
    session.close = lambda: None
    _CLIENTS[url].clear_caches()
    return _CLIENTS[url]


def _registry(kind: str, answers: _Answers) -> SchemaRegistry:
    if kind == "glue":
        return GlueRegistry(RegistryOptions(region="eu-west-1", timeout_ms=50), _Glue(answers))
    made = ConfluentRegistry(RegistryOptions(urls=(_URL,), basic_auth=Secret(f"me:{PLANTED}"), timeout_ms=200))
    made._access.clients.take_client = lambda url: (time.monotonic(), _client(url, answers))  # type: ignore[method-assign] # noqa: SLF001
    return made


def registry_answer(data: bytes, _variants: Sequence[Kernel]) -> None:
    """Ask a registry that answers as the input says: it is a schema, an id, a word, or an error that says why not."""
    draw = Draw(data)
    kind, question = draw.pick(KINDS), draw.pick(QUESTIONS)
    answers = _Answers(draw)
    registry = _registry(kind, answers)
    calls: dict[str, Callable[[], object]] = {
        "schema_by_id": lambda: registry.schema_by_id(7),
        "guid": lambda: registry.schema_by_id("00000000-0000-0000-0000-000000000001"),
        "latest": lambda: registry.schema_by_subject("s-value"),
        "version": lambda: registry.schema_by_subject("s-value", 2),
        "find_id": lambda: registry.find_id("s-value", _SCHEMA),
        "incompatibilities": lambda: registry.incompatibilities("s-value", _SCHEMA),
        "register": lambda: registry.register("s-value", _SCHEMA),
    }
    try:
        found = outcome_of(calls[question])
    except UnknownSchemaError as error:
        # What a record is bad for: its text goes into a row.
        require(len(str(error)) < 500, "the word of the registry is long")
        return
    if found.error is not None:
        text = str(found.error)
        require(len(text) < _LONGEST_ERROR, "the error is long")
        require(PLANTED not in f"{text} {found.error.parameters}", "the password is shown")
        return
    value = found.value
    if question in ("schema_by_id", "guid", "latest", "version"):
        require(isinstance(value, RegisteredSchema), "there is no schema")
        assert isinstance(value, RegisteredSchema)  # noqa: S101 - for mypy
        require(isinstance(value.text, str) and value.kind in ("AVRO", "JSON", "PROTOBUF"), "the schema is none")
        require(all(isinstance(each, NamedSchema) for each in value.references), "a reference is none")
        require(isinstance(value.schema_id, (int, str)), "there is no id")
        require(question in ("schema_by_id", "guid") or isinstance(value.version, int), "there is no version")
    elif question == "incompatibilities":
        require(isinstance(value, list) and all(isinstance(each, str) for each in value), "the faults are not texts")
        assert isinstance(value, list)  # noqa: S101 - for mypy
        require(sum(map(len, value)) < 10_000, "the faults are long")
    else:
        is_id = isinstance(value, (int, str)) and not isinstance(value, bool)
        require(is_id or (value is None and question == "find_id"), "there is no id")


def proto_text(data: bytes, _variants: Sequence[Kernel]) -> None:
    """Read a `.proto` file, with another that it may import: it is the type of a column, or a short error."""
    draw = Draw(data)
    named = draw.taken(draw.number(1) % 32).decode("utf-8", "replace")
    other = draw.taken(draw.number(2)).decode("utf-8", "replace")
    text = draw.rest().decode("utf-8", "replace")
    references = (NamedSchema(named, other),) if named else ()
    found = outcome_of(
        lambda: ProtobufDecoder(read_message(RegisteredSchema("PROTOBUF", text, references), None)).arrow_type
    )
    if found.error is not None:
        require(len(str(found.error)) < _LONGEST_ERROR, "the error is long")
        # The machine is not at fault: what was given is.
        require(found.error.condition == "SCHEMA_INVALID", f"the error is another one: {found.error}")
        return
    require(isinstance(found.value, pa.DataType), "there is no type")
    pa.nulls(1, found.value).validate(full=True)
