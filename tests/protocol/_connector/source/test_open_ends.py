"""Tasks with open ends, and topics that go away while they are looked up, against a scripted broker."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kit import reading
from kit.fakes.handlers.fetch import BrokerLog, FetchScript
from kit.fakes.logs import batches_of
from kit.fakes.tcp_cluster import TcpCluster
from kit.reading import FAST_FETCH
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka._client.client.fetch.errors import TopicRecreatedError
from pyspark_kafka._client.client.wire.messages import FetchRequest, ListOffsetsRequest, MetadataRequest
from pyspark_kafka._client.options import BatchReadOptions, Subscription
from pyspark_kafka._connector.planning.open_ends import NO_END, OpenEnds
from pyspark_kafka._connector.source.driver.batch import KafkaBatch
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka.errors import BrokerError, DataLossError, OptionError

TP = TopicPartition("t", 0)
BOTH = OpenEnds(0, NO_END)


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    """One partition with the records 0 to 29."""
    with TcpCluster() as cluster:
        cluster.add_topic("t")
        cluster.ends["t", 0] = (0, 30)
        cluster.script(FetchRequest, BrokerLog({("t", 0): batches_of(3)}, cluster.topic_ids))
        yield cluster
        close_clients()


def read(
    cluster: TcpCluster,
    planned: tuple[int, int],
    open_ends: OpenEnds | None,
    *,
    fail_on_data_loss: bool = True,
    **fetch: Any,
) -> list[int]:
    task = KafkaInputPartition(OffsetRange(TP, *planned), open_ends=open_ends)
    rows = reading.read(cluster.options(), task=task, fail_on_data_loss=fail_on_data_loss, **(FAST_FETCH | fetch))
    return [row["offset"] for row in rows]


def looked_up(cluster: TcpCluster) -> list[int]:
    """Return what was asked for, in the numbers of the protocol: -2 is the log's first offset, -1 its end."""
    return [
        partition.timestamp
        for seen in cluster.requests(ListOffsetsRequest)
        for topic in seen.request.topics
        for partition in topic.partitions
    ]


@pytest.mark.parametrize(
    ("planned", "open_ends", "expected", "asked"),
    [
        ((0, 10), BOTH, range(30), [-1]),
        ((7, 10), BOTH, range(30), [-2, -1]),
        ((7, 10), OpenEnds(7, 20), range(7, 20), [-1]),
        ((7, 10), OpenEnds(end_by=NO_END), range(7, 30), [-1]),
        ((0, 10), OpenEnds(start_from=0), range(10), [-2]),
        ((0, 10), OpenEnds(start_from=0, strict=False), range(10), list[int]()),
        ((7, 10), None, range(7, 10), list[int]()),
    ],
)
def test_task_looks_up_open_ends_and_nothing_else(
    cluster: TcpCluster, planned: tuple[int, int], open_ends: OpenEnds | None, expected: range, asked: list[int]
) -> None:
    assert read(cluster, planned, open_ends) == [*expected]
    assert looked_up(cluster) == asked


def test_an_open_range_that_is_empty_by_then_is_not_fetched(cluster: TcpCluster) -> None:
    cluster.ends["t", 0] = (30, 30)
    assert read(cluster, (7, 10), BOTH) == []
    assert cluster.requests(FetchRequest) == []


def test_a_worker_that_has_read_the_topic_before_asks_on_the_connection_that_it_has(cluster: TcpCluster) -> None:
    assert read(cluster, (0, 10), BOTH) == [*range(30)]
    connections, metadata = cluster.connections, len(cluster.requests(MetadataRequest))
    assert read(cluster, (0, 10), BOTH) == [*range(30)]
    assert cluster.connections == connections
    assert len(cluster.requests(MetadataRequest)) == metadata


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_head_that_ages_out_between_look_up_and_fetch_is_no_loss(
    cluster: TcpCluster, caplog: pytest.LogCaptureFixture, *, fail_on_data_loss: bool
) -> None:
    log = BrokerLog({("t", 0): batches_of(3)}, cluster.topic_ids)

    def aged_out(request: Any) -> Any:
        cluster.ends["t", 0] = (20, 30)
        return FetchScript(error_code=1, log_start_offset=20)(request)

    cluster.script(FetchRequest, aged_out, log)
    with caplog.at_level(logging.WARNING):
        assert read(cluster, (0, 10), BOTH, fail_on_data_loss=fail_on_data_loss) == [*range(20, 30)]
    assert caplog.records == []


def test_a_head_that_ages_out_again_before_the_first_record_is_read_is_no_loss(cluster: TcpCluster) -> None:
    def aged_out_to(start: int) -> Any:
        def answer(request: Any) -> Any:
            cluster.ends["t", 0] = (start, 30)
            return FetchScript(error_code=1, log_start_offset=start)(request)

        return answer

    log = BrokerLog({("t", 0): batches_of(3)}, cluster.topic_ids)
    cluster.script(FetchRequest, aged_out_to(10), aged_out_to(20), log)
    assert read(cluster, (0, 10), BOTH) == [*range(20, 30)]


