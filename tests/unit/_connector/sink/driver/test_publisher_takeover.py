"""Whom a publisher takes its transactional id back from, how often, and whom it leaves alone; without brokers."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError, TransactionLostError
from pyspark_kafka._client.client.transactions.inspection import TransactionDescription, TransactionState
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka._client.client.waiting.retry import Backoff
from pyspark_kafka._client.options import ConnectionOptions, ExactlyOnceOptions, WriteOptions
from pyspark_kafka._connector.sink.commit_marker import CommitMarker, MarkerFinding
from pyspark_kafka._connector.sink.driver import publisher as publisher_module
from pyspark_kafka._connector.sink.driver.publisher import Publisher
from pyspark_kafka.errors import CheckpointError, DeliveryError

MARKER = CommitMarker("sink", "query", 4, "print")
CONNECTION = ConnectionOptions((("broker-0", 9092),))


class FakeClient:
    options = CONNECTION

    def backoff(self) -> Backoff:
        return Backoff(1, 1)


class FakeId:
    """A transactional id with its coordinator: whoever fences last is the owner."""

    name = "sink"

    def __init__(self) -> None:
        self.epoch = 0
        self.fences = 0
        self.ended: list[int] = []

    def fence(self) -> OpenTransaction:
        self.fences += 1
        return self.others_fence()

    def others_fence(self) -> OpenTransaction:
        self.epoch += 1
        return OpenTransaction("sink", TransactionIdentity(7, self.epoch, Generation.V2))

    def renew(self, transaction: OpenTransaction) -> OpenTransaction:
        if transaction.identity.producer_epoch != self.epoch:
            raise TransactionLostError("Another owner has taken over.", condition="TRANSACTION_LOST")
        return self.others_fence()

    def end(self, transaction: OpenTransaction, *, commit: bool) -> None:
        assert commit
        if transaction.identity.producer_epoch != self.epoch:
            raise TransactionLostError("Another owner has taken over.", condition="TRANSACTION_LOST")
        self.ended.append(self.epoch)


class FakeTopic:
    def ensure(self) -> None:
        pass

    check = check_rights = ensure


class FakeMarkers:
    found: CommitMarker | None = None

    def read(self, *_: str) -> CommitMarker | None:
        return self.found


class Scene:
    """A publisher, its id, and what is done to it while it writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, outage_timeout_ms: int = 0) -> None:
        options = replace(WriteOptions(CONNECTION), outage_timeout_ms=outage_timeout_ms)
        client = cast("KafkaClient", FakeClient())
        self.publisher = Publisher(client, options, ExactlyOnceOptions(), "sink", None)
        self.id = FakeId()
        self.markers = FakeMarkers()
        self.states: list[TransactionState] = []
        self.outage_s = 0.0
        self.writes = 0
        # Writes that fail as someone else has ended the transaction meanwhile.
        self.taken_over = 1
        self.condition = "INVALID_PRODUCER_EPOCH"
        monkeypatch.setattr(self.publisher, "_id", self.id)
        monkeypatch.setattr(self.publisher, "_markers", self.markers)
        monkeypatch.setattr(self.publisher, "_topic", FakeTopic())
        monkeypatch.setattr(self.publisher, "_write", self.write)
        monkeypatch.setattr(publisher_module, "describe_transaction", self.describe)
        monkeypatch.setattr(publisher_module, "outage_s_here", lambda: self.outage_s)
        monkeypatch.setattr("time.sleep", lambda _: None)

    def write(self, *_: Any) -> MarkerFinding:
        self.writes += 1
        if self.writes <= self.taken_over:
            self.id.others_fence()
            raise DeliveryError("A write failed.", condition=self.condition)
        return MarkerFinding.NOT_COMMITTED

    def describe(self, *_: Any) -> TransactionDescription:
        state = self.states.pop(0) if self.states else TransactionState.EMPTY
        return TransactionDescription("sink", state, 7, self.id.epoch, 1, "broker-1:9092", 60_000)

    def publish(self) -> MarkerFinding:
        return self.publisher.publish(MARKER, [])

    def complete(self, monkeypatch: pytest.MonkeyPatch, method: str, *, call: int = 1, marker: CommitMarker) -> None:
        """Let a call to the id complete a commit that is being applied: its marker is there afterwards."""
        usual, calls = getattr(self.id, method), itertools.count(1)

        def completing(*arguments: Any) -> OpenTransaction:
            if next(calls) == call:
                self.markers.found = marker
            transaction: OpenTransaction = usual(*arguments)
            return transaction

        monkeypatch.setattr(self.id, method, completing)


