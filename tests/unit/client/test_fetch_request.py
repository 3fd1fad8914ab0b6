"""Fetch requests are sessionless; topics without an id cap the version; the bytes asked for follow what was seen."""

from __future__ import annotations

import uuid

from pyspark_kafka.client.fetch_request import AskSize, FetchPosition, build_fetch_request
from pyspark_kafka.model import IsolationLevel, TopicPartition
from pyspark_kafka.options.connection import FetchOptions

MIB = 1 << 20
TOPIC_ID = uuid.uuid4()


def position(topic: str, partition: int, topic_id: uuid.UUID | None) -> FetchPosition:
    return FetchPosition(TopicPartition(topic, partition), 5, topic_id, 3, 1000)


def test_a_request_is_sessionless_and_carries_isolation_epoch_and_rack() -> None:
    options = FetchOptions(isolation_level=IsolationLevel.READ_COMMITTED, max_wait_ms=77, min_bytes=2)
    request, max_version = build_fetch_request([position("t", 1, TOPIC_ID)], options, max_bytes=999, rack="r1")
    assert max_version is None
    assert (request.session_id, request.session_epoch) == (0, -1)
    assert (request.isolation_level, request.max_wait_ms, request.min_bytes) == (1, 77, 2)
    assert (request.max_bytes, request.rack_id) == (999, "r1")
    partition = request.topics[0].partitions[0]
    assert (partition.partition, partition.fetch_offset, partition.current_leader_epoch) == (1, 5, 3)
    assert (partition.last_fetched_epoch, partition.partition_max_bytes) == (-1, 1000)
    assert request.topics[0].topic_id == TOPIC_ID


def test_one_topic_without_an_id_caps_the_whole_request_at_version_12() -> None:
    positions = [position("a", 0, TOPIC_ID), position("b", 0, None)]
    _, max_version = build_fetch_request(positions, FetchOptions(), max_bytes=1, rack=None)
    assert max_version == 12


def test_partitions_of_a_topic_stand_together() -> None:
    positions = [position("a", 0, TOPIC_ID), position("b", 0, TOPIC_ID), position("a", 1, TOPIC_ID)]
    request, _ = build_fetch_request(positions, FetchOptions(), max_bytes=1, rack=None)
    assert [(topic.topic, [p.partition for p in topic.partitions]) for topic in request.topics] == [
        ("a", [0, 1]),
        ("b", [0]),
    ]


def test_a_long_range_asks_for_as_much_as_allowed() -> None:
    assert AskSize(FetchOptions()).next_bytes(10_000_000) == 8 * MIB


def test_half_of_the_buffer_is_the_most_that_is_asked_for() -> None:
    assert AskSize(FetchOptions(buffer_bytes=2 * MIB)).next_bytes(10_000_000) == MIB


def test_a_short_range_asks_for_little() -> None:
    assert AskSize(FetchOptions()).next_bytes(10) == 256 << 10


def test_the_last_request_of_a_range_is_cut_to_what_records_took_so_far() -> None:
    size = AskSize(FetchOptions())
    size.observe(8 * MIB, 8192)
    assert size.next_bytes(1024) == 1280 * 1024


def test_a_tiny_limit_of_the_user_is_kept() -> None:
    assert AskSize(FetchOptions(max_partition_fetch_bytes=100)).next_bytes(10) == 100
