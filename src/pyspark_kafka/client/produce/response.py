"""Produce responses, partition by partition. Pure: no sockets, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark_kafka.model import TopicPartition


@dataclass(frozen=True, slots=True)
class ProducePartitionResponse:
    """The response to the record batch of one topic-partition.

    Attributes:
        topic_partition: where the batch was to go.
        code: the broker's error code; 0 if the batch is stored.
        message: the broker's own words, or None.
        record_errors: (index of a record in its batch, words or None), if the broker names records.
        base_offset: the offset of the batch's first record; -1 if the broker does not say it.
    """

    topic_partition: TopicPartition
    code: int
    message: str | None = None
    record_errors: tuple[tuple[int, str | None], ...] = ()
    base_offset: int = -1


def parse_produce_response(response: Any) -> list[ProducePartitionResponse]:
    """Return the parts of a decoded Produce response; a partition that is listed twice is taken once.

    Source: docs/internals/fetch-rules.md, R14.
    """
    found: dict[TopicPartition, ProducePartitionResponse] = {}
    for topic in response.responses:
        for partition in topic.partition_responses:
            topic_partition = TopicPartition(topic.name, partition.index)
            record_errors = tuple(
                (entry.batch_index, entry.batch_index_error_message) for entry in partition.record_errors or ()
            )
            parsed = ProducePartitionResponse(
                topic_partition,
                partition.error_code,
                partition.error_message,
                record_errors,
                partition.base_offset,
            )
            found.setdefault(topic_partition, parsed)
    return list(found.values())
