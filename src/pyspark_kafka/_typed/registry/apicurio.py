"""Apicurio Registry with its own API, at /apis/registry/v2 or v3: ids are its global ids.

Its serializers write ids of two kinds. A content id belongs to a text; /apis/ccompat/v7 has these (`confluent.py`).
A global id belongs to a version of an artifact: what the serializers of version 2 write, and all that write 8 bytes
unless they are configured otherwise. The two are different numbers, and nothing in a value says which it is: the
address that the user has set does.

Subjects, which are artifacts of the group `default`, are asked for at /apis/ccompat/v7 of the same server.

Source: Apicurio Registry's REST API; version 2.6.13 and 3.3.3 were asked.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, SchemaRegistry, UnknownSchemaError
from pyspark_kafka._typed.registry.answers import FoundSchema, SchemaPlace, check_kind, check_number, check_size
from pyspark_kafka._typed.registry.clients import rest_of
from pyspark_kafka._typed.registry.confluent import ConfluentRegistry
from pyspark_kafka._typed.registry.failures import answer_invalid, shown_url
from pyspark_kafka._typed.registry.inquiry import SCHEMA_UNKNOWN, Inquiry, RegistryAccess
from pyspark_kafka._typed.registry.references import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._client.options import RegistryOptions
    from pyspark_kafka._typed.codecs.schemas import SchemaId, SchemaKind

_CORE = re.compile(r"/apis/registry/v([23])$")
_COMPATIBLE = "/apis/ccompat/v7"
# What its errors are called if a thing is not there; a wrong path has another name, or none.
_NOT_THERE = frozenset({"ArtifactNotFoundException", "ContentNotFoundException", "VersionNotFoundException"})


class ApicurioError(Exception):
    """An answer with another status than 200."""

    def __init__(self, http_status_code: int, error_code: int | None, error_message: str) -> None:
        """Keep what `Inquiry` looks at in errors of confluent-kafka's client."""
        super().__init__(error_message)
        self.http_status_code = http_status_code
        self.error_code = error_code
        self.error_message = error_message


def has_core_address(options: RegistryOptions) -> bool:
    """Return whether the addresses belong to Apicurio's own API."""
    return any(_CORE.search(url) for url in options.urls)


class ApicurioRegistry(SchemaRegistry):
    """Asks Apicurio's own API; see `codecs.schemas.SchemaRegistry`. All its ids are global ids.

    Runs on: driver and executor; each method blocks, for a question `timeout_ms` at most. Safe to use from threads.

    Args:
        options: addresses that end with /apis/registry/v2 or v3, how to log in, and the time for a question.
    """

    def __init__(self, options: RegistryOptions) -> None:
        self._access = RegistryAccess(options)
        self._compatible = ConfluentRegistry(
            replace(options, urls=tuple(_CORE.sub(_COMPATIBLE, url) for url in options.urls))
        )

    def schema_by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return the schema with a global id."""
        question = f"schema {schema_id}"
        path = f"ids/globalIds/{quote(str(schema_id), safe='')}"
        with Inquiry(self._access) as inquiry:
            if isinstance(schema_id, str):
                raise UnknownSchemaError(f"is not in the schema registry {inquiry.where}, whose ids are numbers")
            text, content_type = inquiry.ask(question, _get_text(path))
            # Version 2 finds the latest versions only.
            found = inquiry.ask(question, _get_kind(schema_id)) or guess_kind(text, content_type)
            kind = check_kind(found, question, inquiry.where)
            check_size(len(text), question, inquiry.where)
            places = self._places(inquiry, question, f"{path}/references")

            def find(place: SchemaPlace) -> FoundSchema:
                asked = f"{question}, which refers to version {place.version} of artifact '{place.subject}'"
                content = "" if _version_of(inquiry.url) == 2 else "/content"
                group, _, artifact = place.subject.rpartition("/")
                of_place = f"groups/{quote(group or 'default', safe='')}/artifacts/{quote(artifact, safe='')}/versions/"
                of_place += quote(str(place.version), safe="")
                try:
                    needed, _ = inquiry.ask(asked, _get_text(of_place + content))
                    return FoundSchema(kind, needed, self._places(inquiry, asked, f"{of_place}/references"))
                except UnknownSchemaError as error:
                    raise answer_invalid(asked, inquiry.where, f"that {error}", hint="Register it again.") from error

            references = resolve(FoundSchema(kind, text, places), find, question, inquiry.where)
            return RegisteredSchema(kind, text, references, schema_id)

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        """Return a version of a subject, with its global id; None: the latest."""
        found = self._compatible.schema_by_subject(subject, version)
        return replace(found, schema_id=self._global_id(subject, found.version))

    def find_id(self, subject: str, schema: RegisteredSchema) -> SchemaId | None:
        """Return the global id that a schema has in a subject; None if the subject does not have it, or is none."""
        found = self._compatible.find_version(subject, schema)
        return None if found is None else self._global_id(subject, found.version)

    def incompatibilities(self, subject: str, schema: RegisteredSchema) -> list[str]:
        """Return why a schema may not become the subject's next version; nothing if it may, or it is the first."""
        return self._compatible.incompatibilities(subject, schema)

    def register(self, subject: str, schema: RegisteredSchema) -> SchemaId:
        """Make a schema the subject's next version, and return its global id."""
        self._compatible.register(subject, schema)
        found = self.find_id(subject, schema)
        if found is None:
            question = f"a new version of subject '{subject}'"
            where = ", ".join(map(shown_url, self._access.options.urls))
            raise answer_invalid(question, where, "it has registered the schema, and does not have it", hint="")
        return found

    def _global_id(self, subject: str, version: int | None) -> int:
        question = f"the global id of subject '{subject}', version {version}"
        path = f"groups/default/artifacts/{quote(subject, safe='')}/versions/{version}"
        with Inquiry(self._access) as inquiry:
            answer = inquiry.ask(question, _get_json(lambda url: path + ("/meta" if _version_of(url) == 2 else "")))
            return check_number(_field(answer, "globalId"), "global id", question, inquiry.where)

    def _places(self, inquiry: Inquiry, question: str, path: str) -> tuple[SchemaPlace, ...]:
        """Return what a schema refers to; the subject of a place is the artifact, behind its group and a slash."""
        answer = inquiry.ask(question, _get_json(lambda _: path))
        if not isinstance(answer, list):
            raise answer_invalid(question, inquiry.where, "its references are not list")
        places = []
        for each in answer:
            group, artifact, version, name = (_field(each, key) for key in ("groupId", "artifactId", "version", "name"))
            if not (isinstance(name, str) and isinstance(artifact, str) and isinstance(version, str)):
                raise answer_invalid(question, inquiry.where, "a reference of its schema has no name or artifact")
            places.append(SchemaPlace(name, f"{group or 'default'}/{artifact}", version))
        return tuple(places)


