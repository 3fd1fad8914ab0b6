"""The position of a Kafka source, which a checkpoint holds as JSON. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.offsets.partition_json import INT64_MAX, is_int, load_json, shorten, walk_partitions
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._base.model import TopicPartition

# Before a partition's number: where the first batch starts there.
_START_MARK = "0"


@dataclass(frozen=True, slots=True)
class KafkaSourceOffset:
    """The position of a Kafka source: for each partition the next offset to read.

    What `KafkaMicroBatchStream` and `KafkaSource` return and take. Two offsets are equal if they name the same
    partitions and positions. The JSON is the JSON of Spark's own connector, so each continues checkpoints of the other.

    The end of a query's first micro-batch may carry where that batch starts, because Spark keeps it nowhere: under the
    partition's number with a zero before it, ahead of the end. Spark's connector reads both keys as the same number and
    keeps the last one, the end.

    Attributes:
        partitions: the next offset to read of each partition, sorted.
        starts: where the first micro-batch starts; None in all other offsets.

    Example:
        >>> KafkaSourceOffset({TopicPartition("t", 10): 3, TopicPartition("t", 2): 5}).json()
        '{"t":{"2":5,"10":3}}'
        >>> KafkaSourceOffset({TopicPartition("t", 2): 5}, starts={TopicPartition("t", 2): 4}).json()
        '{"t":{"02":4,"2":5}}'

    Source: Spark `org.apache.spark.sql.kafka010.KafkaSourceOffset`, `JsonUtils`.
    """

    partitions: Mapping[TopicPartition, int]
    starts: Mapping[TopicPartition, int] | None = None
    # Written once: an engine requests it several times, and offsets of many partitions are long.
    _text: str | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", dict(sorted(self.partitions.items())))
        # One form for no starts: equal texts are equal offsets.
        object.__setattr__(self, "starts", dict(sorted(self.starts.items())) if self.starts else None)

    def __hash__(self) -> int:
        return hash(tuple(self.partitions.items()))

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return `{"topic": {"0": 100}}`, topics by name, partitions by number, a start ahead of its end."""
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
        """Return the compact text that a checkpoint holds; equal positions have equal texts."""
        text = self._text
        if text is None:
            text = json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=False)
            object.__setattr__(self, "_text", text)
        return text

    def __str__(self) -> str:
        return self.json()

    @classmethod
    def from_json(cls, text: str) -> KafkaSourceOffset:
        """Read an offset back from a checkpoint.

        Raises:
            CheckpointError: the text is not the JSON of an offset, or names no position (-1, -2, "earliest").
        """
        return _read_checkpoint(text, lambda: load_json(text))

    @classmethod
    def from_dict(cls, nested: Mapping[str, Any]) -> KafkaSourceOffset:
        """Read an offset from the nested mapping that `to_dict` returns.

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
                for topic_partition, value in walk_partitions(nested)
            }
            for nested in (ends, starts)
        )
    except ValueError as error:
        raise CheckpointError(
            f"The source offset {shorten(shown)} of the checkpoint cannot be read: {error}. Nothing was read.",
            condition="CHECKPOINT_OFFSET_INVALID",
            hint='An offset of a Kafka source looks like {"topicA":{"0":23,"1":40}}. Restore the checkpoint '
            "from a copy, or start the query with a new checkpointLocation.",
            parameters={"offset": shorten(shown), "reason": error},
        ) from error
    return KafkaSourceOffset(partitions, carried or None)


def _without_starts(nested: object) -> tuple[object, object]:
    """Separate the starts that the end of a first batch may carry from the end, both in the usual form."""
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
    if not is_int(value) or not 0 <= value <= INT64_MAX:
        raise ValueError(f"{topic_partition} has {shorten(value)} where an offset, a whole number from 0, must be")
    return value
