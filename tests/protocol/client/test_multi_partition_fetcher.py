"""Reading many ranges at once: one connection a broker, nothing lost or repeated, no partition starved by others."""

from __future__ import annotations

import uuid
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from kit.fakes.handlers.fetch import BrokerLog, FetchScript
from kit.fakes.logs import batches_of, record_batch
from kit.fakes.tcp_cluster import Close, Silence, TcpCluster
from kit.reading import FAST_FETCH
from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.fetch import fetcher as fetcher_module
from pyspark_kafka.client.fetch.ask_size import RecordSize, RecordSizes, record_sizes_of
from pyspark_kafka.client.fetch.cursor import PartitionRead, order_next
from pyspark_kafka.client.fetch.fetcher import MultiPartitionFetcher
from pyspark_kafka.client.fetch.partition_fetcher import OffsetOutOfRangeError, TopicRecreatedError
from pyspark_kafka.client.lookups.offsets import list_offsets
from pyspark_kafka.client.wire.messages import FetchRequest, ListOffsetsRequest
from pyspark_kafka.errors import BrokerError, CorruptRecordsError, DeadlineError
from pyspark_kafka.model import OffsetRange, TopicPartition
from pyspark_kafka.options import ConnectionOptions, FetchOptions
from pyspark_kafka.records import iter_decode

if TYPE_CHECKING:
    from kit.fixtures.wire import WireTrace
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient

KIB = 1 << 10


def client_of(cluster: TcpCluster, **options: Any) -> KafkaClient:
    return cluster.client(**({"request_timeout_ms": 2_000} | options))


def fetch_options(**changes: Any) -> FetchOptions:
    return FetchOptions(**(FAST_FETCH | changes))


def ranges_of(topic: str, partitions: int, start: int, end: int) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition(topic, number), start, end) for number in range(partitions)]


def log_of(cluster: TcpCluster, topic: str, partitions: int, batches: int = 3) -> BrokerLog:
    return BrokerLog({(topic, number): batches_of(batches) for number in range(partitions)}, cluster.topic_ids)


def drain(fetcher: MultiPartitionFetcher, ranges: list[OffsetRange]) -> dict[TopicPartition, list[int]]:
    """Read and decode as a source does; values are the offsets."""
    ends = {offset_range.topic_partition: offset_range.end_offset for offset_range in ranges}
    found: dict[TopicPartition, list[int]] = defaultdict(list)
    for topic_partition, fetched in fetcher:
        position = fetched.start_offset
        for decoded in iter_decode(
            fetched.records, start_offset=position, end_offset=ends[topic_partition], columns=["value"]
        ):
            found[topic_partition] += [int(value or b"") for value in decoded.batch.column("value").to_pylist()]
            position = decoded.next_offset
        fetcher.advance(position)
    return found


def read(cluster: TcpCluster, ranges: list[OffsetRange], **fetch: Any) -> dict[TopicPartition, list[int]]:
    with client_of(cluster) as client, MultiPartitionFetcher(client, ranges, fetch_options(**fetch)) as fetcher:
        return drain(fetcher, ranges)


def whole(ranges: list[OffsetRange]) -> dict[TopicPartition, list[int]]:
    return {found.topic_partition: [*range(found.start_offset, found.end_offset)] for found in ranges}


def asked_partitions(cluster: TcpCluster) -> list[list[int]]:
    return [
        [partition.partition for topic in seen.request.topics for partition in topic.partitions]
        for seen in cluster.requests(FetchRequest)
    ]


@pytest.fixture
def cluster() -> Any:
    with TcpCluster(2) as cluster:
        cluster.add_topic("t", partitions=6)
        yield cluster


@pytest.mark.parametrize(("start", "end"), [(0, 30), (5, 6), (13, 27), (29, 30)])
def test_every_range_is_read_completely_once_and_in_order(cluster: TcpCluster, start: int, end: int) -> None:
    cluster.script(FetchRequest, log_of(cluster, "t", 6))
    ranges = ranges_of("t", 6, start, end)
    assert read(cluster, ranges) == whole(ranges)


