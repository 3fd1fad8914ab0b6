"""A cluster of offsets in memory, in the place of the look-ups of the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pyspark_kafka.source import batch, micro_batch
from pyspark_kafka.source.offset_reader import Assignment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark_kafka.model import TopicPartition


class ScriptedOffsets:
    """What each partition's log holds, `(first, end)`, and what was asked for.

    Attributes:
        logs: the partitions there are.
        topic_ids: the ids of topics that have another than their name.
        bytes_of: how many bytes each log takes; 100 for each offset where it is not said.
        asked: the look-ups so far, in order.
        known: the offsets that the last look-up of ends was told.
    """

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, tuple[int, int]] = {}
        self.topic_ids: dict[str, str] = {}
        self.bytes_of: dict[TopicPartition, int] = {}
        self.asked: list[str] = []
        self.known: Mapping[TopicPartition, int] | None = None

    def assignment(self, _read_topics: Collection[str] = ()) -> Assignment:
        self.asked.append("partitions")
        topics = {topic_partition.topic for topic_partition in self.logs}
        return Assignment(tuple(sorted(self.logs)), {topic: self.topic_ids.get(topic, topic) for topic in topics})

    def topic_ids_elsewhere(self, topics: Collection[str]) -> dict[str, str]:
        return {topic: topic_id for topic, topic_id in self.assignment().topic_ids.items() if topic in topics}

    def assigned_partitions(self) -> tuple[TopicPartition, ...]:
        return self.assignment().partitions

    def log_bytes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked.append("bytes")
        return {
            where: self.bytes_of.get(where, 100 * (self.logs[where][1] - self.logs[where][0])) for where in partitions
        }

    def earliest_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = tuple(partitions)
        if wanted:
            self.asked.append("earliest")
        return {topic_partition: self.logs[topic_partition][0] for topic_partition in wanted}

    def earliest_offsets_of_new(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self.earliest_offsets(topic_partition for topic_partition in partitions if topic_partition in self.logs)

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self.asked.append("timestamps")
        return {
            topic_partition: offset
            for topic_partition, timestamp_ms in timestamps.items()
            if (offset := self.by_time(topic_partition, timestamp_ms)) is not None
        }

    def by_time(self, topic_partition: TopicPartition, timestamp_ms: int) -> int | None:
        """The record at an offset has the offset for its timestamp."""
        first, end = self.logs[topic_partition]
        return max(first, timestamp_ms) if timestamp_ms < end else None

    def latest_offsets(
        self, partitions: Iterable[TopicPartition], known: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, int]:
        self.asked.append("latest")
        self.known = known
        return {topic_partition: self.logs[topic_partition][1] for topic_partition in partitions}

    def assigned_latest_offsets(
        self, known: Mapping[TopicPartition, int] | None = None
    ) -> tuple[Assignment, dict[TopicPartition, int]]:
        assignment = self.assignment()
        return assignment, self.latest_offsets(assignment.partitions, known)


@pytest.fixture
def offsets(monkeypatch: pytest.MonkeyPatch) -> ScriptedOffsets:
    """The cluster that streams and batches of the test see."""
    scripted = ScriptedOffsets()

    def instead(*_: Any, **__: Any) -> ScriptedOffsets:
        return scripted

    instead.from_options = instead  # type: ignore[attr-defined]
    monkeypatch.setattr(micro_batch, "KafkaOffsetReader", instead)
    monkeypatch.setattr(batch, "KafkaOffsetReader", instead)
    return scripted
