"""`pyspark-kafka tail` against scripted brokers: silent ones, damaged bytes, records that cannot be represented."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial

import pytest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from typer.testing import Result

from kit.fakes.handlers import HANDLERS
from kit.fakes.scripts import Close, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.programs.cli import invoke
from kit.record_batches import batch, plain_batch, record
from pyspark_kafka._client.client.fetch import progress_timeout

# A broker that is silent is given up soon.
_SOON = ("-o", "default.api.timeout.ms=20000", "-o", "request.timeout.ms=1000")


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    """Two brokers; topic `t` has a partition led by each, with 10 records each."""
    with TcpCluster(count=2) as cluster:
        cluster.add_topic("t", partitions=2)
        for number in range(2):
            cluster.leaders["t", number] = (number, 0)
            cluster.logs["t", number].append(plain_batch(0, 10))
        yield cluster


def run(cluster: TcpCluster, *arguments: str) -> Result:
    host, port = cluster.address(0)
    return invoke("tail", "t", "--json", "--bootstrap-servers", f"{host}:{port}", *arguments)


def places(done: Result) -> list[tuple[int, int]]:
    return sorted((told["partition"], told["offset"]) for told in map(json.loads, done.stdout.splitlines()))


def test_broker_that_tells_no_offsets_costs_only_its_partitions(cluster: TcpCluster) -> None:
    cluster.script(ListOffsetsRequest, Silence(), broker_id=1)
    done = run(cluster, "--from", "earliest", *_SOON)
    assert (done.exit_code, places(done)) == (3, [(0, offset) for offset in range(10)]), done.output
    assert "t-1 is not read: [" in done.stderr


def test_broker_that_returns_no_records_costs_only_its_partitions(
    cluster: TcpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.script(FetchRequest, Silence(), broker_id=1)
    monkeypatch.setattr(progress_timeout, "_SILENT_S", 0.1)
    done = run(cluster, "--from", "earliest", "-o", "kafkaConsumer.pollTimeoutMs=1000")
    assert (done.exit_code, places(done)) == (3, [(0, offset) for offset in range(10)]), done.output
    assert "t-1 is not read to the end: [" in done.stderr


def test_lost_connections_are_made_again(cluster: TcpCluster) -> None:
    responds = partial(HANDLERS[ListOffsetsRequest.name], cluster)
    cluster.script(ListOffsetsRequest, *(3 * [Close(), Close(), responds]), responds)
    done = run(cluster, "--from", "earliest")
    expected = [(number, offset) for number in (0, 1) for offset in range(10)]
    assert (done.exit_code, places(done), done.stderr) == (0, expected, "")


def test_broker_that_closes_each_connection_costs_only_its_partitions(cluster: TcpCluster) -> None:
    cluster.script(ListOffsetsRequest, Close(), broker_id=1)
    done = run(cluster, "--from", "earliest", *_SOON)
    assert (done.exit_code, places(done)) == (3, [(0, offset) for offset in range(10)]), done.output
    assert "t-1 is not read: [" in done.stderr


def test_cluster_that_tells_nothing_is_an_error(cluster: TcpCluster) -> None:
    cluster.script(ListOffsetsRequest, Silence())
    done = run(cluster, *_SOON)
    assert (done.exit_code, done.stdout) == (4, "")
    assert "Hint:" in done.stderr


def test_damaged_batch_ends_only_its_partition(cluster: TcpCluster) -> None:
    log = cluster.logs["t", 1]
    log.append(plain_batch(0, 5))
    base, end, data = log.batches[1]
    log.batches[1] = (base, end, data[:-1] + bytes([data[-1] ^ 1]))
    done = run(cluster, "--from", "earliest")
    assert done.exit_code == 3, done.output
    assert places(done) == [(number, offset) for number in (0, 1) for offset in range(10)]
    assert "t-1 is not read from offset 10 on: [" in done.stderr


def damage(cluster: TcpCluster, partition: int, number: int) -> None:
    """Change the last byte of a batch."""
    batches = cluster.logs["t", partition].batches
    base, end, data = batches[number]
    batches[number] = (base, end, data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize(("arguments", "shown"), [((), range(10)), (("-n", "100"), range(10)), (("--grep", "5"), [5])])
def test_damaged_batch_among_the_last_records_is_named(
    cluster: TcpCluster, arguments: tuple[str, ...], shown: Iterable[int]
) -> None:
    """A partition whose last records cannot be read is not an empty partition."""
    damage(cluster, 1, 0)
    done = run(cluster, *arguments)
    assert (done.exit_code, places(done)) == (3, [(0, offset) for offset in shown]), done.output
    assert done.stderr.count("t-1 is not read from offset 0 to 10: [") == 1
    assert run(cluster, "--partition", "1", *arguments).exit_code == 3


def test_damaged_batch_before_the_last_records_hides_none_of_them(cluster: TcpCluster) -> None:
    for _ in range(4):
        cluster.logs["t", 1].append(plain_batch(0, 50))
    damage(cluster, 1, 1)
    for count in ("180", "200"):
        done = run(cluster, "--partition", "1", "-n", count)
        offsets = [offset for _, offset in places(done)]
        assert (done.exit_code, offsets) == (3, list(range(offsets[0], 210))), done.output
        assert 60 <= offsets[0] <= 160
    # The same batch costs nothing if it is not among the last records.
    done = run(cluster, "--partition", "1", "-n", "100")
    assert (done.exit_code, len(places(done))) == (0, 100), done.output


def test_record_without_a_possible_time_is_shown_as_bad_and_those_behind_it_are_read(cluster: TcpCluster) -> None:
    late = 1 << 62
    log = cluster.logs["t", 1]
    log.append(batch([record(0)], base_time=late, max_time=late))
    log.append(plain_batch(0, 2))
    for arguments in (("--from", "earliest"), ("-n", "100")):
        done = run(cluster, *arguments, "--partition", "1")
        assert done.exit_code == 0, done.output
        told = [json.loads(line) for line in done.stdout.splitlines()]
        assert sorted(each["offset"] for each in told) == list(range(13))
        (bad,) = [each for each in told if "bad" in each]
        assert (bad["offset"], bad["timestamp_ms"], bad["bad"]["reason"]) == (10, None, "TIMESTAMP_OUT_OF_RANGE")


def test_last_records_are_found_without_reading_the_whole_log(cluster: TcpCluster) -> None:
    for _ in range(50):
        cluster.logs["t", 0].append(plain_batch(0, 100))
    done = run(cluster, "-n", "3", "--partition", "0")
    assert (done.exit_code, places(done)) == (0, [(0, 5007), (0, 5008), (0, 5009)])
    offsets = [
        partition.fetch_offset
        for seen in cluster.requests(FetchRequest)
        for topic in seen.request.topics
        for partition in topic.partitions
    ]
    assert min(offsets) >= 5000