def test_records_that_age_out_behind_the_first_one_read_are_lost(cluster: TcpCluster) -> None:
    def aged_out(request: Any) -> Any:
        cluster.ends["t", 0] = (20, 30)
        return FetchScript(error_code=1, log_start_offset=20)(request)

    cluster.script(FetchRequest, BrokerLog({("t", 0): batches_of(1)}, cluster.topic_ids), aged_out)
    with pytest.raises(DataLossError, match=r"COULD_NOT_READ_OFFSET_RANGE\] Offsets \[10, 20\) of t-0 \[0, 30\)"):
        read(cluster, (0, 10), BOTH)


@pytest.mark.parametrize(
    ("log", "open_ends", "crossed"),
    [((0, 5), OpenEnds(end_by=NO_END), r"\[7, 5\)"), ((12, 30), OpenEnds(start_from=0), r"\[12, 10\)")],
)
def test_end_of_an_option_that_the_log_has_passed_is_an_error_also_if_loss_is_tolerated(
    cluster: TcpCluster, log: tuple[int, int], open_ends: OpenEnds, crossed: str
) -> None:
    cluster.ends["t", 0] = log
    for fail_on_data_loss in (True, False):
        with pytest.raises(OptionError, match=rf"RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET\].* t-0 {crossed}"):
            read(cluster, (7, 10), open_ends, fail_on_data_loss=fail_on_data_loss)


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_topic_made_anew_under_a_warm_worker_is_looked_up_again(
    cluster: TcpCluster, *, fail_on_data_loss: bool
) -> None:
    assert read(cluster, (0, 10), BOTH) == [*range(30)]
    cluster.ends["t", 0] = (0, 10)
    cluster.script(FetchRequest, recreated_for(cluster), BrokerLog({("t", 0): batches_of(1)}, cluster.topic_ids))
    assert read(cluster, (0, 10), BOTH, fail_on_data_loss=fail_on_data_loss) == [*range(10)]


def test_a_topic_made_anew_again_and_again_is_an_error(cluster: TcpCluster) -> None:
    assert read(cluster, (0, 10), BOTH) == [*range(30)]
    cluster.script(FetchRequest, recreated_for(cluster))
    with pytest.raises(TopicRecreatedError, match="was recreated"):
        read(cluster, (0, 10), BOTH)


def remade(cluster: TcpCluster) -> None:
    cluster.topic_ids["t"] = uuid.uuid4()


def recreated_for(cluster: TcpCluster) -> Any:
    """Return a script that refuses a fetch by an id that the topic has no longer."""

    def refuse(request: Any) -> Any:
        remade(cluster)
        # UNKNOWN_TOPIC_ID
        return FetchScript(error_code=100)(request)

    return refuse


def batch_of(cluster: TcpCluster) -> KafkaBatch:
    options = BatchReadOptions(cluster.options(), Subscription("subscribe", ("t",)), fetch_offset_retry_interval_ms=0)
    return KafkaBatch(options, SOURCE_SCHEMA)


def deleting(cluster: TcpCluster) -> Any:
    """Return a script that deletes the topic when its offsets are asked for."""

    def delete(request: Any) -> Any:
        cluster.topic_ids.pop("t", None)
        return cluster.list_offsets(request, errors={0: 3})

    return delete


def test_a_topic_deleted_between_metadata_and_offsets_is_named_when_a_read_is_planned(cluster: TcpCluster) -> None:
    cluster.script(ListOffsetsRequest, deleting(cluster))
    with pytest.raises(BrokerError, match=r"\[UNKNOWN_TOPIC\] Topic 't' does not exist"):
        batch_of(cluster).planInputPartitions()


def test_a_topic_deleted_before_a_task_starts_is_named_by_the_task(cluster: TcpCluster) -> None:
    (planned,) = batch_of(cluster).planInputPartitions()
    assert planned == KafkaInputPartition(OffsetRange(TP, 0, 30), open_ends=BOTH)
    cluster.script(ListOffsetsRequest, deleting(cluster))
    with pytest.raises(DataLossError, match=r"PARTITIONS_DELETED\] t-0 was deleted after the read was planned"):
        read(cluster, (0, 30), BOTH)


def test_a_leader_that_does_not_know_a_new_topic_yet_is_asked_again(cluster: TcpCluster) -> None:
    def not_yet(request: Any) -> Any:
        return cluster.list_offsets(request, errors={0: 3})

    cluster.script(ListOffsetsRequest, not_yet, cluster.list_offsets)
    (planned,) = batch_of(cluster).planInputPartitions()
    assert planned == KafkaInputPartition(OffsetRange(TP, 0, 30), open_ends=BOTH)


def test_open_ends_are_of_tasks_of_one_range() -> None:
    other = OffsetRange(TopicPartition("t", 1), 0, 5)
    with pytest.raises(ValueError, match="several ranges cannot have open ends"):
        KafkaInputPartition(OffsetRange(TP, 0, 5), (other,), BOTH)
