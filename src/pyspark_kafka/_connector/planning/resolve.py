"""The offset of each partition for an edge of a read. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import (
    AtTimestamp,
    Earliest,
    Latest,
    OffsetEdge,
    PartitionEdge,
    TimestampEdge,
    timestamp_text,
)
from pyspark_kafka._connector.planning.data_loss import DataLoss, DataLossKind, data_loss_error
from pyspark_kafka.errors import OptionError, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark_kafka._base.model import TopicPartition


def resolve_offsets(
    edge: OffsetEdge,
    assigned: Collection[TopicPartition],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    *,
    option: str = "startingOffsets",
) -> dict[TopicPartition, int]:
    """Return the offset of each assigned partition.

    Numbers are taken as they are: only a fetch shows whether the log has them.

    Args:
        edge: the start or the end of the read.
        assigned: the currently subscribed partitions.
        earliest: first offsets of the partitions that `edge` starts or ends there.
        latest: ends of the partitions that `edge` starts or ends there.
        option: the option that `edge` comes from, for errors.

    Raises:
        OptionError: the edge names other partitions than the assigned ones (condition
            KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED), or a topic without any
            (KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED).
        DataLossError: a partition disappeared while its offset was looked up.

    Source: Spark `KafkaOffsetReaderAdmin.fetchPartitionOffsets`, `fetchSpecificOffsets`.
    """
    if isinstance(edge, (Earliest, Latest)):
        edges: dict[TopicPartition, PartitionEdge] = dict.fromkeys(sorted(assigned), edge)
    else:
        edges = {
            topic_partition: edge.topics[topic_partition.topic]
            for topic_partition in assigned
            if topic_partition.topic in edge.topics
        }
        bare = sorted(edge.topics.keys() - {topic_partition.topic for topic_partition in edges})
        if bare:
            raise OptionError(
                f"Option '{option}' names the topics {', '.join(bare)}, of which no partition is read here. Nothing "
                "was read.",
                condition="KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED",
                hint="Check the names, and whether the topics exist.",
                parameters={"option": option, "topics": ", ".join(bare)},
            )
        edges.update(edge.partitions)
        if edges.keys() != set(assigned):
            raise _mismatch(option, edges.keys() - set(assigned), set(assigned) - edges.keys())
    return {
        topic_partition: _resolve(topic_partition, edges[topic_partition], earliest, latest)
        for topic_partition in sorted(edges)
    }


def timestamps_to_look_up(
    edge: TimestampEdge, assigned: Collection[TopicPartition], *, option: str
) -> dict[TopicPartition, int]:
    """Return the timestamp to look up for each assigned partition, in milliseconds since 1970-01-01 UTC.

    Raises:
        OptionError: the edge names other partitions than the assigned ones (condition
            KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED).

    Source: Spark `KafkaOffsetReaderAdmin.fetchSpecificTimestampBasedOffsets`.
    """
    if isinstance(edge, AtTimestamp):
        return dict.fromkeys(sorted(assigned), edge.timestamp_ms)
    if edge.partitions.keys() != set(assigned):
        raise _timestamp_mismatch(
            option, edge.partitions.keys() - set(assigned), set(assigned) - edge.partitions.keys()
        )
    return dict(edge.partitions)


def resolve_timestamps(
    timestamps: Mapping[TopicPartition, int],
    found: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    *,
    option: str,
    latest_without_match: bool,
) -> dict[TopicPartition, int]:
    """Return the offset of each partition from the look-up of its timestamp.

    Args:
        timestamps: the looked-up timestamps.
        found: the first offset at or after each timestamp; partitions without one are missing.
        latest: earlier ends; with `latest_without_match`, the ends of partitions without a match are
            needed. A found offset after the end is lowered to it: its record was written after the look-up of ends,
            and a start must not lie after its end.
        option: the option that the timestamps come from, for errors.
        latest_without_match: whether a partition without a match has its end as offset; otherwise it is an error.

    Raises:
        OptionError: partitions have no record at or after their timestamp (condition NO_OFFSET_FOR_TIMESTAMP); the
            text names them.
        DataLossError: a partition disappeared while its offset was looked up.
    """
    unmatched = [topic_partition for topic_partition in timestamps if topic_partition not in found]
    if unmatched and not latest_without_match:
        raise _no_offset(option, timestamps, unmatched)
    return {
        topic_partition: min(found[topic_partition], latest.get(topic_partition, found[topic_partition]))
        if topic_partition in found
        else _resolve(topic_partition, Latest(), {}, latest)
        for topic_partition in timestamps
    }


def _resolve(
    topic_partition: TopicPartition,
    edge: PartitionEdge,
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> int:
    if isinstance(edge, int):
        return edge
    offset = (earliest if isinstance(edge, Earliest) else latest).get(topic_partition)
    if offset is None:
        raise data_loss_error([DataLoss(DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS, topic_partition)])
    return offset


def _no_offset(option: str, timestamps: Mapping[TopicPartition, int], unmatched: list[TopicPartition]) -> OptionError:
    texts = listed(unmatched, lambda tp: f"{tp} since {timestamp_text(timestamps[tp])} ({timestamps[tp]})")
    return OptionError(
        f"There is no record of the time of option '{option}' or later in {len(unmatched)} of {len(timestamps)} "
        f"topic-partitions: {texts}. Nothing was read.",
        condition="NO_OFFSET_FOR_TIMESTAMP",
        hint="Set startingOffsetsByTimestampStrategy to latest to start such partitions at their end, or set an "
        "earlier time.",
        parameters={"option": option, "topic_partitions": _list(set(unmatched)), "count": len(unmatched)},
    )


def _timestamp_mismatch(option: str, extra: set[TopicPartition], missing: set[TopicPartition]) -> OptionError:
    return OptionError(
        f"Option '{option}' must name exactly the partitions that are read: it {_differences(extra, missing)}. Nothing "
        "was read.",
        condition="KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED",
        hint="Name every partition, or set one time for all with startingTimestamp or endingTimestamp. Partitions "
        "may also have been created or deleted meanwhile.",
        parameters={"option": option, "not_read": _list(extra), "not_named": _list(missing)},
    )


def _differences(extra: set[TopicPartition], missing: set[TopicPartition]) -> str:
    parts = (
        f"names {_list(extra)}, which do not exist or are not read here" if extra else "",
        f"leaves out {_list(missing)}" if missing else "",
    )
    return " and ".join(filter(None, parts))


def _mismatch(option: str, extra: set[TopicPartition], missing: set[TopicPartition]) -> OptionError:
    return OptionError(
        f"Option '{option}' must name exactly the partitions that are read: it {_differences(extra, missing)}. Nothing "
        "was read.",
        condition="KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED",
        hint="Name every partition, with -1 for latest and -2 for earliest if the offset does not matter, or "
        '{"<topic>":"earliest"} for a whole topic. Partitions may also have been created or deleted meanwhile.',
        parameters={"option": option, "not_read": _list(extra), "not_named": _list(missing)},
    )


def _list(partitions: set[TopicPartition]) -> str:
    return listed(sorted(partitions))
