"""A cache of a registry's schemas.

A schema never changes under its id: found schemas stay, as far as there is room. A missing schema may appear later, so
its absence is cached for some seconds only: invented ids cause no flood of requests.
"""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

from cachetools import LRUCache, TLRUCache, TTLCache

from pyspark_kafka._base.traces.steps import looking_up
from pyspark_kafka._typed.codecs.schemas import UnknownSchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, SchemaId, SchemaRegistry

# Bytes of texts; a process sees few schemas, and one may have 4 MiB.
_MAX_TEXT = 64 << 20
_MAX_UNKNOWN = 10_000
_UNKNOWN_S = 10.0
_MAX_SUBJECTS = 100
# The planning of a query sends several requests; the next query is to see a new version.
_SUBJECT_S = 5.0


class CachedRegistry:
    """A registry that requests each schema of another registry once; see `codecs.schemas.SchemaRegistry`.

    - The schema of an id is kept for the life of the process; the least used one is removed if the cache is full.
    - An unknown id is kept for a random 5 to 15 s, so that tasks do not all repeat their requests together.
    - The schema of a subject is kept for 5 s, and under its id as any other.
    - Threads that need the same id at the same time wait for one request.
    - Failures are not kept: the next request is sent, at the pace of the registry below.

    Runs on: driver and executor; each method blocks as the registry below does. Safe to use from threads.

    Args:
        registry: the other registry.
        clock: monotonic seconds; tests pass their own.
        rng: uniform numbers in [0, 1); tests pass their own.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        *,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._registry = registry
        self._lock = threading.Lock()
        self._known: LRUCache[SchemaId, RegisteredSchema] = LRUCache(_MAX_TEXT, getsizeof=_size)
        self._unknown: TLRUCache[SchemaId, UnknownSchemaError] = TLRUCache(
            _MAX_UNKNOWN, ttu=lambda _id, _error, now: now + _UNKNOWN_S * (0.5 + rng()), timer=clock
        )
        self._subjects: TTLCache[tuple[str, int | None], RegisteredSchema] = TTLCache(
            _MAX_SUBJECTS, _SUBJECT_S, timer=clock
        )
        self._asked: dict[SchemaId, Future[RegisteredSchema]] = {}
        # The number of registrations: a response from before one may be old after it.
        self._registrations = 0

    def schema_by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return the schema with an id; a request is sent if this process has not seen it."""
        question: Future[RegisteredSchema] = Future()
        try:
            return self._find(schema_id, question)
        except BaseException as error:
            # Also after an interrupt between two steps: others may wait for the result.
            with self._lock:
                self._end_question(schema_id, question)
            if not question.done():
                question.set_exception(error)
            raise

    def _find(self, schema_id: SchemaId, question: Future[RegisteredSchema]) -> RegisteredSchema:
        """Return the known schema of an id, or the result of another thread's request; else send the request."""
        with self._lock:
            known = self._known.get(schema_id)
            if known is not None:
                return known
            unknown = self._unknown.get(schema_id)
            if unknown is not None:
                raise UnknownSchemaError(str(unknown), unknown.reason)
            asked = self._asked.setdefault(schema_id, question)
            registrations = self._registrations
        if asked is not question:
            return asked.result()
        try:
            with looking_up("look up schema", schema_id=str(schema_id)):
                found = self._registry.schema_by_id(schema_id)
        except UnknownSchemaError as error:
            with self._lock:
                if registrations == self._registrations:
                    self._unknown[schema_id] = error
            raise
        with self._lock:
            self._end_question(schema_id, question)
            self._known[schema_id] = found
        question.set_result(found)
        return found

    def knows(self, schema_id: SchemaId) -> bool:
        """Return whether the schema of an id is remembered, or that there is none."""
        with self._lock:
            return schema_id in self._known or schema_id in self._unknown

    def _end_question(self, schema_id: SchemaId, asked: Future[RegisteredSchema]) -> None:
        # A registration may have made room for a newer question.
        if self._asked.get(schema_id) is asked:
            del self._asked[schema_id]

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        """Return a version of a subject, at most 5 s old."""
        key = (subject, version)
        with self._lock:
            known = self._subjects.get(key)
            registrations = self._registrations
        if known is None:
            with looking_up("look up schema", subject=subject):
                known = self._registry.schema_by_subject(subject, version)
            with self._lock:
                if registrations == self._registrations:
                    self._subjects[key] = known
                if known.schema_id is not None:
                    # Values will need it, and it does not change.
                    self._known[known.schema_id] = replace(known, subject=None, version=None)
                    self._unknown.pop(known.schema_id, None)
        return known

    def find_id(self, subject: str, schema: RegisteredSchema) -> SchemaId | None:
        """Return the id that a schema has in a subject; not cached."""
        return self._registry.find_id(subject, schema)

    def incompatibilities(self, subject: str, schema: RegisteredSchema) -> list[str]:
        """Return the reason why a schema may not become the next version; not cached."""
        return self._registry.incompatibilities(subject, schema)

    def register(self, subject: str, schema: RegisteredSchema) -> SchemaId:
        """Make a schema the next version, and forget what was known of subjects."""
        try:
            schema_id = self._registry.register(subject, schema)
        finally:
            with self._lock:
                # It may have been registered although the response was lost.
                self._subjects.clear()
                self._registrations += 1
        with self._lock:
            self._unknown.pop(schema_id, None)
            # Later calls do not wait for an earlier request.
            self._asked.pop(schema_id, None)
        return schema_id


def _size(schema: RegisteredSchema) -> int:
    return len(schema.text) + sum(len(each.text) for each in schema.references) + 1
