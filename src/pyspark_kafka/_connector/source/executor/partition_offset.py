"""The positions that a continuous reader reports to the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka.connector import PartitionOffset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import TopicPartition


@dataclass(frozen=True, slots=True)
class KafkaSourcePartitionOffset(PartitionOffset):
    """The positions of one continuous reader, which a task sends to the driver in the JSON of `KafkaSourceOffset`.

    Attributes:
        partitions: the next offset to read of each topic-partition of the task.

    Source: Spark `KafkaSourcePartitionOffset`, which has one topic-partition.
    """

    partitions: Mapping[TopicPartition, int]

    def json(self) -> str:
        """Return the text for the driver."""
        return KafkaSourceOffset(self.partitions).json()
