"""What each task of a read gets to do. Layer: source; no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.planning import pack_ranges
from pyspark_kafka.source.reader_factory import KafkaInputPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka.model import OffsetRange
    from pyspark_kafka.options import BatchReadOptions, StreamReadOptions

# Partitions share a task where they have few offsets: what takes longer than a task costs gains nothing by sharing.
_SHARED_TASK_OFFSETS = 100_000


def tasks_of(
    ranges: Iterable[OffsetRange], options: BatchReadOptions | StreamReadOptions, topic_ids: Mapping[str, str]
) -> list[KafkaInputPartition]:
    """Give the tasks that read ranges with fixed ends: one each, or fewer where `maxPartitionsPerTask` lets them share.

    A function of the ranges and the options only, so a batch that is planned again has the same tasks.

    Args:
        ranges: what to read.
        options: how ranges share tasks.
        topic_ids: the topics that the ranges were planned on, by name, where brokers told.
    """
    tasks = pack_ranges(
        ranges,
        most_ranges=options.max_partitions_per_task,
        most_offsets=options.max_records_per_partition or _SHARED_TASK_OFFSETS,
    )
    return [
        KafkaInputPartition(first, tuple(further), topic_ids=ids_of((first, *further), topic_ids))
        for first, *further in tasks
    ]


def ids_of(ranges: Iterable[OffsetRange], topic_ids: Mapping[str, str]) -> dict[str, str]:
    """Give the ids of the topics that ranges are of: each task carries those of its own."""
    topics = {offset_range.topic_partition.topic for offset_range in ranges}
    return {topic: topic_ids[topic] for topic in topics if topic in topic_ids}
