"""The maximum of consumer group positions in one request. Pure: no sockets, no clock."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark_kafka._base.model import TopicPartition

_T = TypeVar("_T")

# A coordinator writes the positions of one request as one record batch, which must fit into the topic of groups.
_MAX_PARTITIONS = 2_000
_MAX_BYTES = 512 * 1024
# What a position takes in that topic beside its text and the names of group and topic.
_BYTES_OF_POSITION = 64


def split_positions(
    group_id: str, positions: Mapping[TopicPartition, _T], text: Callable[[_T], str] = lambda _: ""
) -> Iterator[dict[str, dict[int, _T]]]:
    """Yield positions in parts that a broker takes in one request, as position by partition by topic.

    Args:
        group_id: the group.
        positions: those to set, by topic-partition.
        text: returns what is kept with a position.

    Source: Kafka `GroupMetadataManager`, `OffsetMetadataManager`.
    """
    left = iter(sorted(positions.items(), key=lambda each: each[0]))
    while True:
        part: dict[str, dict[int, _T]] = {}
        size = 0
        for topic_partition, position in islice(left, _MAX_PARTITIONS):
            part.setdefault(topic_partition.topic, {})[topic_partition.partition] = position
            words = f"{group_id}{topic_partition.topic}{text(position)}"
            size += len(words.encode()) + _BYTES_OF_POSITION
            if size >= _MAX_BYTES:
                break
        if not part:
            return
        yield part
