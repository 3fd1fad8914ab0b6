"""Reading many ranges over sockets: one connection for each broker; what is decided without them: tests/unit."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from kit.fakes.handlers.fetch import BrokerLog, FetchScript
from kit.fakes.logs import batches_of, record_batch
from kit.fakes.scripts import Close
from kit.fakes.tcp_cluster import TcpCluster
from kit.fixtures.wire import WireTrace
from kit.reading import FAST_FETCH
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.fetch import fetcher as fetcher_module
from pyspark_kafka._client.client.fetch.errors import OffsetOutOfRangeError
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.fetch.request import RecordSize, record_sizes_of
from pyspark_kafka._client.client.fetch.session.steps import FetchLogEnds
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.messages import FetchRequest, ListOffsetsRequest
from pyspark_kafka._client.options import FetchOptions
from pyspark_kafka.errors import BrokerError, DeadlineError
from pyspark_kafka.records import iter_decode

KIB = 1 << 10


def client_of(cluster: TcpCluster, **options: Any) -> KafkaClient:
    return cluster.client(**({"request_timeout_ms": 2_000} | options))


def fetch_options(**changes: Any) -> FetchOptions:
    return FetchOptions(**(FAST_FETCH | changes))


def ranges_of(topic: str, partitions: int, start: int, end: int) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition(topic, number), start, end) for number in range(partitions)]


def log_of(cluster: TcpCluster, topic: str, partitions: int, batches: int = 3) -> BrokerLog:
    return BrokerLog({(topic, number): batches_of(batches) for number in range(partitions)}, cluster.topic_ids)


def drain(fetcher: Fetcher, ranges: list[OffsetRange]) -> dict[TopicPartition, list[int]]:
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
        fetcher.confirm(topic_partition, position)
    return found


def read(cluster: TcpCluster, ranges: list[OffsetRange], **fetch: Any) -> dict[TopicPartition, list[int]]:
    with client_of(cluster) as client, Fetcher(client, ranges, fetch_options(**fetch)) as fetcher:
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
    with client_of(cluster) as client, Fetcher(client, ranges, fetch_options()) as fetcher:
        drain(fetcher, ranges)
    assert len(cluster.requests(FetchRequest)) == 2
    by_broker = {
        seen.broker_id: [p.partition for p in seen.request.topics[0].partitions]
        for seen in cluster.requests(FetchRequest)
    }
    assert by_broker == {0: [0, 1, 2], 1: [3, 4, 5]}


def test_nothing_to_read_needs_no_broker(cluster: TcpCluster) -> None:
    assert read(cluster, ranges_of("t", 3, 7, 7)) == {}
    assert cluster.seen == []


def test_the_next_request_of_every_broker_is_on_its_way_while_a_response_is_decoded(cluster: TcpCluster) -> None:
    cluster.leaders["t", 1] = (1, 0)
    cluster.script(FetchRequest, log_of(cluster, "t", 2))
    ranges = ranges_of("t", 2, 0, 30)
    with client_of(cluster) as client:
        with Fetcher(client, ranges, fetch_options(max_bytes_per_fetch=10)) as fetcher:
            # Both brokers are connected to from here on: at first, one may response before the other is reached.
            drain(fetcher, ranges)
        fetcher = Fetcher(client, ranges, fetch_options(max_bytes_per_fetch=10))
        with fetcher:
            next(fetcher)
            assert [connection.in_flight for connection in fetcher.connections] == [1, 1]


def test_connections_of_finished_ranges_owe_nothing_and_are_used_again(cluster: TcpCluster, wire: WireTrace) -> None:
    cluster.leaders["t", 1] = (1, 0)
    cluster.script(FetchRequest, log_of(cluster, "t", 2))
    ranges = ranges_of("t", 2, 0, 30)
    with client_of(cluster) as client:
        for _ in range(5):
            with Fetcher(client, ranges, fetch_options(max_bytes_per_fetch=10)) as fetcher:
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


def test_a_lost_range_is_reported_after_what_came_with_it_and_can_be_resumed(cluster: TcpCluster) -> None:
    log = log_of(cluster, "t", 3)
    log.errors = {("t", 1): (1, -1, -1)}
    cluster.ends["t", 1] = (20, 30)
    cluster.script(FetchRequest, log)
    ranges = ranges_of("t", 3, 0, 30)
    with client_of(cluster) as client, Fetcher(client, ranges, fetch_options()) as fetcher:
        with pytest.raises(OffsetOutOfRangeError) as caught:
            drain(fetcher, ranges)
        error = caught.value
        assert error.offset_range == ranges[1]
        assert (error.requested_offset, error.log_start_offset, error.log_end_offset) == (0, 20, 30)
        assert [fetcher.position(found.topic_partition) for found in ranges] == [30, 0, 30]
        log.errors.clear()
        fetcher.resume(ranges[1].topic_partition, 20)
        assert drain(fetcher, ranges) == {ranges[1].topic_partition: [*range(20, 30)]}


def test_a_closed_fetcher_does_not_look_as_if_its_ranges_were_read(cluster: TcpCluster) -> None:
    with client_of(cluster) as client:
        fetcher = Fetcher(client, ranges_of("t", 1, 0, 30), fetch_options())
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
        read(cluster, ranges_of("t", 2, 0, 30), poll_timeout_ms=1_500)


def test_one_record_of_a_large_batch_does_not_pass_for_large_records(cluster: TcpCluster) -> None:
    batch = record_batch(0, [b"%d" % n + b" " * 1_000 for n in range(10)])
    cluster.script(FetchRequest, BrokerLog({("t", 0): [(0, 10, batch)]}, cluster.topic_ids))
    offset_range = OffsetRange(TopicPartition("t", 0), 9, 10)
    with client_of(cluster) as client, Fetcher(client, [offset_range], fetch_options()) as fetcher:
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
            Fetcher(client, ranges, fetch_options()) as fetcher,
        ):
            deadlines: list[float] = []

            def noting(*args: Any, **kwargs: Any) -> Any:
                deadlines.append(kwargs["deadline"].timeout_ms)
                return list_offsets(*args, **kwargs)

            monkeypatch.setattr(fetcher_module, "list_offsets", noting)
            step = FetchLogEnds((ranges[1].topic_partition,), alone=False)
            with pytest.raises(DeadlineError):
                fetcher._fetch_log_ends(step, Deadline(60_000))
            assert max(deadlines) <= 2_000
