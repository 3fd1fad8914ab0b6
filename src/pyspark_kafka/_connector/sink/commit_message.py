"""What a task of an at-least-once write tells the driver."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_kafka.connector import WriterCommitMessage


@dataclass(frozen=True, slots=True)
class KafkaCommitMessage(WriterCommitMessage):
    """What a task wrote.

    Attributes:
        records: how many records were acknowledged.
        encoded_bytes: their size in record batches, compressed.
    """

    records: int
    encoded_bytes: int
