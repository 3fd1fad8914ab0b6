"""The tasks of a read: the ranges of each task. Pure: no sockets, no clock."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.pool import learned_servers
from pyspark_kafka._connector.planning import pack_ranges
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark_kafka._base.model import OffsetRange
    from pyspark_kafka._client.options import BatchReadOptions, StreamReadOptions

_LOG = logging.getLogger(__name__)

# At least this number of tasks, each of fewer offsets than this: they take much longer to start than to run.
_MANY_TASKS = 100
_FEW_OFFSETS = 1_000
_ADVISED: set[str] = set()
# In a warning: a subscription may list thousands of topics.
_MAX_NAME = 120

# Partitions share a task up to this number of offsets: the start of a task is short compared with a longer read.
_SHARED_TASK_OFFSETS = 100_000


def build_tasks(
    ranges: Iterable[OffsetRange], options: BatchReadOptions | StreamReadOptions, topic_ids: Mapping[str, str]
) -> list[KafkaInputPartition]:
    """Return the tasks that read ranges without open ends: one for each, or fewer if `maxPartitionsPerTask` allows it.

    A function of the ranges and the options, so a repeated plan of a micro-batch has the same tasks.

    Args:
        ranges: the ranges to read.
        options: the limits on ranges that share a task.
        topic_ids: the ids of the topics for which the ranges were planned, by name.
    """
    tasks = pack_ranges(
        ranges,
        max_ranges=options.max_partitions_per_task,
        max_offsets=options.max_records_per_partition or _SHARED_TASK_OFFSETS,
    )
    servers = learned_servers(options.connection)
    return [
        KafkaInputPartition(first, tuple(further), topic_ids=ids_of((first, *further), topic_ids), servers=servers)
        for first, *further in tasks
    ]


def advise_sharing(ranges: Collection[OffsetRange], options: BatchReadOptions | StreamReadOptions) -> None:
    """Log that a read has many small tasks that could share; once for each subscription in this process."""
    name = options.subscription.describe()
    count = len(ranges)
    if options.max_partitions_per_task > 1 or count < _MANY_TASKS or name in _ADVISED:
        return
    average = sum(each.end_offset - each.start_offset for each in ranges) / count
    if average < _FEW_OFFSETS:
        _ADVISED.add(name)
        _LOG.warning(
            "This read of %s has %d tasks with %.1f offsets each on average, and each task costs Spark milliseconds. "
            "Option 'maxPartitionsPerTask', for example 100, lets topic-partitions share tasks.",
            name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}…",
            count,
            average,
        )


def ids_of(ranges: Iterable[OffsetRange], topic_ids: Mapping[str, str]) -> dict[str, str]:
    """Return the topic ids of some ranges: each task carries the ids of its own topics."""
    topics = {offset_range.topic_partition.topic for offset_range in ranges}
    return {topic: topic_ids[topic] for topic in topics if topic in topic_ids}