def test_an_id_that_nobody_uses_is_taken_back_and_the_batch_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    assert scene.publish() is MarkerFinding.NOT_COMMITTED
    assert (scene.writes, scene.id.fences, len(scene.id.ended)) == (2, 2, 1)


def test_a_driver_that_begins_a_moment_after_its_fence_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.states = [TransactionState.EMPTY, TransactionState.ONGOING]
    with pytest.raises(DeliveryError, match="SINK_TAKEN_OVER"):
        scene.publish()
    assert (scene.writes, scene.id.fences, scene.id.ended) == (1, 1, [])


def test_two_drivers_do_not_take_the_id_from_each_other_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.taken_over = 1_000
    with pytest.raises(DeliveryError, match="SINK_TAKEN_OVER"):
        scene.publish()
    assert scene.id.fences == 3
    assert scene.id.ended == []


def test_an_outage_that_is_over_is_no_reason_to_take_the_id_back_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, outage_timeout_ms=60_000)
    scene.taken_over, scene.outage_s = 1_000, 7.0
    scene.states = [TransactionState.ONGOING] * 1_000
    with pytest.raises(DeliveryError, match="SINK_TAKEN_OVER"):
        scene.publish()
    # The first one of the batch, and one after the outage.
    assert scene.id.fences == 2


def test_waiting_for_an_abort_to_be_complete_is_no_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, outage_timeout_ms=60_000)
    scene.outage_s = 0.3
    scene.states = [TransactionState.ONGOING]
    with pytest.raises(DeliveryError, match="SINK_TAKEN_OVER"):
        scene.publish()
    assert scene.id.fences == 1


def test_publisher_that_gives_a_batch_up_does_not_fence_the_driver_that_has_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, outage_timeout_ms=60_000)
    scene.outage_s, scene.condition = 7.0, "MESSAGE_TOO_LARGE"
    with pytest.raises(DeliveryError, match="MESSAGE_TOO_LARGE"):
        scene.publish()
    assert scene.id.fences == 1


def test_batch_committed_by_the_driver_that_took_over_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    write = scene.write

    def committed_by_another(*arguments: Any) -> MarkerFinding:
        scene.markers.found = MARKER
        return write(*arguments)

    monkeypatch.setattr(scene.publisher, "_write", committed_by_another)
    scene.publish()
    assert (scene.writes, scene.id.fences, scene.id.ended) == (1, 1, [])


def test_commit_that_the_first_fence_completes_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.complete(monkeypatch, "fence", marker=MARKER)
    assert scene.publish() is MarkerFinding.COMMITTED
    assert (scene.writes, scene.id.ended) == (0, [])


def test_commit_in_doubt_that_the_renewal_completes_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.taken_over = 0
    scene.complete(monkeypatch, "renew", marker=MARKER)

    def lose_response(*_: Any, **__: Any) -> None:
        raise TransactionInDoubtError("No response.", condition="TRANSACTION_IN_DOUBT")

    monkeypatch.setattr(scene.id, "end", lose_response)
    scene.publish()
    assert scene.writes == 1


def test_commit_that_is_completed_when_the_id_is_taken_back_is_not_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch)
    scene.complete(monkeypatch, "fence", call=2, marker=MARKER)
    scene.publish()
    assert (scene.writes, scene.id.fences, scene.id.ended) == (1, 2, [])


def test_check_sees_the_commit_of_another_query_that_its_fence_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.complete(monkeypatch, "fence", marker=replace(MARKER, query_id="another"))
    with pytest.raises(CheckpointError, match="another"):
        scene.publisher.check(MARKER)


@pytest.mark.parametrize(("seconds", "writes"), [(59.0, 2), (61.0, 1)])
def test_batch_is_written_again_only_if_its_transaction_was_not_too_long(
    monkeypatch: pytest.MonkeyPatch, seconds: float, writes: int
) -> None:
    scene = Scene(monkeypatch)
    scene.publisher._timeout_ms = 60_000
    times = itertools.count(0.0, seconds)
    stand_in = SimpleNamespace(monotonic=lambda: next(times), sleep=lambda _: None)
    monkeypatch.setattr(publisher_module, "time", stand_in)
    if writes == 2:
        scene.publish()
    else:
        with pytest.raises(DeliveryError, match=r"TRANSACTION_TIMED_OUT.* took 61000 ms"):
            scene.publish()
    assert scene.writes == writes