def test_all_partitions_of_a_broker_go_over_one_connection_in_one_request(cluster: TcpCluster, wire: WireTrace) -> None:
    cluster.script(FetchRequest, log_of(cluster, "t", 6))
    read(cluster, ranges_of("t", 6, 0, 30))
    assert asked_partitions(cluster) == [[0, 1, 2, 3, 4, 5]]
    # One connection to ask for metadata, one to fetch.
    assert wire.counts() == {"ApiVersions": 2, "Metadata": 1, "Fetch": 1}
    assert [event.partitions for event in wire.sent("Fetch")] == [6]


def test_partitions_are_asked_of_their_leaders_at_the_same_time(cluster: TcpCluster) -> None:
    for number in range(3, 6):
        cluster.leaders["t", number] = (1, 0)
    cluster.script(FetchRequest, log_of(cluster, "t", 6, batches=1))
    ranges = ranges_of("t", 6, 0, 10)
    with client_of(cluster) as client, MultiPartitionFetcher(client, ranges, fetch_options()) as fetcher:
        drain(fetcher, ranges)
    assert len(cluster.requests(FetchRequest)) == 2
    by_broker = {
        seen.broker_id: [p.partition for p in seen.request.topics[0].partitions]
        for seen in cluster.requests(FetchRequest)
    }
    assert by_broker == {0: [0, 1, 2], 1: [3, 4, 5]}


def test_ranges_of_several_topics_and_lengths_are_read(cluster: TcpCluster) -> None:
    cluster.add_topic("u", partitions=2)
    log = log_of(cluster, "t", 6)
    log.batches["u", 0], log.batches["u", 1] = batches_of(7), batches_of(1)
    cluster.script(FetchRequest, log)
    ranges = [
        OffsetRange(TopicPartition("t", 4), 3, 8),
        OffsetRange(TopicPartition("u", 0), 0, 70),
        OffsetRange(TopicPartition("t", 0), 30, 30),
        OffsetRange(TopicPartition("u", 1), 9, 10),
    ]
    assert read(cluster, ranges) == {key: values for key, values in whole(ranges).items() if values}


def test_two_ranges_of_one_partition_are_refused(cluster: TcpCluster) -> None:
    ranges = [OffsetRange(TopicPartition("t", 0), 0, 5), OffsetRange(TopicPartition("t", 0), 5, 9)]
    with client_of(cluster) as client, pytest.raises(ValueError, match="two ranges of t-0"):
        MultiPartitionFetcher(client, ranges, fetch_options())


def test_nothing_to_read_needs_no_broker(cluster: TcpCluster) -> None:
    assert read(cluster, ranges_of("t", 3, 7, 7)) == {}
    assert cluster.seen == []


def test_finished_partitions_leave_the_request(cluster: TcpCluster) -> None:
    log = log_of(cluster, "t", 2, batches=1)
    log.batches["t", 1] = [(0, 10, record_batch(0, [b"%d" % n + b" " * 20_000 for n in range(10)])), *batches_of(9)[1:]]
    cluster.script(FetchRequest, log)
    ranges = [OffsetRange(TopicPartition("t", 0), 0, 10), OffsetRange(TopicPartition("t", 1), 0, 90)]
    assert read(cluster, ranges) == whole(ranges)
    assert asked_partitions(cluster)[0] == [0, 1]
    assert all(asked == [1] for asked in asked_partitions(cluster)[1:])


def test_no_partition_is_starved_where_an_answer_has_room_for_one_only(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, log_of(cluster, "t", 6))
    ranges = ranges_of("t", 6, 0, 30)
    order: list[int] = []
    with client_of(cluster) as client:
        # Less than a batch: the first partition of the request gets one, the others nothing.
        fetcher = MultiPartitionFetcher(client, ranges, fetch_options(max_bytes_per_fetch=10, max_wait_ms=1_000))
        with fetcher:
            for topic_partition, fetched in fetcher:
                order.append(topic_partition.partition)
                fetcher.advance(fetched.scanned_offset)
    # Each gets its turn before any gets another.
    assert order == [0, 1, 2, 3, 4, 5] * 3


