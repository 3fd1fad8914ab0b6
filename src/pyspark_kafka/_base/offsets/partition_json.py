"""Read JSON of values by topic and partition number, `{"topic": {"0": value}}`, strictly. Pure."""

from __future__ import annotations

import json
from typing import Any, TypeGuard

from pyspark_kafka._base.model import TopicPartition

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

# Longest piece of user text that an error repeats.
_SHOWN = 200


def walk_partitions(nested: object, values: str = "offsets") -> list[tuple[TopicPartition, Any]]:
    """Flatten `{"topic": {"0": value}}`, checking every name and number on the way."""
    if not isinstance(nested, dict):
        raise ValueError("the outermost JSON value must be an object")  # noqa: TRY004 - a value, not a type, for users
    found: list[tuple[TopicPartition, Any]] = []
    for topic, by_partition in nested.items():
        check_topic(topic)
        if not isinstance(by_partition, dict):
            raise ValueError(f"topic '{topic}' must have an object of partition numbers and {values}")  # noqa: TRY004
        found.extend((TopicPartition(topic, _partition_number(topic, key)), by_partition[key]) for key in by_partition)
    return found


def check_topic(topic: object) -> None:
    """Raise ValueError if a key of the JSON is not a topic name."""
    if not isinstance(topic, str) or not topic:
        raise ValueError(f"{shorten(topic)} is not a topic name")


def _partition_number(topic: str, key: object) -> int:
    # One spelling a number: "01" or "+1" beside "1" would name a partition twice.
    if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) <= 10:
        number = int(key)
        if str(number) == key and number <= INT32_MAX:
            return number
    raise ValueError(f"topic '{topic}' has {shorten(key)} as a partition number")


def is_int(value: object) -> TypeGuard[int]:
    """Return whether a value of the JSON is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def load_json(text: str) -> object:
    """Parse JSON; raise ValueError on duplicate names, numbers beyond 64 bits, NaN and deep nesting."""
    try:
        return json.loads(
            text, object_pairs_hook=_without_duplicates, parse_int=_bounded_int, parse_constant=_no_constant
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error.msg} at character {error.pos})") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            if isinstance(value, str) != isinstance(members[key], str):
                raise ValueError(f"{shorten(key)} has both a topic-level offset and offsets by partition")
            raise ValueError(f"{shorten(key)} stands in it twice")
        members[key] = value
    return members


def _bounded_int(digits: str) -> int:
    # No 64-bit number is longer; Python's own limit on digits would have another error text in each version.
    if len(digits) > 20:
        raise ValueError("a number in it does not fit in 64 bits")
    return int(digits)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number of JSON")


def shorten(value: object) -> str:
    """Quote a value for an error, cut if it is long."""
    text = value if isinstance(value, str) else repr(value)
    return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}…' ({len(text)} characters)"
