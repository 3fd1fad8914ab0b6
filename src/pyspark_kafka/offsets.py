"""Offsets of a Kafka source as values, and the only place that knows their JSON.

`KafkaSourceOffset` is what goes into a checkpoint; the range limits (`Earliest`, `Latest`, `SpecificOffsets`,
`AtTimestamp`, `SpecificTimestamps`) are what the options say of where to start and to end. The numbers -1 (latest) and
-2 (earliest) exist only inside the codec below. Pure: no I/O, no option names. Layer: above model and errors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar

from pyspark_kafka.errors import CheckpointError
from pyspark_kafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

_LATEST_NUMBER = -1
_EARLIEST_NUMBER = -2
# Before a partition's number: where the first batch starts there.
_START_MARK = "0"
# Longest piece of user text that an error repeats.
_SHOWN = 200
_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2},"topicC":"earliest"}'
_ASSIGN_EXAMPLE = '{"topicA":[0,1],"topicB":[2,4]}'
_TIMESTAMP_EXAMPLE = '{"topicA":{"0":1767225600000,"1":"2026-01-01T00:00:00Z"},"topicB":{"0":"2 hours ago"}}'

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Earliest:
    """The oldest offset that a partition still holds."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The end of a partition's log; with `read_committed`, its last stable offset."""


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first offset whose record timestamp is `timestamp_ms` (milliseconds since 1970-01-01 UTC) or later."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class SpecificOffsets:
    """Offsets by partition, and limits by topic, as the JSON of an option gives them.

    Attributes:
        partitions: an offset (>= 0), `Earliest()` or `Latest()` of each named partition.
        topics: `Earliest()` or `Latest()` for all partitions of a topic, whichever it has when they are looked up.
            A topic is in one of the two mappings only.
    """

    partitions: Mapping[TopicPartition, PartitionLimit] = field(default_factory=dict)
    topics: Mapping[str, Earliest | Latest] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", dict(sorted(self.partitions.items())))
        object.__setattr__(self, "topics", dict(sorted(self.topics.items())))

    def __hash__(self) -> int:
        return hash((tuple(self.partitions.items()), tuple(self.topics.items())))


