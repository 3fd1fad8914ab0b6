from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from kit.fakes.clock import Clock
from kit.spans import KeptTracer
from kit.waiting import PATIENCE_S
from pyspark_kafka._base.traces.steps import step
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema, SchemaId, UnknownSchemaError
from pyspark_kafka._typed.codecs.values import Reason
from pyspark_kafka._typed.registry.cached import CachedRegistry
from pyspark_kafka._typed.registry.failures import unreachable
from pyspark_kafka.errors import RegistryError


class MemoryRegistry:
    """A registry in memory that counts questions."""

    def __init__(self) -> None:
        self.schemas: dict[SchemaId, RegisteredSchema] = {}
        self.subjects: set[str] = set()
        self.asked: list[object] = []
        self.failure: Exception | None = None
        self.entered = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def schema_by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        self.asked.append(schema_id)
        found = self.schemas.get(schema_id)
        self.entered.set()
        self.may_answer.wait(PATIENCE_S)
        if self.failure is not None:
            raise self.failure
        if found is None:
            raise UnknownSchemaError("is not here")
        return found

    def knows(self, schema_id: SchemaId) -> bool:
        del schema_id
        return False

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        self.asked.append((subject, version))
        found = self.schemas[max(self.schemas)]
        self.entered.set()
        self.may_answer.wait(PATIENCE_S)
        return found

    def find_id(self, subject: str, schema: RegisteredSchema) -> SchemaId | None:
        self.asked.append(subject)
        return schema.schema_id if subject in self.subjects else None

    def incompatibilities(self, subject: str, schema: RegisteredSchema) -> list[str]:
        self.asked.append(subject)
        return [schema.kind] if subject in self.subjects else []

    def register(self, subject: str, schema: RegisteredSchema) -> SchemaId:
        self.asked.append(subject)
        self.schemas[2] = schema
        return 2


LONG = RegisteredSchema("AVRO", '"long"', schema_id=1)
SECOND = RegisteredSchema("AVRO", '"int"', schema_id=2)


@pytest.fixture
def registry() -> MemoryRegistry:
    found = MemoryRegistry()
    found.schemas[1] = LONG
    return found


def test_schema_is_asked_for_once(registry: MemoryRegistry) -> None:
    cached = CachedRegistry(registry)
    assert [cached.schema_by_id(1) for _ in range(3)] == [LONG] * 3
    assert registry.asked == [1]


def test_unknown_id_is_asked_for_again_after_some_seconds(registry: MemoryRegistry) -> None:
    clock = Clock()
    cached = CachedRegistry(registry, clock=clock, rng=lambda: 0.5)
    for _ in range(3):
        with pytest.raises(UnknownSchemaError, match=r"^is not here$") as caught:
            cached.schema_by_id(9)
        assert caught.value.reason is Reason.SCHEMA_ID_NOT_FOUND
    assert registry.asked == [9]
    clock.now += 9.9
    with pytest.raises(UnknownSchemaError):
        cached.schema_by_id(9)
    assert registry.asked == [9]
    registry.schemas[9] = LONG
    clock.now += 0.2
    assert cached.schema_by_id(9) is LONG


def test_ids_are_known_as_long_as_their_answer_is_remembered(registry: MemoryRegistry) -> None:
    clock = Clock()
    cached = CachedRegistry(registry, clock=clock, rng=lambda: 0.5)
    known = [cached.knows(1), cached.knows(9)]
    cached.schema_by_id(1)
    with pytest.raises(UnknownSchemaError):
        cached.schema_by_id(9)
    known += [cached.knows(1), cached.knows(9)]
    clock.now += 10.1
    assert [*known, cached.knows(1), cached.knows(9)] == [False, False, True, True, True, False]


@pytest.mark.parametrize(("chance", "lasts"), [(0.0, 5.0), (0.999, 14.9)])
def test_time_for_which_an_id_stays_unknown_is_by_chance(registry: MemoryRegistry, chance: float, lasts: float) -> None:
    clock = Clock()
    cached = CachedRegistry(registry, clock=clock, rng=lambda: chance)
    for advance in (0.0, lasts - 0.1, 0.2):
        clock.now += advance
        with pytest.raises(UnknownSchemaError):
            cached.schema_by_id(9)
    assert registry.asked == [9, 9]


def test_schema_of_a_subject_is_not_asked_for_by_its_id(registry: MemoryRegistry) -> None:
    cached = CachedRegistry(registry)
    registry.schemas[1] = replace(LONG, subject="orders-value", version=3)
    assert cached.schema_by_subject("orders-value").version == 3
    assert cached.schema_by_id(1) == LONG
    assert registry.asked == [("orders-value", None)]


def test_outage_is_not_remembered(registry: MemoryRegistry) -> None:
    cached = CachedRegistry(registry)
    registry.failure = unreachable("schema 1", "http://registry", "it is away")
    for _ in range(2):
        with pytest.raises(RegistryError, match="REGISTRY_UNREACHABLE"):
            cached.schema_by_id(1)
    registry.failure = None
    assert cached.schema_by_id(1) is LONG
    assert registry.asked == [1, 1, 1]


