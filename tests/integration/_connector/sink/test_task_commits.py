"""Micro-batches whose tasks write in transactions of their own, against real brokers of both generations."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import Result

from kit.administration import delete_records
from kit.independent_client import Record, consume_committed, produce
from kit.programs.cli import invoke
from kit.reading import options_for
from kit.waiting import eventually
from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.net import trace
from pyspark_kafka._client.client.net.trace import WireEvent, WireStep
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.transactions.inspection import describe_transaction, list_transactions
from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import ExactlyOnceOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.commit_marker import MarkerFinding, lost_places
from pyspark_kafka._connector.sink.driver.marker_reader import MarkerReader
from pyspark_kafka._connector.sink.driver.publisher import Publisher
from pyspark_kafka._connector.sink.driver.tasks import commit_calls as task_commit_calls
from pyspark_kafka._connector.sink.driver.tasks.commit_calls import BrokerTaskCommitCalls
from pyspark_kafka._connector.sink.driver.tasks.exactly_once import (
    KafkaTaskCommitStreamingWrite,
    KafkaTaskTransactionWriterFactory,
)
from pyspark_kafka._connector.sink.executor.task_transaction_writer import (
    KafkaTaskTransactionWriter,
    TaskTransactionMessage,
)
from pyspark_kafka.errors import CheckpointError, ConnectorError, DeliveryError, TransportError
from pyspark_kafka.testing import EmbeddedKafka

COMMITS = "commits-of-task-tests"


class Query:
    """A query's driver and tasks without Spark; each `plan` and each `commit` is as in a process of its own."""

    def __init__(self, kafka: EmbeddedKafka, checkpoint: Path, partitions: int = 2, **settings: Any) -> None:
        self.servers, self.checkpoint = kafka.bootstrap_servers, checkpoint
        self.topic = f"t{uuid.uuid4().hex[:12]}"
        kafka.create_topic(self.topic, partitions)
        self.partitions = [TopicPartition(self.topic, number) for number in range(partitions)]
        self.query_id = uuid.uuid4().hex
        self.sink_id = f"pyspark-kafka-{self.query_id}"
        (checkpoint / "offsets").mkdir(parents=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": self.query_id}))
        self.options = WriteOptions(options_for(self.servers, api_timeout_ms=30_000), topic=self.topic)
        self.settings = ExactlyOnceOptions(
            commit_topic=COMMITS, checkpoint_location=str(checkpoint), commit="tasks", **settings
        )

    def log(self, batch: int, end: int = 0) -> None:
        """Write a micro-batch into the offset log, as Spark does before it runs."""
        ends = {"source": {"0": end or batch + 1}}
        (self.checkpoint / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(ends)}")

    def job(self) -> KafkaTaskCommitStreamingWrite:
        return KafkaTaskCommitStreamingWrite(self.options, self.settings, SinkColumns(value=0))

    def plan(self) -> KafkaTaskTransactionWriterFactory:
        factory = self.job().createStreamingWriterFactory(Any)  # type: ignore[arg-type]
        assert isinstance(factory, KafkaTaskTransactionWriterFactory)
        return factory.for_tasks()

    def visible(self) -> list[bytes]:
        return sorted(record.value or b"" for record in consume_committed(self.servers, self.topic))

    def is_held_back(self, client: KafkaClient) -> bool:
        """Whether readers of committed records cannot see the end of a partition."""
        partitions = dict.fromkeys(self.partitions, Latest())
        stable = list_offsets(client, partitions, IsolationLevel.READ_COMMITTED)
        return stable != list_offsets(client, partitions)


def attempt(factory: KafkaTaskTransactionWriterFactory, *values: bytes) -> TaskTransactionMessage:
    """Run one attempt of a task."""
    writer = begin(factory, *values)
    message = writer.commit()
    writer.close()
    return message


def begin(factory: KafkaTaskTransactionWriterFactory, *values: bytes) -> KafkaTaskTransactionWriter:
    writer = factory.createWriter(0, 0, 1)
    assert isinstance(writer, KafkaTaskTransactionWriter)
    writer.write(pa.RecordBatch.from_pydict({"value": list(values)}))
    return writer


@pytest.fixture(params=["kafka", "older_kafka"])
def broker(request: pytest.FixtureRequest) -> EmbeddedKafka:
    found: EmbeddedKafka = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def query(broker: EmbeddedKafka, tmp_path: Path) -> Query:
    return Query(broker, tmp_path / "checkpoint")


@pytest.fixture
def client(query: Query) -> Iterator[KafkaClient]:
    with KafkaClient(query.options.connection) as client:
        yield client


def test_batches_are_written_once_under_ids_that_are_used_again(query: Query) -> None:
    names = []
    for batch in range(3):
        query.log(batch)
        factory = query.plan()
        messages = [attempt(factory, b"%d-%d" % (batch, task)) for task in range(2)]
        # A task without rows has no transaction.
        empty = factory.createWriter(2, 2, batch)
        messages.append(empty.commit())  # type: ignore[arg-type]
        query.job().commit(batch, messages)
        # Spark asks again where it has died before it noted the commit.
        query.job().commit(batch, messages)
        names.append({message.task.transaction.name for message in messages if message.task is not None})
    assert query.visible() == [b"%d-%d" % (batch, task) for batch in range(3) for task in range(2)]
    assert names[0] == names[1] == names[2]
    assert len(names[0]) == 2


def test_batch_that_runs_again_after_its_commit_writes_nothing(query: Query, client: KafkaClient) -> None:
    query.log(0)
    query.job().commit(0, [attempt(query.plan(), b"a")])
    query.job().commit(0, [attempt(query.plan(), b"other", b"rows")])
    assert query.visible() == [b"a"]
    assert not query.is_held_back(client)


@pytest.mark.parametrize("point", ["next batch", "same batch"])
def test_decision_that_a_broker_cut_off_does_not_show_keeps_its_transactions(
    query: Query, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    query.log(0)
    messages = [attempt(query.plan(), b"a")]
    monkeypatch.setattr(BrokerTaskCommitCalls, "commit_tasks", raiser(RuntimeError("killed")))
    with pytest.raises(RuntimeError, match="killed"):
        query.job().commit(0, messages)
    monkeypatch.undo()
    if point == "next batch":
        query.log(1)

    def stale(reader: MarkerReader, *_: Any) -> None:
        reader._read_to[reader._topic.partition_of(query.sink_id)] = 0

    monkeypatch.setattr(MarkerReader, "read", stale)
    with pytest.raises(DeliveryError, match=r"SINK_TAKEN_OVER.*was cut off from the others"):
        query.plan()
    monkeypatch.undo()
    query.plan()
    assert query.visible() == [b"a"]


def test_batch_is_not_decided_after_one_that_a_broker_cut_off_does_not_show(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    query.log(0)
    query.job().commit(0, [attempt(query.plan(), b"a")])
    messages = [attempt(query.plan(), b"again")]
    real = MarkerReader.read
    looks: list[Any] = []

    def stale(reader: MarkerReader, key: str, query_id: str | None = None) -> Any:
        found = real(reader, key, query_id)
        looks.append(found)
        if len(looks) > 1:
            return found
        reader._read_to[reader._topic.partition_of(key)] = 0
        return None

    monkeypatch.setattr(MarkerReader, "read", stale)
    with pytest.raises(DeliveryError, match=r"SINK_TAKEN_OVER.*it has committed the batch"):
        query.job().commit(0, messages)
    monkeypatch.undo()
    query.job().commit(0, [attempt(query.plan(), b"again")])
    assert query.visible() == [b"a"]


def test_attempts_that_lose_are_aborted_with_the_commit_of_their_batch(query: Query, client: KafkaClient) -> None:
    query.log(0)
    factory = query.plan()
    loser, going_on = attempt(factory, b"loser"), begin(factory, b"first rows")
    going_on._send(going_on._encoder.finish())
    query.job().commit(0, [attempt(factory, b"winner")])
    assert not query.is_held_back(client)
    assert not list_transactions(client, prefix=query.sink_id)
    assert loser.task is not None
    with pytest.raises(DeliveryError):
        going_on.commit()
    going_on.abort()
    going_on.close()
    assert query.visible() == [b"winner"]


def test_attempt_that_begins_after_its_batch_becomes_no_part_of_the_next_one(query: Query, client: KafkaClient) -> None:
    query.log(0)
    old = query.plan()
    query.job().commit(0, [attempt(old, b"a")])
    query.log(1)
    factory = query.plan()
    message, late = attempt(factory, b"b"), begin(old, b"late")
    with pytest.raises(DeliveryError, match="TASK_TOO_LATE"):
        late.commit()
    late.abort()
    late.close()
    query.job().commit(1, [message])
    assert not query.is_held_back(client)
    assert query.visible() == [b"a", b"b"]


def test_partitions_of_a_task_join_its_transaction_by_one_request(broker: EmbeddedKafka, tmp_path: Path) -> None:
    query = Query(broker, tmp_path / "checkpoint", partitions=50)
    query.log(0)
    sent: list[str] = []

    def note(event: WireEvent) -> None:
        if event.step is WireStep.SENT:
            sent.append(event.request)

    factory = replace(query.plan(), columns=SinkColumns(value=0, partition=1))
    writer = factory.createWriter(0, 0, 1)
    numbers = [number % 50 for number in range(500)]
    rows = {"value": [b"%03d" % number for number in range(500)], "partition": pa.array(numbers, pa.int32())}
    with trace.listening(note):
        writer.write(pa.RecordBatch.from_pydict(rows))
        message = writer.commit()
    writer.close()
    # V2 needs none.
    assert sent.count("AddPartitionsToTxn") <= 1
    query.job().commit(0, [message])
    assert query.visible() == rows["value"]


def test_tasks_of_a_driver_that_died_are_aborted_by_the_next_planning(query: Query, client: KafkaClient) -> None:
    query.log(0)
    attempt(query.plan(), b"of the dead")
    assert query.is_held_back(client)
    factory = query.plan()
    assert not query.is_held_back(client)
    query.job().commit(0, [attempt(factory, b"a")])
    assert query.visible() == [b"a"]


def test_driver_that_was_replaced_decides_nothing(query: Query) -> None:
    query.log(0)
    message = attempt(query.plan(), b"former")
    factory = query.plan()
    with pytest.raises((DeliveryError, ConnectorError), match=r"SINK_TAKEN_OVER|TASK_TRANSACTION_LOST"):
        query.job().commit(0, [message])
    query.job().commit(0, [attempt(factory, b"new")])
    assert query.visible() == [b"new"]


@pytest.mark.parametrize("ended", [0, 1, 2])
def test_decision_of_a_driver_that_died_is_completed_before_the_next_batch(
    query: Query, monkeypatch: pytest.MonkeyPatch, ended: int
) -> None:
    query.log(0)
    factory = query.plan()
    messages = [attempt(factory, b"a"), attempt(factory, b"b")]
    real = BrokerTaskCommitCalls.commit_tasks

    def die(calls: BrokerTaskCommitCalls, tasks: Any) -> list[bool | None]:
        real(calls, tasks[:ended])
        raise RuntimeError("killed")

    monkeypatch.setattr(BrokerTaskCommitCalls, "commit_tasks", die)
    with pytest.raises(RuntimeError, match="killed"):
        query.job().commit(0, messages)
    monkeypatch.undo()
    # Spark aborts a batch whose commit has failed; that must not touch what is decided.
    query.job().abort(0, messages)
    again = query.plan()
    assert query.visible() == [b"a", b"b"]
    query.job().commit(0, [attempt(again, b"other rows")])
    query.log(1)
    query.job().commit(1, [attempt(query.plan(), b"c")])
    assert query.visible() == [b"a", b"b", b"c"]


def test_decision_that_is_open_stops_a_query_that_was_switched_to_the_driver(
    query: Query, monkeypatch: pytest.MonkeyPatch, client: KafkaClient
) -> None:
    query.log(0)
    messages = [attempt(query.plan(), b"a")]
    monkeypatch.setattr(BrokerTaskCommitCalls, "commit_tasks", raiser(RuntimeError("killed")))
    with pytest.raises(RuntimeError, match="killed"):
        query.job().commit(0, messages)
    monkeypatch.undo()
    marker = query.job()._identity.marker(0)
    publisher = Publisher(client, query.options, query.settings, query.sink_id, None)
    with pytest.raises(CheckpointError, match="SINK_COMMIT_OPEN"):
        publisher.publish(marker, [])
    query.plan()
    publisher.publish(marker, [])
    assert query.visible() == [b"a"]


def test_part_that_brokers_abort_after_the_decision_is_reported_with_its_offsets(
    query: Query, monkeypatch: pytest.MonkeyPatch, client: KafkaClient
) -> None:
    query.log(0)
    factory = query.plan()
    messages = [attempt(factory, b"a"), attempt(factory, b"b", b"c")]
    real = BrokerTaskCommitCalls.commit_tasks

    def late(calls: BrokerTaskCommitCalls, tasks: Any) -> list[bool | None]:
        # As by a timeout.
        TransactionalId(client, tasks[1].transaction.name, 60_000).fence()
        return real(calls, tasks)

    monkeypatch.setattr(BrokerTaskCommitCalls, "commit_tasks", late)
    with pytest.raises(DeliveryError, match=r"SINK_COMMIT_INCOMPLETE.*without 2 of its records") as caught:
        query.job().commit(0, messages)
    lost = messages[1].task
    assert lost is not None
    assert lost.offsets
    for topic_partition, (first, end) in lost.offsets.items():
        assert f"{topic_partition} from {first} to {end - 1}" in caught.value.message
    monkeypatch.undo()
    assert query.visible() == [b"a"]
    # Neither skipped nor written again, however often it is tried.
    with pytest.raises(DeliveryError, match="SINK_COMMIT_INCOMPLETE"):
        query.plan()


def test_outage_of_a_coordinator_after_the_decision_is_waited_out(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    query.options = replace(query.options, outage_timeout_ms=60_000)
    query.log(0)
    factory = query.plan()
    messages = [attempt(factory, b"a"), attempt(factory, b"b")]
    real = TransactionalId.commit_decided
    failures = iter([TransportError("away", condition="CONNECTION_LOST", retriable=True)])

    def away_once(owner: TransactionalId, transaction: OpenTransaction) -> bool | None:
        done = real(owner, transaction)
        for failure in failures:
            raise failure
        return done

    monkeypatch.setattr(TransactionalId, "commit_decided", away_once)
    query.job().commit(0, messages)
    assert query.visible() == [b"a", b"b"]


@pytest.mark.parametrize("fate", ["committed", "aborted", "deleted"])
def test_outcome_that_coordinators_have_forgotten_is_looked_up_in_the_log(
    query: Query, monkeypatch: pytest.MonkeyPatch, client: KafkaClient, fate: str
) -> None:
    query.log(0)
    message = attempt(query.plan(), b"a", b"b")
    assert message.task is not None
    real = TransactionalId.commit_decided

    def forgotten(owner: TransactionalId, transaction: OpenTransaction) -> None:
        if fate == "aborted":
            TransactionalId(client, owner.name, 60_000).fence()
        else:
            real(owner, transaction)
        if fate == "deleted":
            with KafkaClient(query.options.connection) as other:
                delete_records(other, list_offsets(other, dict.fromkeys(query.partitions, Latest())))

    monkeypatch.setattr(TransactionalId, "commit_decided", forgotten)
    outcomes: dict[str, AbstractContextManager[Any]] = {
        "committed": nullcontext(),
        "aborted": pytest.raises(DeliveryError, match=r"INCOMPLETE\] Batch 0 .* is committed without 2 of its records"),
        "deleted": pytest.raises(DeliveryError, match=r"INCOMPLETE\] Whether 2 records of batch 0 .* is not known"),
    }
    with outcomes[fate]:
        query.job().commit(0, [message])
    monkeypatch.undo()
    assert query.visible() == ([b"a", b"b"] if fate == "committed" else [])
    # The marker keeps it.
    with outcomes[fate]:
        query.plan()


@pytest.mark.parametrize("way", ["tasks", "driver"])
def test_query_continues_after_the_lost_part_of_a_batch_is_resolved(
    query: Query, monkeypatch: pytest.MonkeyPatch, client: KafkaClient, way: str
) -> None:
    query.log(0)
    factory = query.plan()
    messages = [attempt(factory, b"a"), attempt(factory, b"lost")]
    real = BrokerTaskCommitCalls.commit_tasks

    def late(calls: BrokerTaskCommitCalls, tasks: Any) -> list[bool | None]:
        TransactionalId(client, tasks[1].transaction.name, 60_000).fence()
        return real(calls, tasks)

    monkeypatch.setattr(BrokerTaskCommitCalls, "commit_tasks", late)
    with pytest.raises(DeliveryError, match="SINK_COMMIT_INCOMPLETE") as caught:
        query.job().commit(0, messages)
    monkeypatch.undo()
    assert f"`pyspark-kafka transactions resolve {query.sink_id}`" in caught.value.hint
    # By other means.
    produce(query.servers, query.topic, [Record(None, b"lost")])

    def resolve(*, answer: str) -> Result:
        named = ("--bootstrap-servers", query.servers, "--commit-topic", COMMITS)
        return invoke("transactions", "resolve", query.sink_id, *named, answer=answer)

    refused = resolve(answer="n\n")
    assert (refused.exit_code, "Nothing was done." in refused.stdout) == (1, True)
    with pytest.raises(DeliveryError, match="SINK_COMMIT_INCOMPLETE"):
        query.plan()
    done = resolve(answer="y\n")
    assert done.exit_code == 0, done.output
    assert messages[1].task is not None
    for place in lost_places([messages[1].task]):
        assert place in done.stdout
    again = resolve(answer="y\n")
    assert (again.exit_code, "has lost nothing" in again.stdout) == (1, True)
    # Spark runs the batch again, which it has not noted as committed.
    if way == "tasks":
        factory = query.plan()
        query.job().commit(0, [attempt(factory, b"a"), attempt(factory, b"lost")])
    else:
        publisher = Publisher(client, query.options, query.settings, query.sink_id, None)
        assert publisher.publish(query.job()._identity.marker(0), []) is MarkerFinding.COMMITTED
    query.log(1)
    query.job().commit(1, [attempt(query.plan(), b"next")])
    assert query.visible() == [b"a", b"lost", b"next"]
    assert not query.is_held_back(client)


def test_batch_whose_transactions_are_almost_over_is_not_decided(query: Query, client: KafkaClient) -> None:
    query.log(0)
    factory = query.plan()
    assert factory.planning is not None
    old = replace(factory.planning, planned_at_ms=factory.planning.planned_at_ms - 50_000)
    messages = [attempt(replace(factory, planning=old), b"a")]
    with pytest.raises(DeliveryError, match="TRANSACTION_TIMED_OUT"):
        query.job().commit(0, messages)
    query.job().abort(0, messages)
    assert not query.is_held_back(client)
    assert query.visible() == []


class LateClock:
    """The driver's clock, which is moved on when the driver, or a broker that it waits for, stands still."""

    late_s = 0.0

    def time(self) -> float:
        return time.time() + self.late_s

    def time_ns(self) -> int:
        return time.time_ns() + int(self.late_s * 1e9)


@pytest.mark.parametrize(
    ("owner", "name", "comes_after"),
    [
        (BrokerTaskCommitCalls, "open_tasks", True),
        (BrokerTaskCommitCalls, "write", False),
        (Producer, "flush", True),
        (TransactionalId, "end", False),
    ],
    ids=["list", "before the decision", "acknowledgement", "before its EndTxn"],
)
def test_nothing_is_decided_once_transactions_of_tasks_are_almost_over(
    query: Query, monkeypatch: pytest.MonkeyPatch, client: KafkaClient, owner: type, name: str, comes_after: bool
) -> None:
    query.log(0)
    messages = [attempt(query.plan(), b"a")]
    clock, real = LateClock(), getattr(owner, name)

    def late(*args: Any, **named: Any) -> Any:
        result = real(*args, **named) if comes_after else None
        clock.late_s = 46.0
        return result if comes_after else real(*args, **named)

    monkeypatch.setattr(task_commit_calls, "time", clock)
    monkeypatch.setattr(owner, name, late)
    with pytest.raises(DeliveryError, match=r"TRANSACTION_TIMED_OUT.*Nothing of the batch is visible"):
        query.job().commit(0, messages)
    monkeypatch.undo()
    query.job().abort(0, messages)
    assert not query.is_held_back(client)
    query.job().commit(0, [attempt(query.plan(), b"again")])
    assert query.visible() == [b"again"]


def test_tasks_take_the_timeout_of_the_sink_where_brokers_refuse_theirs(query: Query, client: KafkaClient) -> None:
    for task_timeout_ms, taken_ms in ((900_000, 900_000), (901_000, 60_000)):
        query.settings = replace(query.settings, task_timeout_ms=task_timeout_ms)
        query.log(0)
        task = attempt(query.plan(), b"a").task
        assert task is not None
        assert task.timeout_ms == taken_ms
        found = describe_transaction(client, task.transaction.name)
        assert found is not None
        assert found.timeout_ms == taken_ms


@pytest.mark.full("Waits for limits of time")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("condition", ["TRANSACTION_TIMED_OUT", "SINK_TAKEN_OVER"])
def test_decision_that_has_timed_out_is_told_from_another_driver(
    broker: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    query = Query(broker, tmp_path / "checkpoint", transaction_timeout_ms=5_000)
    query.log(0)
    messages = [attempt(query.plan(), b"a")]
    real = TransactionalId.end

    def is_ended(client: KafkaClient) -> bool:
        found = describe_transaction(client, query.sink_id)
        return found is not None and not found.state.is_open

    def late(owner: TransactionalId, transaction: OpenTransaction, **named: Any) -> OpenTransaction:
        if owner.name == query.sink_id:
            monkeypatch.undo()
            with KafkaClient(query.options.connection) as client:
                # Brokers look every 10 s.
                eventually(lambda: is_ended(client))
                if condition == "SINK_TAKEN_OVER":
                    TransactionalId(client, owner.name, 60_000).fence()
        return real(owner, transaction, **named)

    monkeypatch.setattr(TransactionalId, "end", late)
    with pytest.raises(DeliveryError) as caught:
        query.job().commit(0, messages)
    assert caught.value.condition == condition
    if condition == "TRANSACTION_TIMED_OUT":
        assert "5000 ms (kafka.transaction.timeout.ms)" in caught.value.message
        assert caught.value.message.endswith("Nothing of the batch is visible.")
    query.job().abort(0, messages)
    assert query.visible() == []
    query.job().commit(0, [attempt(query.plan(), b"again")])
    assert query.visible() == [b"again"]


def test_batch_whose_transactions_are_gone_is_not_decided(query: Query, client: KafkaClient) -> None:
    query.log(0)
    factory = query.plan()
    messages = [attempt(factory, b"a"), attempt(factory, b"b")]
    assert messages[1].task is not None
    TransactionalId(client, messages[1].task.transaction.name, 60_000).fence()
    with pytest.raises(DeliveryError, match="TASK_TRANSACTION_LOST"):
        query.job().commit(0, messages)
    query.job().abort(0, messages)
    query.job().commit(0, [attempt(query.plan(), b"again")])
    assert query.visible() == [b"again"]


def test_older_checkpoint_stops_before_it_writes(query: Query) -> None:
    for batch in range(2):
        query.log(batch)
        query.job().commit(batch, [attempt(query.plan(), b"%d" % batch)])
    query.log(1, end=99)
    with pytest.raises(CheckpointError, match="COMMIT_MARKER_OF_OTHER_OFFSETS"):
        query.job().commit(1, [attempt(query.plan(), b"again")])
    with pytest.raises(CheckpointError, match="COMMIT_MARKER_OF_A_LATER_BATCH"):
        query.job().commit(0, [attempt(query.plan(), b"again")])
    assert query.visible() == [b"0", b"1"]


@pytest.mark.full("Older brokers")
@pytest.mark.timeout(120)
def test_transactions_have_no_timeout_where_brokers_have_two_phase_commits(tmp_path: Path) -> None:
    properties = {"transaction.two.phase.commit.enable": "true", "unstable.api.versions.enable": "true"}
    with EmbeddedKafka(properties=properties) as broker:
        query = Query(broker, tmp_path / "checkpoint")
        query.log(0)
        factory = query.plan()
        left, message = attempt(factory, b"left"), attempt(factory, b"a")
        assert left.task is not None
        assert message.task is not None
        assert message.task.timeout_ms is None
        with KafkaClient(query.options.connection) as client:
            found = describe_transaction(client, message.task.transaction.name)
            assert found is not None
            assert found.timeout_ms == 2**31 - 1
            query.job().commit(0, [message])
            assert not query.is_held_back(client)
        assert query.visible() == [b"a"]


def raiser(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail
