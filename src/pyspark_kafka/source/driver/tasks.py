"""What each task of a read gets to do. Layer: source; no I/O."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_kafka.client.cluster.pool import learned_servers
from pyspark_kafka.planning import pack_ranges
from pyspark_kafka.source.handoff import KafkaInputPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark_kafka.model import OffsetRange
    from pyspark_kafka.options import BatchReadOptions, StreamReadOptions

logger = logging.getLogger(__name__)

# So many tasks of so few offsets each take much longer to start than to run.
_MANY_TASKS = 100
_FEW_OFFSETS = 1_000
_ADVISED: set[str] = set()
# A subscription may list thousands of topics.
_LONGEST_NAME = 120

# Partitions share a task where they have few offsets: what takes longer than a task costs gains nothing by sharing.
_SHARED_TASK_OFFSETS = 100_000


def tasks_of(
    ranges: Iterable[OffsetRange], options: BatchReadOptions | StreamReadOptions, topic_ids: Mapping[str, str]
) -> list[KafkaInputPartition]:
    """Give the tasks that read ranges with fixed ends: one each, or fewer where `maxPartitionsPerTask` lets them share.

    What is read is a function of the ranges and the options only, so a batch that is planned again has the same tasks.

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
    servers = learned_servers(options.connection)
    return [
        KafkaInputPartition(first, tuple(further), topic_ids=ids_of((first, *further), topic_ids), servers=servers)
        for first, *further in tasks
    ]


def advise_sharing(ranges: Collection[OffsetRange], options: BatchReadOptions | StreamReadOptions) -> None:
    """Log that a read has many small tasks that could share; once for a subscription in this process."""
    name = options.subscription.describe()
    count = len(ranges)
    if options.max_partitions_per_task > 1 or count < _MANY_TASKS or name in _ADVISED:
        return
    average = sum(each.end_offset - each.start_offset for each in ranges) / count
    if average < _FEW_OFFSETS:
        _ADVISED.add(name)
        logger.warning(
            "This read of %s has %d tasks with %.1f offsets each on average, and each task costs Spark milliseconds. "
            "Option 'maxPartitionsPerTask', for example 100, lets topic-partitions share tasks.",
            name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…",
            count,
            average,
        )


def ids_of(ranges: Iterable[OffsetRange], topic_ids: Mapping[str, str]) -> dict[str, str]:
    """Give the ids of the topics that ranges are of: each task carries those of its own."""
    topics = {offset_range.topic_partition.topic for offset_range in ranges}
    return {topic: topic_ids[topic] for topic in topics if topic in topic_ids}