def test_a_batch_larger_than_a_partitions_share_arrives(cluster: TcpCluster) -> None:
    log = log_of(cluster, "t", 6, batches=1)
    for number in (2, 4):
        log.batches["t", number] = [(0, 10, record_batch(0, [b"%d" % n + b" " * 20_000 for n in range(10)]))]
    cluster.script(FetchRequest, log)
    ranges = ranges_of("t", 6, 0, 10)
    assert read(cluster, ranges, max_partition_fetch_bytes=16 * KIB, max_wait_ms=1_000) == whole(ranges)


def test_what_is_asked_for_at_once_stays_within_half_of_the_buffer(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, log_of(cluster, "t", 6))
    ranges = ranges_of("t", 6, 0, 30)
    # Room for three of the smallest asks of 16 KiB.
    assert read(cluster, ranges, max_buffered_bytes=96 * KIB, max_wait_ms=1_000) == whole(ranges)
    for seen in cluster.requests(FetchRequest):
        asked = [p.partition_max_bytes for topic in seen.request.topics for p in topic.partitions]
        assert sum(asked) <= 48 * KIB
        assert seen.request.max_bytes <= 48 * KIB
    assert asked_partitions(cluster)[:2] == [[0, 1, 2], [3, 4, 5]]


def test_partitions_with_nothing_to_give_yet_do_not_hold_up_the_others(cluster: TcpCluster) -> None:
    log = log_of(cluster, "t", 6)
    # Behind an open transaction, until the others are read.
    log.visible = {("t", 0): 0, ("t", 1): 10, ("t", 2): 0}
    cluster.script(FetchRequest, log)
    ranges = ranges_of("t", 6, 0, 30)
    found: dict[int, int] = defaultdict(int)
    with client_of(cluster) as client:
        fetcher = MultiPartitionFetcher(client, ranges, fetch_options(max_buffered_bytes=64 * KIB, max_wait_ms=1))
        with fetcher:
            for topic_partition, fetched in fetcher:
                found[topic_partition.partition] += fetched.scanned_offset - fetched.start_offset
                fetcher.advance(fetched.scanned_offset)
                if [found[number] for number in range(6)] == [0, 10, 0, 30, 30, 30]:
                    log.visible.clear()
    assert dict(found) == dict.fromkeys(range(6), 30)


def test_ranges_that_wait_are_named_when_nothing_moves(cluster: TcpCluster) -> None:
    log = log_of(cluster, "t", 3)
    log.visible = {("t", 1): 10, ("t", 2): 20}
    cluster.ends.update({("t", number): (0, 30) for number in range(3)})
    cluster.script(FetchRequest, log)
    with pytest.raises(
        DeadlineError, match=r"Reading t-[12] \[0, 30\) \(and 1 other ranges\): no progress at offset [12]0 for 300 ms"
    ):
        read(cluster, ranges_of("t", 3, 0, 30), poll_timeout_ms=300)


def test_the_next_request_of_every_broker_is_on_its_way_while_an_answer_is_decoded(cluster: TcpCluster) -> None:
    cluster.leaders["t", 1] = (1, 0)
    cluster.script(FetchRequest, log_of(cluster, "t", 2))
    ranges = ranges_of("t", 2, 0, 30)
    with client_of(cluster) as client:
        with MultiPartitionFetcher(client, ranges, fetch_options(max_bytes_per_fetch=10)) as fetcher:
            # Both brokers are connected to from here on: at first, one may answer before the other is reached.
            drain(fetcher, ranges)
        fetcher = MultiPartitionFetcher(client, ranges, fetch_options(max_bytes_per_fetch=10))
        with fetcher:
            next(fetcher)
            assert [connection.in_flight for connection in fetcher.connections] == [1, 1]


