"""Builds sessionless Fetch requests. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from pyspark_kafka.client.wire.messages import FetchRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.options import FetchOptions

# The newest version that names topics; later ones want their ids.
LAST_VERSION_WITH_NAMES = 12

_NO_SESSION_EPOCH = -1


class FetchPosition(NamedTuple):
    """A partition and the offset to fetch from.

    Attributes:
        topic_id: None if unknown; then the request must not be newer than `LAST_VERSION_WITH_NAMES`.
        leader_epoch: -1 if unknown; else the broker refuses if it knows another (KIP-320).
        max_bytes: soft limit of this partition's part of the response; its first batch may exceed it.
    """

    topic_partition: TopicPartition
    offset: int
    topic_id: UUID | None
    leader_epoch: int
    max_bytes: int


def build_fetch_request(
    positions: Iterable[FetchPosition], options: FetchOptions, *, max_bytes: int, rack: str | None
) -> tuple[Any, int | None]:
    """Build one request for any number of partitions of one broker.

    Sessionless (id 0, epoch -1): brokers hold 1,000 session slots, and tasks are short.

    Returns:
        The request, and the newest version it may be sent in (None: any).

    Source: KIP-227, KIP-392, KIP-516.
    """
    topic_class = FetchRequest.FetchTopic
    by_topic: dict[str, list[Any]] = {}
    ids: dict[str, UUID | None] = {}
    for position in positions:
        topic = position.topic_partition.topic
        ids[topic] = position.topic_id
        by_topic.setdefault(topic, []).append(
            topic_class.FetchPartition(
                partition=position.topic_partition.partition,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.offset,
                last_fetched_epoch=-1,
                log_start_offset=-1,
                partition_max_bytes=position.max_bytes,
            )
        )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=options.max_wait_ms,
        min_bytes=options.min_bytes,
        max_bytes=max_bytes,
        isolation_level=options.isolation_level.wire_value,
        session_id=0,
        session_epoch=_NO_SESSION_EPOCH,
        topics=[
            topic_class(topic=name, topic_id=ids[name] or UUID(int=0), partitions=entries)
            for name, entries in by_topic.items()
        ],
        forgotten_topics_data=[],
        rack_id=rack or "",
    )
    return request, (LAST_VERSION_WITH_NAMES if None in ids.values() else None)