@pytest.mark.parametrize("fails", [False, True])
def test_threads_share_one_question(registry: MemoryRegistry, fails: bool) -> None:
    cached = CachedRegistry(registry)
    if fails:
        registry.failure = unreachable("schema 1", "http://registry", "it is away")
    registry.may_answer.clear()
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(cached.schema_by_id(1))
        except RegistryError as error:
            answers.append(error.condition)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    threads[0].start()
    assert registry.entered.wait(PATIENCE_S)
    for thread in threads[1:]:
        thread.start()
    registry.may_answer.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert answers == (["REGISTRY_UNREACHABLE"] if fails else [LONG]) * 4
    # Those that come after a failure ask again; while one is being asked, none does.
    assert len(registry.asked) == 1 or fails


class InterruptedLock:
    """A lock that meets an interrupt once, when it is taken for the second time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = 0

    def __enter__(self) -> None:
        self._taken += 1
        if self._taken == 2:
            raise KeyboardInterrupt
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_interrupted_request_releases_waiting_threads(
    registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt comes between the answer of the registry and its entry."""
    cached = CachedRegistry(registry)
    monkeypatch.setattr(cached, "_lock", InterruptedLock())
    with pytest.raises(KeyboardInterrupt):
        cached.schema_by_id(1)
    assert cached._asked == {}
    assert cached.schema_by_id(1) is LONG


def test_schemas_that_were_not_used_for_long_make_room(registry: MemoryRegistry) -> None:
    large = "x" * (20 << 20)
    for number in range(10, 14):
        registry.schemas[number] = RegisteredSchema("AVRO", "", (NamedSchema("a", large),), schema_id=number)
    cached = CachedRegistry(registry)
    for number in (10, 11, 12, 10, 13, 10, 11):
        cached.schema_by_id(number)
    assert registry.asked == [10, 11, 12, 13, 11]


def test_subject_is_asked_for_again_after_some_seconds_or_a_registration(registry: MemoryRegistry) -> None:
    clock = Clock()
    cached = CachedRegistry(registry, clock=clock)
    cached.schema_by_subject("orders-value")
    cached.schema_by_subject("orders-value")
    cached.schema_by_subject("orders-value", 1)
    assert registry.asked == [("orders-value", None), ("orders-value", 1)]
    clock.now += 5.1
    cached.schema_by_subject("orders-value")
    cached.register("orders-value", LONG)
    cached.schema_by_subject("orders-value")
    assert registry.asked[2:] == [("orders-value", None), "orders-value", ("orders-value", None)]


def test_registered_schema_is_no_longer_unknown(registry: MemoryRegistry) -> None:
    cached = CachedRegistry(registry)
    with pytest.raises(UnknownSchemaError):
        cached.schema_by_id(2)
    assert cached.register("orders-value", LONG) == 2
    assert cached.schema_by_id(2) is LONG


def test_answer_from_before_a_registration_is_not_kept_after_it(registry: MemoryRegistry) -> None:
    cached = CachedRegistry(registry)
    registry.may_answer.clear()
    found: list[RegisteredSchema] = []
    asking = threading.Thread(target=lambda: found.append(cached.schema_by_subject("orders-value")))
    asking.start()
    assert registry.entered.wait(PATIENCE_S)
    cached.register("orders-value", SECOND)
    registry.may_answer.set()
    asking.join(PATIENCE_S)
    assert found == [LONG]
    assert cached.schema_by_subject("orders-value") is SECOND


def test_id_that_is_registered_while_it_is_asked_for_is_not_unknown_after_it(registry: MemoryRegistry) -> None:
    cached = CachedRegistry(registry)
    registry.may_answer.clear()
    failures: list[str] = []

    def ask() -> None:
        with pytest.raises(UnknownSchemaError) as caught:
            cached.schema_by_id(2)
        failures.append(str(caught.value))

    asking = threading.Thread(target=ask)
    asking.start()
    assert registry.entered.wait(PATIENCE_S)
    cached.register("orders-value", SECOND)
    # A question from after the registration does not wait for the one from before.
    registry.entered.clear()
    found: list[RegisteredSchema] = []
    later = threading.Thread(target=lambda: found.append(cached.schema_by_id(2)))
    later.start()
    asked_again = registry.entered.wait(20)
    registry.may_answer.set()
    asking.join(PATIENCE_S)
    later.join(PATIENCE_S)
    assert asked_again
    assert failures == ["is not here"]
    assert found == [SECOND]
    assert cached.schema_by_id(2) is SECOND


def test_questions_of_writers_are_asked_each_time(registry: MemoryRegistry) -> None:
    cached = CachedRegistry(registry)
    for _ in range(2):
        assert cached.find_id("a", LONG) is None
        assert cached.incompatibilities("b", LONG) == []
    assert registry.asked == ["a", "b", "a", "b"]


def test_requests_of_a_step_are_its_children_and_what_is_known_is_none(registry: MemoryRegistry) -> None:
    cached, tracer = CachedRegistry(registry), KeptTracer()
    with step(tracer, "plan"):
        for _ in range(2):
            cached.schema_by_id(1)
            cached.schema_by_subject("orders-value")
        with pytest.raises(UnknownSchemaError):
            cached.schema_by_id(5)
    found = [(span.name, dict(span.attributes or {})) for span in tracer.spans[:-1]]
    assert found == [
        ("look up schema", {"pyspark_kafka.schema_id": "1"}),
        ("look up schema", {"pyspark_kafka.subject": "orders-value"}),
        ("look up schema", {"pyspark_kafka.schema_id": "5", "error.type": "UnknownSchemaError"}),
    ]
