"""What a session does to read many ranges: one request for each broker, no range starved by others."""

from __future__ import annotations

import uuid
from collections import defaultdict
from typing import Any

import pytest

from kit.fakes.handlers.fetch import BrokerLog
from kit.fakes.logs import batches_of, record_batch
from kit.fakes.scripts import Silence
from kit.fakes.simulated_cluster import SimulatedCluster, SimulatedRead
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.fetch.cursor import Cursor
from pyspark_kafka._client.client.fetch.errors import OffsetOutOfRangeError, TopicRecreatedError
from pyspark_kafka._client.client.fetch.request import RecordSizes
from pyspark_kafka._client.client.fetch.session.routing import order_next
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka.errors import BrokerError, CorruptRecordsError, DeadlineError

KIB = 1 << 10


def ranges_of(topic: str, partitions: int, start: int, end: int) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition(topic, number), start, end) for number in range(partitions)]


def log_of(cluster: SimulatedCluster, topic: str, partitions: int, batches: int = 3) -> BrokerLog:
    return BrokerLog({(topic, number): batches_of(batches) for number in range(partitions)}, cluster.topic_ids)


def read_all(cluster: SimulatedCluster, ranges: list[OffsetRange], **fetch: Any) -> dict[TopicPartition, list[int]]:
    return SimulatedRead(cluster, ranges, **fetch).values()


def whole(ranges: list[OffsetRange]) -> dict[TopicPartition, list[int]]:
    return {found.topic_partition: [*range(found.start_offset, found.end_offset)] for found in ranges}


@pytest.fixture
def cluster() -> SimulatedCluster:
    cluster = SimulatedCluster()
    cluster.add_topic("t", partitions=6)
    return cluster


def test_ranges_of_several_topics_and_lengths_are_read(cluster: SimulatedCluster) -> None:
    cluster.add_topic("u", partitions=2)
    log = log_of(cluster, "t", 6)
    log.batches["u", 0], log.batches["u", 1] = batches_of(7), batches_of(1)
    cluster.script(log)
    ranges = [
        OffsetRange(TopicPartition("t", 4), 3, 8),
        OffsetRange(TopicPartition("u", 0), 0, 70),
        OffsetRange(TopicPartition("t", 0), 30, 30),
        OffsetRange(TopicPartition("u", 1), 9, 10),
    ]
    assert read_all(cluster, ranges) == {key: values for key, values in whole(ranges).items() if values}


def test_two_ranges_of_one_partition_are_refused(cluster: SimulatedCluster) -> None:
    ranges = [OffsetRange(TopicPartition("t", 0), 0, 5), OffsetRange(TopicPartition("t", 0), 5, 9)]
    with pytest.raises(ValueError, match="two ranges of t-0"):
        SimulatedRead(cluster, ranges)


def test_finished_partitions_leave_the_request(cluster: SimulatedCluster) -> None:
    log = log_of(cluster, "t", 2, batches=1)
    log.batches["t", 1] = [(0, 10, record_batch(0, [b"%d" % n + b" " * 20_000 for n in range(10)])), *batches_of(9)[1:]]
    cluster.script(log)
    ranges = [OffsetRange(TopicPartition("t", 0), 0, 10), OffsetRange(TopicPartition("t", 1), 0, 90)]
    assert read_all(cluster, ranges) == whole(ranges)
    assert cluster.asked_partitions()[0] == [0, 1]
    assert all(asked == [1] for asked in cluster.asked_partitions()[1:])


def test_no_partition_is_starved_where_a_response_has_room_for_one_only(cluster: SimulatedCluster) -> None:
    cluster.script(log_of(cluster, "t", 6))
    ranges = ranges_of("t", 6, 0, 30)
    order: list[int] = []
    read = SimulatedRead(cluster, ranges, max_bytes_per_fetch=10, max_wait_ms=1_000)
    for topic_partition, fetched in read:
        order.append(topic_partition.partition)
        read.confirm(topic_partition, fetched.scanned_offset)
    # Each gets its turn before any gets another.
    assert order == [0, 1, 2, 3, 4, 5] * 3