def test_connections_of_finished_ranges_owe_nothing_and_are_used_again(cluster: TcpCluster, wire: WireTrace) -> None:
    cluster.leaders["t", 1] = (1, 0)
    cluster.script(FetchRequest, log_of(cluster, "t", 2))
    ranges = ranges_of("t", 2, 0, 30)
    with client_of(cluster) as client:
        for _ in range(5):
            with MultiPartitionFetcher(client, ranges, fetch_options(max_bytes_per_fetch=10)) as fetcher:
                assert drain(fetcher, ranges) == whole(ranges)
    # One connection to ask for metadata, one a broker to fetch; a warm read asks for nothing but records.
    counts = wire.counts()
    assert counts.pop("Fetch") == len(cluster.requests(FetchRequest))
    assert counts == {"ApiVersions": 3, "Metadata": 1}


@pytest.mark.parametrize("fault", [Close, FetchScript(error_code=6)], ids=repr)
@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_fault_of_one_broker_loses_and_repeats_nothing(cluster: TcpCluster, fault: Any, before: int) -> None:
    for number in range(3, 6):
        cluster.leaders["t", number] = (1, 0)
    log = log_of(cluster, "t", 6)
    cluster.script(FetchRequest, log, broker_id=0)
    cluster.script(FetchRequest, *[log] * before, fault, log, broker_id=1)
    ranges = ranges_of("t", 6, 3, 28)
    assert read(cluster, ranges, max_bytes_per_fetch=10) == whole(ranges)


def test_a_broker_that_hangs_does_not_stop_the_ranges_of_others(cluster: TcpCluster) -> None:
    cluster.leaders["t", 1] = (1, 0)
    log = log_of(cluster, "t", 2)
    cluster.script(FetchRequest, log, broker_id=0)
    cluster.script(FetchRequest, Silence, log, broker_id=1)
    ranges = ranges_of("t", 2, 0, 30)
    order: list[int] = []
    with client_of(cluster, request_timeout_ms=300) as client:
        fetcher = MultiPartitionFetcher(client, ranges, fetch_options(max_bytes_per_fetch=10))
        with fetcher:
            for topic_partition, fetched in fetcher:
                order.append(topic_partition.partition)
                fetcher.advance(fetched.scanned_offset)
    assert order == [0, 0, 0, 1, 1, 1]


def test_a_partition_without_a_leader_does_not_stop_the_others(cluster: TcpCluster) -> None:
    cluster.leaders["t", 0] = (-1, -1)
    log = log_of(cluster, "t", 2)
    cluster.script(FetchRequest, log)
    ranges = ranges_of("t", 2, 0, 30)
    order: list[int] = []
    with client_of(cluster) as client:
        fetcher = MultiPartitionFetcher(client, ranges, fetch_options(max_bytes_per_fetch=10))
        with fetcher:
            for topic_partition, fetched in fetcher:
                order.append(topic_partition.partition)
                fetcher.advance(fetched.scanned_offset)
                if order == [1, 1, 1]:
                    cluster.leaders["t", 0] = (0, 1)
    assert order == [1, 1, 1, 0, 0, 0]


def test_one_partition_that_is_refused_for_good_fails_the_task_and_is_named(cluster: TcpCluster) -> None:
    log = log_of(cluster, "t", 3)
    log.errors = {("t", 1): (2, -1, -1)}
    cluster.script(FetchRequest, log)
    with pytest.raises(BrokerError, match=r"\[CORRUPT_MESSAGE\] Fetching t-1 \[0, 30\) at offset 0"):
        read(cluster, ranges_of("t", 3, 0, 30))


def test_a_lost_range_is_reported_after_what_came_with_it_and_can_be_resumed(cluster: TcpCluster) -> None:
    log = log_of(cluster, "t", 3)
    log.errors = {("t", 1): (1, -1, -1)}
    cluster.ends["t", 1] = (20, 30)
    cluster.script(FetchRequest, log)
    ranges = ranges_of("t", 3, 0, 30)
    with client_of(cluster) as client, MultiPartitionFetcher(client, ranges, fetch_options()) as fetcher:
        with pytest.raises(OffsetOutOfRangeError) as caught:
            drain(fetcher, ranges)
        error = caught.value
        assert error.offset_range == ranges[1]
        assert (error.requested_offset, error.log_start_offset, error.log_end_offset) == (0, 20, 30)
        assert [fetcher.position(found.topic_partition) for found in ranges] == [30, 0, 30]
        log.errors.clear()
        fetcher.resume(ranges[1].topic_partition, 20)
        assert drain(fetcher, ranges) == {ranges[1].topic_partition: [*range(20, 30)]}


