"""A task of several ranges, and what a reader does about a log that was cut, against scripted brokers."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from kit.fakes.handlers.fetch import BrokerLog, FetchScript, epoch_end
from kit.fakes.logs import batches_of
from kit.fakes.tcp_cluster import TcpCluster
from kit.reading import FAST_FETCH, drain, reader_of
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka._client.client.fetch.errors import LogTruncatedError
from pyspark_kafka._client.client.wire.messages import FetchRequest, OffsetForLeaderEpochRequest
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka.errors import DataLossError

SCHEMA = pa.schema([SOURCE_SCHEMA.field(name) for name in ("topic", "partition", "offset")])


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster(2) as cluster:
        cluster.add_topic("t", partitions=4)
        yield cluster
        close_clients()


def log_of(cluster: TcpCluster) -> BrokerLog:
    return BrokerLog({("t", number): batches_of(3) for number in range(4)}, cluster.topic_ids)


def ranges_of(*bounds: tuple[int, int]) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", number), *bound) for number, bound in enumerate(bounds)]


def read(
    cluster: TcpCluster, ranges: list[OffsetRange], *, fail_on_data_loss: bool = True, **fetch: Any
) -> dict[int, list[int]]:
    """Read ranges in one task; return the offsets by partition."""
    reader = reader_of(
        cluster.options(),
        *ranges,
        columns=SCHEMA.names,
        fail_on_data_loss=fail_on_data_loss,
        **(FAST_FETCH | fetch),
    )
    found: dict[int, list[int]] = {}
    for batch in drain(reader):
        assert batch.schema.equals(SCHEMA)
        assert set(batch.column("topic").to_pylist()) == {"t"}
        (partition,) = set(batch.column("partition").to_pylist())
        found.setdefault(partition, []).extend(batch.column("offset").to_pylist())
    return found


def test_a_planned_task_of_several_ranges_pickles_and_compares_by_value() -> None:
    first, *more = ranges_of((0, 5), (3, 9))
    partition = KafkaInputPartition(first, tuple(more))
    assert pickle.loads(pickle.dumps(partition)) == partition  # noqa: S301 - our own bytes
    assert partition.offset_ranges == (first, *more)
    assert KafkaInputPartition(first).offset_ranges == (first,)


@pytest.mark.parametrize("max_bytes", [10, 8 << 20])
def test_rows_of_every_range_come_once_in_order_with_their_partition(cluster: TcpCluster, max_bytes: int) -> None:
    cluster.script(FetchRequest, log_of(cluster))
    ranges = ranges_of((0, 30), (5, 6), (13, 27), (29, 30))
    found = read(cluster, ranges, max_bytes_per_fetch=max_bytes)
    assert found == {number: [*range(r.start_offset, r.end_offset)] for number, r in enumerate(ranges)}


def test_a_warm_worker_asks_for_nothing_but_records(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, log_of(cluster))
    read(cluster, ranges_of((0, 30)))
    before = len(cluster.seen)
    for offset in range(5):
        assert read(cluster, ranges_of((offset, offset + 1))) == {0: [offset]}
    assert [seen.name for seen in cluster.seen[before:]] == ["FetchRequest"] * 5


def test_a_lost_range_among_several_fails_the_task(cluster: TcpCluster) -> None:
    log = log_of(cluster)
    log.errors = {("t", 1): (1, -1, -1)}
    cluster.ends["t", 1] = (20, 30)
    cluster.script(FetchRequest, log)
    with pytest.raises(DataLossError, match=r"Offsets \[0, 20\) of t-1 \[0, 30\) cannot be read"):
        read(cluster, ranges_of((0, 30), (0, 30), (0, 30)))


def test_a_lost_range_among_several_is_gone_on_behind_where_loss_is_tolerated(
    cluster: TcpCluster, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_of(cluster)
    refusing = BrokerLog(log.batches, cluster.topic_ids, errors={("t", 1): (1, -1, -1)})
    cluster.ends["t", 1] = (20, 30)
    cluster.script(FetchRequest, refusing, log)
    with caplog.at_level(logging.WARNING):
        found = read(cluster, ranges_of((0, 30), (0, 30), (0, 30)), fail_on_data_loss=False)
    assert found == {0: [*range(30)], 1: [*range(20, 30)], 2: [*range(30)]}
    assert [message.split(" cannot")[0] for message in caplog.messages] == ["Offsets [0, 20) of t-1 [0, 30)"]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("tolerated", [True, False])
def test_a_log_cut_below_the_position_fails_or_is_gone_on_from_without_repetition(
    cluster: TcpCluster, caplog: pytest.LogCaptureFixture, partitions: int, *, tolerated: bool
) -> None:
    log = log_of(cluster)

    def moved(request: Any) -> Any:
        for number in range(partitions):
            cluster.leaders["t", number] = (1, 7)
        return FetchScript(error_code=6)(request)

    cluster.script(FetchRequest, *[log] * partitions, moved, broker_id=0)
    cluster.script(FetchRequest, log, broker_id=1)
    cluster.script(OffsetForLeaderEpochRequest, epoch_end(4))
    ranges = ranges_of(*[(0, 30)] * partitions)
    if not tolerated:
        with pytest.raises(LogTruncatedError, match=r"records in \[4, 10\)"):
            read(cluster, ranges, max_bytes_per_fetch=10)
        return
    with caplog.at_level(logging.WARNING):
        found = read(cluster, ranges, max_bytes_per_fetch=10, fail_on_data_loss=False)
    assert found == {number: [*range(30)] for number in range(partitions)}
    assert len(caplog.messages) == partitions
    assert all("The read continues at 10" in message for message in caplog.messages)
