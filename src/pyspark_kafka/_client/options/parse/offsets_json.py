"""The JSON of `startingOffsets`, `startingOffsetsByTimestamp`, `assign` and their siblings.

The numbers -1 (latest) and -2 (earliest) exist only here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Earliest, Latest, PartitionEdge, SpecificOffsets
from pyspark_kafka._base.offsets.partition_json import (
    INT32_MAX,
    INT64_MAX,
    check_topic,
    is_int,
    load_json,
    shorten,
    walk_partitions,
)
from pyspark_kafka._client.options.parse.times import Moment, moment_of_json

T = TypeVar("T")

_LATEST_NUMBER = -1
_EARLIEST_NUMBER = -2
_WORDS: dict[str, Earliest | Latest] = {"earliest": Earliest(), "latest": Latest()}
_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2},"topicC":"earliest"}'
_ASSIGN_EXAMPLE = '{"topicA":[0,1],"topicB":[2,4]}'
_TIMESTAMP_EXAMPLE = '{"topicA":{"0":1767225600000,"1":"2026-01-01T00:00:00Z"},"topicB":{"0":"2 hours ago"}}'


def offsets(raw: str) -> Earliest | Latest | SpecificOffsets:
    """Read `earliest`, `latest`, or the JSON that `parse_specific_offsets` reads."""
    word = raw.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    if raw.lstrip()[:1] not in ("{", "[", '"'):
        raise ValueError(f"must be earliest, latest or JSON of offsets by partition; got {shorten(raw)}")
    try:
        return parse_specific_offsets(raw)
    except ValueError as error:
        raise ValueError(f"must be earliest, latest or JSON of offsets by partition: {error}") from error


def timestamps(raw: str) -> dict[TopicPartition, Moment]:
    """Read the JSON of a time for each partition."""
    try:
        return parse_timestamps(raw, moment_of_json)
    except ValueError as error:
        raise ValueError(f"must be JSON of times by partition: {error}") from error


def assignment(raw: str) -> tuple[TopicPartition, ...]:
    """Read the JSON of `assign`, as sorted partitions."""
    try:
        return parse_assignment(raw)
    except ValueError as error:
        raise ValueError(f"must be JSON of partitions by topic: {error}") from error


def parse_specific_offsets(text: str) -> SpecificOffsets:
    """Parse the JSON of `startingOffsets` / `endingOffsets`.

    A topic's value is an object `{"<partition>": offset}`, where -1 or "latest" means latest and -2 or
    "earliest" earliest, or one of the two words for all of its partitions.

    Raises:
        ValueError: with a sentence that says what is wrong and does not name the option.
    """
    try:
        loaded = load_json(text)
        if not isinstance(loaded, dict):
            raise ValueError("the outermost JSON value must be an object")  # noqa: TRY004, TRY301 - one report below
        topics: dict[str, Earliest | Latest] = {}
        by_partition: dict[str, Any] = {}
        for topic, value in loaded.items():
            if isinstance(value, str):
                topics[topic] = _topic_edge(topic, value)
            else:
                by_partition[topic] = _without_starts(value)
        partitions: dict[TopicPartition, PartitionEdge] = {
            topic_partition: _option_offset(topic_partition, value)
            for topic_partition, value in walk_partitions(by_partition)
        }
        if not partitions and not topics:
            raise ValueError("it names no partition")  # noqa: TRY301 - one report below
    except ValueError as error:
        raise ValueError(f"expected e.g. {_EXAMPLE}, got {shorten(text)}: {error}") from error
    return SpecificOffsets(partitions, topics)


def _without_starts(by_partition: Any) -> Any:
    """Leave out the starts that the first end of a query carries, and that its progress shows: `{"00": 2, "0": 6}`.

    As Spark's connector, which takes both for one number, and keeps the last. A key alone with a zero is refused.
    """
    if not isinstance(by_partition, dict):
        return by_partition
    return {key: value for key, value in by_partition.items() if key[:1] != "0" or key[1:] not in by_partition}


def parse_timestamps(text: str, read: Callable[[object], T]) -> dict[TopicPartition, T]:
    """Parse the JSON of `startingOffsetsByTimestamp` / `endingOffsetsByTimestamp`, `{"topicA":{"0":1000}}`.

    Args:
        text: the JSON.
        read: reads one time from a JSON value; raises ValueError.

    Raises:
        ValueError: with a sentence that says what is wrong and does not name the option.
    """
    try:
        partitions: dict[TopicPartition, T] = {}
        for topic_partition, value in walk_partitions(load_json(text), "times"):
            try:
                partitions[topic_partition] = read(value)
            except ValueError as error:
                raise ValueError(f"{topic_partition} {error}") from error
        if not partitions:
            raise ValueError("it names no partition")  # noqa: TRY301 - one report below
    except ValueError as error:
        raise ValueError(f"expected e.g. {_TIMESTAMP_EXAMPLE}, got {shorten(text)}: {error}") from error
    return partitions


def parse_assignment(text: str) -> tuple[TopicPartition, ...]:
    """Parse the JSON of `assign`, `{"topicA":[0,1]}`, into sorted partitions.

    Raises:
        ValueError: with a sentence that says what is wrong and does not name the option.
    """
    try:
        loaded = load_json(text)
        if not isinstance(loaded, dict):
            raise ValueError("the outermost JSON value must be an object")  # noqa: TRY004, TRY301 - one report below
        found: set[TopicPartition] = set()
        for topic, numbers in loaded.items():
            check_topic(topic)
            if not isinstance(numbers, list):
                raise ValueError(f"topic '{topic}' must have a list of partition numbers")  # noqa: TRY004, TRY301
            for number in numbers:
                if not is_int(number) or not 0 <= number <= INT32_MAX:
                    raise ValueError(f"topic '{topic}' lists {shorten(number)} as a partition")  # noqa: TRY301
                topic_partition = TopicPartition(topic, number)
                if topic_partition in found:
                    raise ValueError(f"{topic_partition} is listed twice")  # noqa: TRY301
                found.add(topic_partition)
        if not found:
            raise ValueError("it names no partition")  # noqa: TRY301
    except ValueError as error:
        raise ValueError(f"expected e.g. {_ASSIGN_EXAMPLE}, got {shorten(text)}: {error}") from error
    return tuple(sorted(found))


def _topic_edge(topic: str, word: str) -> Earliest | Latest:
    check_topic(topic)
    try:
        return _WORDS[word.strip().lower()]
    except KeyError:
        raise ValueError(
            f'topic \'{topic}\' has {shorten(word)}; a topic takes "earliest", "latest" or offsets by partition'
        ) from None


def _option_offset(topic_partition: TopicPartition, value: object) -> PartitionEdge:
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    if not is_int(value) or not _EARLIEST_NUMBER <= value <= INT64_MAX:
        raise ValueError(
            f'{topic_partition} has {shorten(value)}; a partition takes an offset from 0, "earliest" (-2) or '
            '"latest" (-1)'
        )
    if value == _LATEST_NUMBER:
        return Latest()
    if value == _EARLIEST_NUMBER:
        return Earliest()
    return value