def test_topics_made_again_are_named_one_by_one_and_can_be_gone_on_with(cluster: TcpCluster) -> None:
    cluster.add_topic("u")
    ranges = [OffsetRange(TopicPartition("t", 0), 3, 30), OffsetRange(TopicPartition("u", 0), 0, 20)]
    log = BrokerLog({("t", 0): batches_of(3), ("u", 0): batches_of(2)}, cluster.topic_ids)

    def recreated(request: Any) -> Any:
        log.errors = {("t", 0): (100, -1, -1), ("u", 0): (100, -1, -1)}
        refused = log(request)
        log.errors = {}
        cluster.topic_ids.update(t=uuid.uuid4(), u=uuid.uuid4())
        return refused

    cluster.script(FetchRequest, recreated, log)
    with client_of(cluster) as client, MultiPartitionFetcher(client, ranges, fetch_options()) as fetcher:
        lost: list[OffsetRange] = []
        for _ in ranges:
            with pytest.raises(TopicRecreatedError) as caught:
                next(fetcher)
            assert caught.value.requested_offset == caught.value.offset_range.start_offset
            lost.append(caught.value.offset_range)
            fetcher.resume(lost[-1].topic_partition, lost[-1].start_offset)
        # Which is noticed first depends on whose answer came last.
        assert sorted(lost, key=str) == sorted(ranges, key=str)
        assert drain(fetcher, ranges) == whole(ranges)


def test_a_range_resumed_at_its_end_is_done(cluster: TcpCluster) -> None:
    log = log_of(cluster, "t", 1)
    log.errors = {("t", 0): (1, -1, -1)}
    cluster.ends["t", 0] = (500, 600)
    cluster.script(FetchRequest, log)
    ranges = ranges_of("t", 1, 0, 30)
    with client_of(cluster) as client, MultiPartitionFetcher(client, ranges, fetch_options()) as fetcher:
        with pytest.raises(OffsetOutOfRangeError):
            next(fetcher)
        fetcher.resume(ranges[0].topic_partition, 30)
        with pytest.raises(StopIteration):
            next(fetcher)


def test_a_position_that_decoding_does_not_confirm_names_its_partition(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, log_of(cluster, "t", 3))
    with client_of(cluster) as client:
        fetcher = MultiPartitionFetcher(client, ranges_of("t", 3, 0, 30), fetch_options())
        next(fetcher)
        next(fetcher)
        with pytest.raises(CorruptRecordsError, match=r"\[POSITION_MISMATCH\] Reading t-1 \[0, 30\)"):
            fetcher.advance(17)


def test_a_closed_fetcher_does_not_look_as_if_its_ranges_were_read(cluster: TcpCluster) -> None:
    with client_of(cluster) as client:
        fetcher = MultiPartitionFetcher(client, ranges_of("t", 1, 0, 30), fetch_options())
        fetcher.close()
        with pytest.raises(RuntimeError, match="closed"):
            next(fetcher)


@pytest.mark.parametrize(
    ("missing", "message"),
    [(TopicPartition("gone", 0), "Topic 'gone' does not exist"), (TopicPartition("t", 9), "'t' has no partition 9")],
)
def test_a_topic_or_partition_that_does_not_exist_is_named(
    cluster: TcpCluster, missing: TopicPartition, message: str
) -> None:
    cluster.script(FetchRequest, log_of(cluster, "t", 2))
    with pytest.raises(BrokerError, match=message):
        read(cluster, [*ranges_of("t", 2, 0, 30), OffsetRange(missing, 0, 5)])


