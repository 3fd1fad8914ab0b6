from __future__ import annotations

import pytest

from pyspark_kafka._typed.codecs.schemas import NamedSchema
from pyspark_kafka._typed.registry.answers import FoundSchema, SchemaPlace
from pyspark_kafka._typed.registry.references import MAX_DEPTH, MAX_REFERENCES, resolve
from pyspark_kafka.errors import RegistryError


def schema(text: str, *needs: str) -> FoundSchema:
    return FoundSchema("AVRO", text, tuple(SchemaPlace(name, name, 1) for name in needs))


def resolved(first: FoundSchema, others: dict[str, FoundSchema]) -> tuple[list[NamedSchema], list[str]]:
    asked: list[str] = []

    def find(place: SchemaPlace) -> FoundSchema:
        asked.append(place.subject)
        return others[place.subject]

    return list(resolve(first, find, "schema 1", "http://registry")), asked


def test_schemas_stand_after_those_that_they_need() -> None:
    others = {"b": schema("B", "d", "c"), "c": schema("C", "d"), "d": schema("D")}
    found, asked = resolved(schema("A", "b", "c"), others)
    assert found == [NamedSchema("d", "D"), NamedSchema("c", "C"), NamedSchema("b", "B")]
    assert asked == ["b", "d", "c"]


def refusal(first: FoundSchema, others: dict[str, FoundSchema]) -> str:
    with pytest.raises(RegistryError) as caught:
        resolved(first, others)
    assert caught.value.condition == "REGISTRY_ANSWER_INVALID"
    return caught.value.message


def test_schema_that_needs_itself_is_refused() -> None:
    assert "refers to 'b', which refers to itself" in refusal(
        schema("A", "b"), {"b": schema("B", "c"), "c": schema("C", "b")}
    )


def test_references_are_bounded() -> None:
    chain = {f"s{at}": schema("S", f"s{at + 1}") for at in range(MAX_DEPTH + 1)}
    assert "deeper than 20" in refusal(schema("A", "s0"), chain)
    wide = {f"w{at}": schema("W") for at in range(MAX_REFERENCES + 1)}
    assert "more than 200 others" in refusal(schema("A", *wide), wide)
    assert len(resolved(schema("A", *list(wide)[:MAX_REFERENCES]), wide)[0]) == MAX_REFERENCES
    large = {f"l{at}": schema("L" * (1 << 20)) for at in range(5)}
    assert "more than 4194304 bytes" in refusal(schema("A", *large), large)