def test_a_batch_larger_than_a_partitions_share_arrives(cluster: SimulatedCluster) -> None:
    log = log_of(cluster, "t", 6, batches=1)
    for number in (2, 4):
        log.batches["t", number] = [(0, 10, record_batch(0, [b"%d" % n + b" " * 20_000 for n in range(10)]))]
    cluster.script(log)
    ranges = ranges_of("t", 6, 0, 10)
    assert read_all(cluster, ranges, max_partition_fetch_bytes=16 * KIB, max_wait_ms=1_000) == whole(ranges)


def test_request_asks_for_at_most_half_of_the_buffer(cluster: SimulatedCluster) -> None:
    cluster.script(log_of(cluster, "t", 6))
    ranges = ranges_of("t", 6, 0, 30)
    # Room for three of the smallest asks of 16 KiB.
    assert read_all(cluster, ranges, max_buffered_bytes=96 * KIB, max_wait_ms=1_000) == whole(ranges)
    for seen in cluster.seen:
        asked = [p.partition_max_bytes for topic in seen.request.topics for p in topic.partitions]
        assert sum(asked) <= 48 * KIB
        assert seen.request.max_bytes <= 48 * KIB
    assert cluster.asked_partitions()[:2] == [[0, 1, 2], [3, 4, 5]]


def test_partitions_with_nothing_to_give_yet_do_not_hold_up_the_others(cluster: SimulatedCluster) -> None:
    log = log_of(cluster, "t", 6)
    # Behind an open transaction, until the others are read.
    log.visible = {("t", 0): 0, ("t", 1): 10, ("t", 2): 0}
    cluster.script(log)
    ranges = ranges_of("t", 6, 0, 30)
    found: dict[int, int] = defaultdict(int)
    read = SimulatedRead(cluster, ranges, max_buffered_bytes=64 * KIB, max_wait_ms=1)
    for topic_partition, fetched in read:
        found[topic_partition.partition] += fetched.scanned_offset - fetched.start_offset
        read.confirm(topic_partition, fetched.scanned_offset)
        if [found[number] for number in range(6)] == [0, 10, 0, 30, 30, 30]:
            log.visible.clear()
    assert dict(found) == dict.fromkeys(range(6), 30)


def test_ranges_that_wait_are_named_when_nothing_moves(cluster: SimulatedCluster) -> None:
    log = log_of(cluster, "t", 3)
    log.visible = {("t", 1): 10, ("t", 2): 20}
    cluster.ends.update({("t", number): (0, 30) for number in range(3)})
    cluster.script(log)
    with pytest.raises(
        DeadlineError, match=r"Reading t-[12] \[0, 30\) \(and 1 other ranges\): no progress at offset [12]0 for 300 ms"
    ):
        read_all(cluster, ranges_of("t", 3, 0, 30), poll_timeout_ms=300)


def test_a_broker_that_hangs_does_not_stop_the_ranges_of_others(cluster: SimulatedCluster) -> None:
    cluster.leaders["t", 1] = (1, 0)
    log = log_of(cluster, "t", 2)
    cluster.script(log, broker_id=0)
    cluster.script(Silence, log, broker_id=1)
    ranges = ranges_of("t", 2, 0, 30)
    order: list[int] = []
    read = SimulatedRead(cluster, ranges, connection={"request_timeout_ms": 300}, max_bytes_per_fetch=10)
    for topic_partition, fetched in read:
        order.append(topic_partition.partition)
        read.confirm(topic_partition, fetched.scanned_offset)
    assert order == [0, 0, 0, 1, 1, 1]


def test_a_partition_without_a_leader_does_not_stop_the_others(cluster: SimulatedCluster) -> None:
    cluster.leaders["t", 0] = (-1, -1)
    log = log_of(cluster, "t", 2)
    cluster.script(log)
    ranges = ranges_of("t", 2, 0, 30)
    order: list[int] = []
    read = SimulatedRead(cluster, ranges, max_bytes_per_fetch=10)
    for topic_partition, fetched in read:
        order.append(topic_partition.partition)
        read.confirm(topic_partition, fetched.scanned_offset)
        if order == [1, 1, 1]:
            cluster.leaders["t", 0] = (0, 1)
    assert order == [1, 1, 1, 0, 0, 0]