def test_a_partition_that_never_gets_a_leader_is_named_when_nothing_moves(cluster: TcpCluster) -> None:
    cluster.leaders["t", 0] = cluster.leaders["t", 1] = (-1, -1)
    with pytest.raises(DeadlineError, match=r"Last failure: \[LEADER_NOT_AVAILABLE\] t-[01] has no leader"):
        read(cluster, ranges_of("t", 2, 0, 30), poll_timeout_ms=300)


def test_the_first_place_goes_round_and_who_has_nothing_to_give_comes_last() -> None:
    options = ConnectionOptions((("not-asked", 9092),))
    reads = [
        PartitionRead(offset_range, fetch_options(), options, RecordSizes(), lambda: 0.0)
        for offset_range in ranges_of("t", 6, 0, 30)
    ]
    fed, empty, starved, done, *left_out = reads
    done.resume(30)
    assert order_next(reads, fed=[fed, done], starved=[starved], empty=[empty]) == [starved, *left_out, fed, empty]


def test_where_records_are_and_none_came_more_is_asked_for(cluster: TcpCluster) -> None:
    large = record_batch(0, [b"%d" % n + b" " * 20_000 for n in range(10)])
    log = BrokerLog({("t", number): [(0, 10, large)] for number in range(3)}, cluster.topic_ids)
    # What the topic's first answer tells is of small batches.
    log.batches["t", 0] = batches_of(1)
    cluster.script(FetchRequest, log)
    ranges = ranges_of("t", 3, 0, 10)
    assert read(cluster, ranges, max_wait_ms=1_000) == whole(ranges)
    asked = [
        {p.partition: p.partition_max_bytes for p in seen.request.topics[0].partitions}
        for seen in cluster.requests(FetchRequest)
    ]
    assert asked[0] == dict.fromkeys(range(3), 16 * KIB)
    assert asked[1] == {1: 32 * KIB, 2: 32 * KIB}


def test_one_record_of_a_large_batch_does_not_pass_for_large_records(cluster: TcpCluster) -> None:
    batch = record_batch(0, [b"%d" % n + b" " * 1_000 for n in range(10)])
    cluster.script(FetchRequest, BrokerLog({("t", 0): [(0, 10, batch)]}, cluster.topic_ids))
    offset_range = OffsetRange(TopicPartition("t", 0), 9, 10)
    with client_of(cluster) as client, MultiPartitionFetcher(client, [offset_range], fetch_options()) as fetcher:
        drain(fetcher, [offset_range])
        assert record_sizes_of(client).get("t") == RecordSize(len(batch) / 10, len(batch))


def test_a_leader_that_gives_no_end_of_its_log_holds_up_other_ranges_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with TcpCluster(2) as cluster:
        for number, topic in enumerate(("t", "u")):
            cluster.add_topic(topic, leader=number)
            cluster.ends[topic, 0] = (0, 30)

        def not_caught_up(request: Any) -> Any:
            return cluster.list_offsets(request, errors={0: 78})

        cluster.script(ListOffsetsRequest, not_caught_up, broker_id=1)
        log = BrokerLog({("t", 0): batches_of(3), ("u", 0): batches_of(3)}, cluster.topic_ids, visible={("u", 0): 10})
        cluster.script(FetchRequest, log)
        ranges = [OffsetRange(TopicPartition(topic, 0), 0, 30) for topic in ("t", "u")]
        # A look of this length would be the whole time.
        with (
            client_of(cluster, api_timeout_ms=30_000) as client,
            MultiPartitionFetcher(client, ranges, fetch_options()) as fetcher,
        ):
            deadlines: list[float] = []

            def noting(*args: Any, **kwargs: Any) -> Any:
                deadlines.append(kwargs["deadline"].timeout_ms)
                return list_offsets(*args, **kwargs)

            monkeypatch.setattr(fetcher_module, "list_offsets", noting)
            read = fetcher._reads[ranges[1].topic_partition]
            began_at = read.end_check_at = 0.0
            with pytest.raises(DeadlineError):
                fetcher._log_ends([read], Deadline(60_000))
            fetcher._check_ends([read], Deadline(60_000))
            assert max(deadlines) <= 2_000
            # Not looked at again at once, which would leave the others no time.
            assert read.end_check_at > began_at