@dataclass(frozen=True, slots=True)
class SpecificTimestamps:
    """A timestamp by partition (milliseconds since 1970-01-01 UTC): each starts or ends as with `AtTimestamp`."""

    partitions: Mapping[TopicPartition, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", dict(sorted(self.partitions.items())))

    def __hash__(self) -> int:
        return hash(tuple(self.partitions.items()))


PartitionLimit: TypeAlias = int | Earliest | Latest
OffsetLimit: TypeAlias = Earliest | Latest | SpecificOffsets
TimestampLimit: TypeAlias = AtTimestamp | SpecificTimestamps
OffsetRangeLimit: TypeAlias = OffsetLimit | TimestampLimit


def timestamp_text(timestamp_ms: int) -> str:
    """Give a timestamp as ISO 8601 in UTC, for errors; beyond the year 9999 as its number.

    Example:
        >>> timestamp_text(1_767_225_600_007)
        '2026-01-01T00:00:00.007Z'
    """
    try:
        at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms since 1970"
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class KafkaSourceOffset:
    """The position of a Kafka source: for each partition the next offset to read.

    Two offsets are equal when they name the same partitions and positions. The JSON is the one of Spark's own
    connector, so a checkpoint of either can be continued by the other.

    The end of a query's first batch may carry where that batch starts, as Spark keeps it nowhere: under the
    partition's number with a zero before it, ahead of the end. Spark's connector reads both keys as the same number and
    keeps the last one, the end.

    Attributes:
        partitions: the next offset to read of each partition.
        starts: where the first batch starts; None in all other offsets.

    Example:
        >>> KafkaSourceOffset({TopicPartition("t", 10): 3, TopicPartition("t", 2): 5}).json()
        '{"t":{"2":5,"10":3}}'
        >>> KafkaSourceOffset({TopicPartition("t", 2): 5}, starts={TopicPartition("t", 2): 4}).json()
        '{"t":{"02":4,"2":5}}'

    Source: Spark `org.apache.spark.sql.kafka010.KafkaSourceOffset`, `JsonUtils`.
    """

    partitions: Mapping[TopicPartition, int]
    starts: Mapping[TopicPartition, int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", dict(sorted(self.partitions.items())))
        if self.starts is not None:
            object.__setattr__(self, "starts", dict(sorted(self.starts.items())))

    def __hash__(self) -> int:
        return hash(tuple(self.partitions.items()))

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Give `{"topic": {"0": 100}}`, topics by name, partitions by number, a start ahead of its end."""
        starts = self.starts or {}
        nested: dict[str, dict[str, int]] = {}
        # Both are sorted.
        for topic_partition in sorted({*self.partitions, *starts}) if starts else self.partitions:
            offsets = nested.setdefault(topic_partition.topic, {})
            if topic_partition in starts:
                offsets[f"{_START_MARK}{topic_partition.partition}"] = starts[topic_partition]
            if topic_partition in self.partitions:
                offsets[str(topic_partition.partition)] = self.partitions[topic_partition]
        return nested

    def json(self) -> str:
        """Give the compact text that a checkpoint holds; the same position always gives the same text."""
        return json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=False)

    def __str__(self) -> str:
        return self.json()

    @classmethod
    def from_json(cls, text: str) -> KafkaSourceOffset:
        """Read an offset back from a checkpoint.

        Raises:
            CheckpointError: the text is not the JSON of an offset, or leaves a position open (-1, -2, "earliest").
        """
        return _read_checkpoint(text, lambda: _load_json(text))

    @classmethod
    def from_dict(cls, nested: Mapping[str, Any]) -> KafkaSourceOffset:
        """Read an offset from the nested mapping that `to_dict` gives.

        Raises:
            CheckpointError: the mapping does not have that shape.
        """
        return _read_checkpoint(nested, lambda: nested)


def _read_checkpoint(shown: object, load: Callable[[], object]) -> KafkaSourceOffset:
    try:
        ends, starts = _without_starts(load())
        partitions, carried = (
            {
                topic_partition: _checkpoint_offset(topic_partition, value)
                for topic_partition, value in _walk_partitions(nested)
            }
            for nested in (ends, starts)
        )
    except ValueError as error:
        raise CheckpointError(
            f"The source offset {_shorten(shown)} of the checkpoint cannot be read: {error}. Nothing was read.",
            condition="CHECKPOINT_OFFSET_INVALID",
            hint='An offset of a Kafka source looks like {"topicA":{"0":23,"1":40}}. Restore the checkpoint '
            "from a copy, or start the query with a new checkpointLocation.",
            facts={"offset": _shorten(shown), "reason": error},
        ) from error
    return KafkaSourceOffset(partitions, carried or None)


def _without_starts(nested: object) -> tuple[object, object]:
    """Take the starts that the end of a first batch carries out of it, both in the usual form then."""
    if not isinstance(nested, dict):
        return nested, {}
    ends: dict[Any, Any] = {}
    starts: dict[Any, dict[str, Any]] = {}
    for topic, by_partition in nested.items():
        ends[topic] = by_partition
        marked = [key for key in by_partition if _is_marked(key)] if isinstance(by_partition, dict) else []
        if marked:
            starts[topic] = {key.removeprefix(_START_MARK): by_partition[key] for key in marked}
            ends[topic] = {key: value for key, value in by_partition.items() if not _is_marked(key)}
    return ends, starts


def _is_marked(key: object) -> bool:
    return isinstance(key, str) and len(key) > 1 and key.startswith(_START_MARK)


def _checkpoint_offset(topic_partition: TopicPartition, value: object) -> int:
    if not _is_int(value) or not 0 <= value <= INT64_MAX:
        raise ValueError(f"{topic_partition} has {_shorten(value)} where an offset, a whole number from 0, must be")
    return value


def parse_specific_offsets(text: str) -> SpecificOffsets:
    """Parse the JSON of `startingOffsets` / `endingOffsets`.

    A topic's value is an object `{"<partition>": offset}`, where -1 or "latest" means latest and -2 or
    "earliest" earliest, or one of the two words for all of its partitions.

    Raises:
        ValueError: with a sentence that says what is wrong; it does not name the option.
    """
    try:
        loaded = _load_json(text)
        if not isinstance(loaded, dict):
            raise ValueError("the outermost JSON value must be an object")  # noqa: TRY004, TRY301 - one report below
        topics: dict[str, Earliest | Latest] = {}
        by_partition: dict[str, Any] = {}
        for topic, value in loaded.items():
            if isinstance(value, str):
                topics[topic] = _topic_limit(topic, value)
            else:
                by_partition[topic] = value
        partitions: dict[TopicPartition, PartitionLimit] = {
            topic_partition: _option_offset(topic_partition, value)
            for topic_partition, value in _walk_partitions(by_partition)
        }
        if not partitions and not topics:
            raise ValueError("it names no partition")  # noqa: TRY301 - one report below
    except ValueError as error:
        raise ValueError(f"expected e.g. {_EXAMPLE}, got {_shorten(text)}: {error}") from error
    return SpecificOffsets(partitions, topics)


def parse_timestamps(text: str, read: Callable[[object], T]) -> dict[TopicPartition, T]:
    """Parse the JSON of `startingOffsetsByTimestamp` / `endingOffsetsByTimestamp`, `{"topicA":{"0":1000}}`.

    Args:
        text: the JSON.
        read: reads one time out of a JSON value; raises ValueError.

    Raises:
        ValueError: with a sentence that says what is wrong; it does not name the option.
    """
    try:
        partitions: dict[TopicPartition, T] = {}
        for topic_partition, value in _walk_partitions(_load_json(text), "times"):
            try:
                partitions[topic_partition] = read(value)
            except ValueError as error:
                raise ValueError(f"{topic_partition} {error}") from error
        if not partitions:
            raise ValueError("it names no partition")  # noqa: TRY301 - one report below
    except ValueError as error:
        raise ValueError(f"expected e.g. {_TIMESTAMP_EXAMPLE}, got {_shorten(text)}: {error}") from error
    return partitions


def parse_assignment(text: str) -> tuple[TopicPartition, ...]:
    """Parse the JSON of `assign`, `{"topicA":[0,1]}`, into sorted partitions.

    Raises:
        ValueError: with a sentence that says what is wrong; it does not name the option.
    """
    try:
        loaded = _load_json(text)
        if not isinstance(loaded, dict):
            raise ValueError("the outermost JSON value must be an object")  # noqa: TRY004, TRY301 - one report below
        found: set[TopicPartition] = set()
        for topic, numbers in loaded.items():
            _check_topic(topic)
            if not isinstance(numbers, list):
                raise ValueError(f"topic '{topic}' must have a list of partition numbers")  # noqa: TRY004, TRY301
            for number in numbers:
                if not _is_int(number) or not 0 <= number <= INT32_MAX:
                    raise ValueError(f"topic '{topic}' lists {_shorten(number)} as a partition")  # noqa: TRY301
                topic_partition = TopicPartition(topic, number)
                if topic_partition in found:
                    raise ValueError(f"{topic_partition} is listed twice")  # noqa: TRY301
                found.add(topic_partition)
        if not found:
            raise ValueError("it names no partition")  # noqa: TRY301
    except ValueError as error:
        raise ValueError(f"expected e.g. {_ASSIGN_EXAMPLE}, got {_shorten(text)}: {error}") from error
    return tuple(sorted(found))


_WORDS: dict[str, Earliest | Latest] = {"earliest": Earliest(), "latest": Latest()}


def _topic_limit(topic: str, word: str) -> Earliest | Latest:
    _check_topic(topic)
    try:
        return _WORDS[word.strip().lower()]
    except KeyError:
        raise ValueError(
            f'topic \'{topic}\' has {_shorten(word)}; a topic takes "earliest", "latest" or offsets by partition'
        ) from None


def _option_offset(topic_partition: TopicPartition, value: object) -> PartitionLimit:
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    if not _is_int(value) or not _EARLIEST_NUMBER <= value <= INT64_MAX:
        raise ValueError(
            f'{topic_partition} has {_shorten(value)}; a partition takes an offset from 0, "earliest" (-2) or '
            '"latest" (-1)'
        )
    if value == _LATEST_NUMBER:
        return Latest()
    if value == _EARLIEST_NUMBER:
        return Earliest()
    return value


def _walk_partitions(nested: object, values: str = "offsets") -> list[tuple[TopicPartition, Any]]:
    """Flatten `{"topic": {"0": value}}`, checking every name and number on the way."""
    if not isinstance(nested, dict):
        raise ValueError("the outermost JSON value must be an object")  # noqa: TRY004 - a value, not a type, for users
    found: list[tuple[TopicPartition, Any]] = []
    for topic, by_partition in nested.items():
        _check_topic(topic)
        if not isinstance(by_partition, dict):
            raise ValueError(f"topic '{topic}' must have an object of partition numbers and {values}")  # noqa: TRY004
        found.extend((TopicPartition(topic, _partition_number(topic, key)), by_partition[key]) for key in by_partition)
    return found


def _check_topic(topic: object) -> None:
    if not isinstance(topic, str) or not topic:
        raise ValueError(f"{_shorten(topic)} is not a topic name")


def _partition_number(topic: str, key: object) -> int:
    # One spelling a number: "01" or "+1" beside "1" would name a partition twice.
    if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) <= 10:
        number = int(key)
        if str(number) == key and number <= INT32_MAX:
            return number
    raise ValueError(f"topic '{topic}' has {_shorten(key)} as a partition number")


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _load_json(text: str) -> object:
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
                raise ValueError(f"{_shorten(key)} has both a topic-level offset and offsets by partition")
            raise ValueError(f"{_shorten(key)} stands in it twice")
        members[key] = value
    return members


def _bounded_int(digits: str) -> int:
    # No 64-bit number is longer; Python's own limit on digits would give another error text on each version.
    if len(digits) > 20:
        raise ValueError("a number in it does not fit in 64 bits")
    return int(digits)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number of JSON")


def _shorten(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}…' ({len(text)} characters)"
