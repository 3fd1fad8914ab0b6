"""The source's offset as the streaming contracts see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.errors import CheckpointError
from pyspark_kafka.offsets import KafkaSourceOffset
from pyspark_kafka.streaming import Offset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.model import TopicPartition


class KafkaOffset(Offset):
    """The next offset to read of each partition.

    Source: Spark `KafkaSourceOffset`.
    """

    __slots__ = ("value",)

    def __init__(self, partitions: Mapping[TopicPartition, int]) -> None:
        self.value = KafkaSourceOffset(partitions)

    @property
    def partitions(self) -> Mapping[TopicPartition, int]:
        """Give the offsets by partition, sorted."""
        return self.value.partitions

    def json(self) -> str:
        """Give the JSON of Spark's own connector."""
        return self.value.json()

    @classmethod
    def from_json(cls, text: str) -> KafkaOffset:
        """Read an offset of a checkpoint.

        Raises:
            CheckpointError: the text is no offset of a Kafka source.
        """
        return cls(KafkaSourceOffset.from_json(text).partitions)

    @classmethod
    def of(cls, offset: Offset) -> KafkaOffset:
        """Take an offset that an engine hands back.

        Raises:
            CheckpointError: it is another source's.
        """
        if not isinstance(offset, cls):
            raise CheckpointError(
                f"Expected an offset of a Kafka source, got {offset}.",
                condition="CHECKPOINT_OFFSET_INVALID",
                hint="the checkpoint belongs to another source; start the query with a new checkpointLocation.",
            )
        return offset
