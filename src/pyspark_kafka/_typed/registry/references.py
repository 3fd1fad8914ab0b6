"""The schemas that a schema needs, directly and indirectly, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._typed.codecs.schemas import NamedSchema
from pyspark_kafka._typed.registry.answers import check_size
from pyspark_kafka._typed.registry.failures import answer_invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._typed.registry.answers import FoundSchema, SchemaPlace

# Each is a request, and who registers schemas decides how many there are.
MAX_REFERENCES = 200
MAX_DEPTH = 20


def resolve(
    schema: FoundSchema, find: Callable[[SchemaPlace], FoundSchema], question: str, where: str
) -> tuple[NamedSchema, ...]:
    """Return the schemas that a schema needs, each after the schemas that it needs itself.

    Runs on: driver and executor; blocks as `find` does, which is called once for each place.

    Args:
        schema: the schema that needs them.
        find: returns the schema at a place.
        question: the object of the request, for errors.
        where: the registry.

    Raises:
        RegistryError: there are more than 200, one needs itself, they go deeper than 20, or are too large.
    """
    found: dict[str, NamedSchema] = {}
    size = len(schema.text)

    def add_needed(references: tuple[SchemaPlace, ...], path: tuple[str, ...]) -> None:
        nonlocal size
        for each in references:
            if each.name in path:
                raise answer_invalid(question, where, f"its schema refers to {each.name!r}, which refers to itself")
            if each.name in found:
                continue
            if len(path) >= MAX_DEPTH or len(found) + len(path) >= MAX_REFERENCES:
                raise answer_invalid(
                    question,
                    where,
                    f"its schema refers to more than {MAX_REFERENCES} others, or deeper than {MAX_DEPTH}",
                    hint="Put the schemas together.",
                )
            needed = find(each)
            size += len(needed.text)
            check_size(size, question, where)
            add_needed(needed.references, (*path, each.name))
            found[each.name] = NamedSchema(each.name, needed.text)

    add_needed(schema.references, ())
    return tuple(found.values())