def _version_of(url: str) -> int:
    """Return the version of the API at an address."""
    found = _CORE.search(url)
    return int(found[1]) if found else 3


def _field(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _get_kind(schema_id: SchemaId) -> Callable[[Any, str], object]:
    """Return the request for the language of a schema, which the answer with its text does not name."""

    def request(client: Any, url: str) -> object:
        things, name = ("artifacts", "type") if _version_of(url) == 2 else ("versions", "artifactType")
        answer = _get(client, f"search/{things}?globalId={quote(str(schema_id), safe='')}").json()
        listed = _field(answer, things)
        return _field(listed[0], name) if isinstance(listed, list) and listed else None

    return request


def guess_kind(text: str, content_type: str) -> SchemaKind | None:
    """Return the language of a text that is of one of them; None if it may be of several. Pure.

    Example:
        >>> guess_kind('{"type": "record", "name": "A", "fields": []}', "application/json")
        'AVRO'
    """
    if content_type.startswith("application/x-protobuf"):
        return "PROTOBUF"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if _field(found, "type") in ("record", "error", "enum", "fixed", "map"):
        return "AVRO"
    return "JSON" if _field(found, "$schema") or _field(found, "type") == "object" else None


def _get_text(path: str) -> Callable[[Any, str], tuple[str, str]]:
    def request(client: Any, _: str) -> tuple[str, str]:
        answer = _get(client, path)
        return str(answer.content, "utf-8"), answer.headers.get("Content-Type", "")

    return request


def _get_json(path: Callable[[str], str]) -> Callable[[Any, str], object]:
    return lambda client, url: _get(client, path(url)).json()


def _get(client: Any, path: str) -> Any:
    """Return the answer to a request, with a status of success.

    Raises:
        ApicurioError: another status.
    """
    rest = rest_of(client)
    answer = rest.session.get(f"{rest.base_urls[0]}/{path}", headers={"Accept": "*/*"})
    if answer.status_code == 200:
        return answer
    try:
        said = answer.json()
    except (ValueError, RecursionError):
        said = {}
    code = _field(said, "error_code")
    if answer.status_code == 404 and _field(said, "name") in _NOT_THERE:
        code = SCHEMA_UNKNOWN
    raise ApicurioError(answer.status_code, code, str(_field(said, "message") or _field(said, "title") or ""))
