"""From what an option says to an offset for each partition there is. Layer: planning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.errors import OptionError
from pyspark_kafka.offsets import Earliest, Latest, OffsetRangeLimit, PartitionLimit
from pyspark_kafka.planning.data_loss import DataLoss, DataLossKind, data_loss_error

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark_kafka.model import TopicPartition

_LISTED = 20


def resolve_offsets(
    limit: OffsetRangeLimit,
    assigned: Collection[TopicPartition],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    *,
    option: str = "startingOffsets",
) -> dict[TopicPartition, int]:
    """Give each assigned partition its offset.

    Concrete offsets are taken as they are: whether the log has them is found out by reading.

    Args:
        limit: what the option says.
        assigned: the partitions that the subscription means now.
        earliest: first offsets; needed for the partitions that `limit` puts there.
        latest: ends; needed for the partitions that `limit` puts there.
        option: the option that `limit` comes from, for errors.

    Raises:
        OptionError: the limit names other partitions than the assigned ones (condition
            KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED), or a topic without any
            (KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED).
        DataLossError: a partition disappeared while its offset was looked up.

    Source: Spark `KafkaOffsetReaderAdmin.fetchPartitionOffsets`, `fetchSpecificOffsets`.
    """
    if isinstance(limit, (Earliest, Latest)):
        limits: dict[TopicPartition, PartitionLimit] = dict.fromkeys(sorted(assigned), limit)
    else:
        limits = {
            topic_partition: limit.topics[topic_partition.topic]
            for topic_partition in assigned
            if topic_partition.topic in limit.topics
        }
        bare = sorted(limit.topics.keys() - {topic_partition.topic for topic_partition in limits})
        if bare:
            raise OptionError(
                f"Option '{option}' names the topics {', '.join(bare)}, of which no partition is read here. Nothing "
                "was read.",
                condition="KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED",
                hint="Check the names, and whether the topics exist.",
                facts={"option": option, "topics": ", ".join(bare)},
            )
        limits.update(limit.partitions)
        if limits.keys() != set(assigned):
            raise _mismatch(option, limits.keys() - set(assigned), set(assigned) - limits.keys())
    return {
        topic_partition: _resolve(topic_partition, limits[topic_partition], earliest, latest)
        for topic_partition in sorted(limits)
    }


def _resolve(
    topic_partition: TopicPartition,
    limit: PartitionLimit,
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> int:
    if isinstance(limit, int):
        return limit
    offset = (earliest if isinstance(limit, Earliest) else latest).get(topic_partition)
    if offset is None:
        raise data_loss_error([DataLoss(DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS, topic_partition)])
    return offset


def _mismatch(option: str, extra: set[TopicPartition], missing: set[TopicPartition]) -> OptionError:
    parts = [
        f"names {_list(extra)}, which do not exist or are not read here" if extra else "",
        f"says nothing about {_list(missing)}" if missing else "",
    ]
    return OptionError(
        f"The partitions of option '{option}' are not those that are read: it {' and '.join(filter(None, parts))}. "
        "Nothing was read.",
        condition="KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED",
        hint="Name every partition, with -1 for latest and -2 for earliest where you do not mind, or "
        '{"<topic>":"earliest"} for a whole topic. Partitions may also have been created or deleted meanwhile.',
        facts={"option": option, "not_read": _list(extra), "not_named": _list(missing)},
    )


def _list(partitions: set[TopicPartition]) -> str:
    ordered = [str(topic_partition) for topic_partition in sorted(partitions)]
    more = f" and {len(ordered) - _LISTED} more" if len(ordered) > _LISTED else ""
    return ", ".join(ordered[:_LISTED]) + more
