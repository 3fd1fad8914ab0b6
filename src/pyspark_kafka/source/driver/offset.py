"""The source's offset as the connector contracts see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.connector import Offset
from pyspark_kafka.errors import CheckpointError
from pyspark_kafka.offsets import KafkaSourceOffset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.model import TopicPartition


class KafkaOffset(Offset):
    """The next offset to read of each partition.

    Args:
        partitions: the offsets.
        starts: where the batch starts that ends here, if it is a query's first one and carries that.

    Source: Spark `KafkaSourceOffset`.
    """

    __slots__ = ("value",)

    def __init__(
        self, partitions: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int] | None = None
    ) -> None:
        self.value = KafkaSourceOffset(partitions, starts)

    @property
    def partitions(self) -> Mapping[TopicPartition, int]:
        """Give the offsets by partition, sorted."""
        return self.value.partitions

    @property
    def starts(self) -> Mapping[TopicPartition, int] | None:
        """Give where the query's first batch starts, if this is its end and carries that."""
        return self.value.starts

    def json(self) -> str:
        """Give the JSON of Spark's own connector."""
        return self.value.json()

    @classmethod
    def from_json(cls, text: str) -> KafkaOffset:
        """Read an offset of a checkpoint.

        Raises:
            CheckpointError: the text is no offset of a Kafka source.
        """
        read = KafkaSourceOffset.from_json(text)
        return cls(read.partitions, read.starts)

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
                hint="The checkpoint belongs to another source; start the query with a new checkpointLocation.",
            )
        return offset
