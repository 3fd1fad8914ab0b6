"""SQL that holds names and texts of users, and the check of a DataFrame's columns. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark_kafka.errors import OptionError, SchemaError, listed

HEADERS_TYPE = "array<struct<key:string,value:binary>>"
NO_HEADERS = f"CAST(array() AS {HEADERS_TYPE})"


def quoted(name: str) -> str:
    """Return a column's name as SQL has it.

    Example:
        >>> quoted("a`b")
        '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """Return a text as SQL has it, whatever it holds and however the session reads escapes.

    Example:
        >>> text("it's")
        "CAST(X'69742773' AS STRING)"
    """
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


def is_topic(value: str) -> str:
    """Return SQL for whether SQL for a text is the name of a topic; null if the text is.

    Source: Kafka `Topic.validate`.
    """
    # No `$`, which would let a line end pass.
    return f"(regexp_extract({value}, '[a-zA-Z0-9._-]{{1,249}}', 0) = {value} AND {value} NOT IN ('', '.', '..'))"


def check_topic(value: object, name: str) -> None:
    """Check an argument that names a topic.

    Raises:
        OptionError: it is empty, or no text, or has half of a surrogate pair, which is not a character.
    """
    if not isinstance(value, str) or not value or any("\ud800" <= each <= "\udfff" for each in value):
        raise OptionError(
            f"Argument '{name}' is {value!r}, and must be the name of a topic. Nothing was read or written.",
            condition="OPTION_INVALID",
            hint=f'Name the topic: {name}="orders.dead".',
        )


def check_columns(types: Mapping[str, str], needed: Mapping[str, Sequence[str]], purpose: str, hint: str) -> None:
    """Check that there are columns, of certain types.

    Args:
        types: the columns that there are, each with its type as Spark writes it.
        needed: the columns, each with the types that it may have; no types: any.
        purpose: what needs the columns, as the beginning of a sentence.
        hint: what to do.

    Raises:
        SchemaError: columns are missing, or have other types; all are named.
    """
    problems = [
        f"column '{name}' is missing"
        if name not in types
        else f"column '{name}' is {types[name]} and must be {' or '.join(expected)}"
        for name, expected in needed.items()
        if name not in types or (expected and types[name] not in expected)
    ]
    if problems:
        found = listed([f"{name} {found}" for name, found in types.items()], noun="columns") or "none"
        raise SchemaError(
            f"{purpose} needs other columns: {'; '.join(problems)}. Its columns: {found}. Nothing was read or written.",
            condition="SCHEMA_MISMATCH.DEAD_LETTERS",
            hint=hint,
        )


def column_types(schema: Any) -> dict[str, str]:
    """Return the columns of a schema, or the fields of a struct, with their types as Spark writes them."""
    return {field.name: field.dataType.simpleString() for field in getattr(schema, "fields", ())}