def test_one_partition_that_is_refused_for_good_fails_the_task_and_is_named(cluster: SimulatedCluster) -> None:
    log = log_of(cluster, "t", 3)
    log.errors = {("t", 1): (2, -1, -1)}
    cluster.script(log)
    with pytest.raises(BrokerError, match=r"\[CORRUPT_MESSAGE\] Fetching t-1 \[0, 30\) at offset 0"):
        read_all(cluster, ranges_of("t", 3, 0, 30))


def test_topics_made_again_are_named_one_by_one_and_can_be_gone_on_with(cluster: SimulatedCluster) -> None:
    cluster.add_topic("u")
    ranges = [OffsetRange(TopicPartition("t", 0), 3, 30), OffsetRange(TopicPartition("u", 0), 0, 20)]
    log = BrokerLog({("t", 0): batches_of(3), ("u", 0): batches_of(2)}, cluster.topic_ids)

    def recreated(request: Any) -> Any:
        log.errors = {("t", 0): (100, -1, -1), ("u", 0): (100, -1, -1)}
        refused = log(request)
        log.errors = {}
        cluster.topic_ids.update(t=uuid.uuid4(), u=uuid.uuid4())
        return refused

    cluster.script(recreated, log)
    read = SimulatedRead(cluster, ranges)
    lost: list[OffsetRange] = []
    for _ in ranges:
        with pytest.raises(TopicRecreatedError) as caught:
            next(read)
        assert caught.value.requested_offset == caught.value.offset_range.start_offset
        lost.append(caught.value.offset_range)
        read.session.ranges.resume(lost[-1].topic_partition, lost[-1].start_offset)
    # Which is noticed first depends on whose response came last.
    assert sorted(lost, key=str) == sorted(ranges, key=str)
    assert read.values() == whole(ranges)


def test_a_range_resumed_at_its_end_is_done(cluster: SimulatedCluster) -> None:
    log = log_of(cluster, "t", 1)
    log.errors = {("t", 0): (1, -1, -1)}
    cluster.ends["t", 0] = (500, 600)
    cluster.script(log)
    ranges = ranges_of("t", 1, 0, 30)
    read = SimulatedRead(cluster, ranges)
    with pytest.raises(OffsetOutOfRangeError):
        next(read)
    read.session.ranges.resume(ranges[0].topic_partition, 30)
    with pytest.raises(StopIteration):
        next(read)


def test_a_position_that_decoding_does_not_confirm_names_its_partition(cluster: SimulatedCluster) -> None:
    cluster.script(log_of(cluster, "t", 3))
    read = SimulatedRead(cluster, ranges_of("t", 3, 0, 30))
    next(read)
    next(read)
    with pytest.raises(CorruptRecordsError, match=r"\[POSITION_MISMATCH\] Reading t-1 \[0, 30\)"):
        read.confirm(TopicPartition("t", 1), 17)


def test_the_first_place_goes_round_and_who_has_nothing_to_give_comes_last() -> None:
    options = ConnectionOptions((("not-asked", 9092),))
    reads = [Cursor(offset_range, FetchOptions(), options, RecordSizes()) for offset_range in ranges_of("t", 6, 0, 30)]
    fed, empty, starved, done, *left_out = reads
    done.resume(30)
    assert order_next(reads, fed=[fed, done], starved=[starved], empty=[empty]) == [starved, *left_out, fed, empty]


def test_fetcher_asks_for_more_if_a_response_holds_less_than_one_batch(cluster: SimulatedCluster) -> None:
    large = record_batch(0, [b"%d" % n + b" " * 20_000 for n in range(10)])
    log = BrokerLog({("t", number): [(0, 10, large)] for number in range(3)}, cluster.topic_ids)
    # What the topic's first response tells is of small batches.
    log.batches["t", 0] = batches_of(1)
    cluster.script(log)
    ranges = ranges_of("t", 3, 0, 10)
    assert read_all(cluster, ranges, max_wait_ms=1_000) == whole(ranges)
    asked = [{p.partition: p.partition_max_bytes for p in seen.request.topics[0].partitions} for seen in cluster.seen]
    assert asked[0] == dict.fromkeys(range(3), 16 * KIB)
    assert asked[1] == {1: 32 * KIB, 2: 32 * KIB}
