"""A leader that changes while a range is read: hints are followed without asking around, cut logs are noticed."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kit.fakes.handlers.fetch import BrokerLog, epoch_end
from kit.fakes.logs import batches_of
from kit.fakes.tcp_cluster import TcpCluster
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.fetch.errors import LogTruncatedError
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.wire.messages import FetchRequest, MetadataRequest, OffsetForLeaderEpochRequest
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka.errors import DataLossError

T0 = TopicPartition("t", 0)


def with_epoch(batch: tuple[int, int, bytes], epoch: int) -> tuple[int, int, bytes]:
    """Return a batch as the leader of an epoch appended it; the epoch stands outside of the checksum."""
    base, end, data = batch
    return base, end, data[:12] + struct.pack(">i", epoch) + data[16:]


class Change:
    """Topic t, led by broker 0 in epoch 3 until the second fetch of broker 0, then by broker 1 in epoch 4."""

    def __init__(self, cluster: TcpCluster) -> None:
        self.cluster = cluster
        cluster.add_topic("t")
        cluster.leaders["t", 0] = (0, 3)
        batches = [with_epoch(batch, 3) for batch in batches_of(4)]
        self.old = BrokerLog({("t", 0): batches}, cluster.topic_ids)
        self.refusing = BrokerLog({("t", 0): batches}, cluster.topic_ids, errors={("t", 0): (6, -1, -1)})
        cluster.script(FetchRequest, self.old, self._refuse, broker_id=0)
        cluster.script(FetchRequest, self.old, broker_id=1)

    def _refuse(self, request: Any) -> Any:
        self.cluster.leaders["t", 0] = (1, 4)
        return self.refusing(request)

    def hint(self, leader_id: int, epoch: int, *, address: bool = True) -> None:
        self.refusing.errors = {("t", 0): (6, leader_id, epoch)}
        self.refusing.nodes = [(leader_id, *self.cluster.address(1))] if address else []

    def read(self) -> list[int]:
        """Return the positions that were asked for and answered."""
        options = ConnectionOptions(
            self.cluster.bootstrap_servers, retry_backoff_ms=1, retry_backoff_max_ms=5, request_timeout_ms=20_000
        )
        fetch = FetchOptions(max_wait_ms=1, poll_timeout_ms=20_000, max_bytes_per_fetch=10)
        with KafkaClient(options) as client, Fetcher(client, [OffsetRange(T0, 0, 40)], fetch) as fetcher:
            return [fetched.start_offset for _, fetched in fetcher]

    def asked_epochs(self) -> list[tuple[int, int]]:
        return [
            (
                seen.request.topics[0].partitions[0].current_leader_epoch,
                seen.request.topics[0].partitions[0].leader_epoch,
            )
            for seen in self.cluster.requests(OffsetForLeaderEpochRequest)
        ]


@pytest.fixture
def change() -> Any:
    with TcpCluster(2) as cluster:
        found = Change(cluster)
        cluster.script(OffsetForLeaderEpochRequest, epoch_end(40, 3))
        yield found


def test_a_leader_hint_is_followed_without_asking_for_metadata(change: Change) -> None:
    change.hint(1, 4)
    assert change.read() == [0, 10, 20, 30]
    assert len(change.cluster.requests(MetadataRequest)) == 1
    last = change.cluster.requests(FetchRequest)[-1]
    assert (last.broker_id, last.request.topics[0].partitions[0].current_leader_epoch) == (1, 4)


def test_an_address_in_a_hint_is_used_for_a_broker_that_was_not_known(change: Change) -> None:
    # A broker that joined after metadata was read.
    change.hint(7, 4)
    assert change.read() == [0, 10, 20, 30]
    assert len(change.cluster.requests(MetadataRequest)) == 1


@pytest.mark.parametrize(
    ("leader_id", "epoch", "address"), [(-1, -1, False), (1, 3, True), (0, 2, True), (9, 4, False)]
)
def test_a_hint_that_is_old_or_cannot_be_followed_leads_to_metadata(
    change: Change, leader_id: int, epoch: int, *, address: bool
) -> None:
    change.hint(leader_id, epoch, address=address)
    assert change.read() == [0, 10, 20, 30]
    assert len(change.cluster.requests(MetadataRequest)) == 2


def test_a_new_leader_is_asked_whether_it_has_what_was_read_before_it_is_read_from(change: Change) -> None:
    assert change.read() == [0, 10, 20, 30]
    assert change.asked_epochs() == [(4, 3)]
    names = [seen.name for seen in change.cluster.seen if seen.broker_id == 1 and "Api" not in seen.name]
    assert names == ["OffsetForLeaderEpochRequest", "FetchRequest", "FetchRequest", "FetchRequest"]


def test_a_log_that_was_cut_below_the_position_is_data_loss_that_names_what_is_gone(change: Change) -> None:
    change.cluster.script(OffsetForLeaderEpochRequest, epoch_end(6, 3))
    with pytest.raises(LogTruncatedError) as caught:
        change.read()
    error = caught.value
    assert isinstance(error, DataLossError)
    assert (error.truncated_to, error.requested_offset) == (6, 10)
    assert str(error).startswith(
        "[KAFKA_DATA_LOSS.LOG_TRUNCATED] The log of t-0 was truncated while t-0 [0, 40) was read: records in [6, 10), "
        "4 offsets, appended under leader epoch 3, were handed out, but the leader of epoch 4 has that epoch up to 6 "
        "only."
    )
    assert not [seen for seen in change.cluster.requests(FetchRequest) if seen.broker_id == 1]


@pytest.mark.parametrize("response", [epoch_end(-1, -1), epoch_end(-1, 3), epoch_end(5, -1), epoch_end(10, 3)])
def test_a_leader_that_cannot_tell_or_has_just_the_position_is_read_from(change: Change, response: Any) -> None:
    change.cluster.script(OffsetForLeaderEpochRequest, response)
    assert change.read() == [0, 10, 20, 30]


@pytest.mark.parametrize("code", [6, 74, 75])
def test_a_refused_question_is_asked_again(change: Change, code: int) -> None:
    change.cluster.script(OffsetForLeaderEpochRequest, epoch_end(-1, -1, code), epoch_end(40, 3))
    assert change.read() == [0, 10, 20, 30]
    assert len(change.asked_epochs()) == 2


def test_brokers_are_not_asked_about_epochs_without_a_change(change: Change) -> None:
    change.cluster.script(FetchRequest, change.old, broker_id=0)
    assert change.read() == [0, 10, 20, 30]
    assert change.asked_epochs() == []


def test_a_change_before_anything_was_read_needs_no_question(change: Change) -> None:
    change.cluster.script(FetchRequest, change._refuse, broker_id=0)
    assert change.read() == [0, 10, 20, 30]
    assert change.asked_epochs() == []


@pytest.mark.parametrize("code", [29, 31])
def test_a_check_that_is_not_allowed_does_not_end_the_read(change: Change, code: int) -> None:
    change.cluster.script(OffsetForLeaderEpochRequest, epoch_end(-1, -1, code))
    assert change.read() == [0, 10, 20, 30]
    assert len(change.asked_epochs()) == 1


# Before version 3, readers are refused: it takes the rights of a broker.
@pytest.mark.parametrize("highest", [0, 2])
def test_a_broker_too_old_to_be_asked_is_read_from(highest: int) -> None:
    with TcpCluster(2, versions={OffsetForLeaderEpochRequest.API_KEY: (0, highest)}) as cluster:
        change = Change(cluster)
        assert change.read() == [0, 10, 20, 30]
        assert change.asked_epochs() == []
