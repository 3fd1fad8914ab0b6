"""The commit message of a task in an at-least-once write."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_kafka.connector import WriterCommitMessage


@dataclass(frozen=True, slots=True)
class KafkaCommitMessage(WriterCommitMessage):
    """The result of a task.

    Attributes:
        records: the number of acknowledged records.
        encoded_bytes: their size in record batches, compressed.
    """

    records: int
    encoded_bytes: int
