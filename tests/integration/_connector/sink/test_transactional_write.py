"""Lanes of an exactly-once continuous query against real brokers of both generations of transactions, without Spark."""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaAdminClient
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaPythonPartition

from kit.administration import create_topic, delete_topics
from kit.independent_client import await_committed, consume_all, consume_committed
from kit.reading import client_of, options_for
from kit.waiting import eventually
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError
from pyspark_kafka._client.client.transactions.open_transaction import Generation
from pyspark_kafka._client.options import ExactlyOnceOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import Column, find_sink_columns
from pyspark_kafka._connector.sink.driver.transactional import KafkaTransactionalWrite
from pyspark_kafka._connector.sink.executor import transaction_writer
from pyspark_kafka.connector import PartitionOffset, PhysicalWriteInfo, SourceOffsetsWriter
from pyspark_kafka.errors import CapabilityError, CheckpointError, ConnectorError, DeliveryError, OptionError
from pyspark_kafka.testing import EmbeddedKafka

_SCHEMA = pa.schema([("value", pa.binary())])


@dataclass(frozen=True)
class Position(PartitionOffset):
    """Where a reader is, as the source tells it."""

    text: str

    def json(self) -> str:
        return self.text


@pytest.fixture(params=[Generation.V2, pytest.param(Generation.V1, marks=pytest.mark.long)], ids=["V2", "V1"])
def servers(request: pytest.FixtureRequest, kafka: EmbeddedKafka) -> str:
    broker: EmbeddedKafka = kafka if request.param is Generation.V2 else request.getfixturevalue("older_kafka")
    return broker.bootstrap_servers


class Query:
    """One query: its topics, its checkpoint, and a write for each driver that runs it."""

    def __init__(self, servers: str, place: Path) -> None:
        self.servers, self._place = servers, place
        self.id = uuid.uuid4().hex
        self.writers: list[SourceOffsetsWriter] = []
        self.group = f"pyspark-kafka-{self.id}"
        self.source, self.target = f"source-{self.id}", f"target-{self.id}"
        with client_of(servers) as client:
            create_topic(client, self.source, 2)
            create_topic(client, self.target, 2)

    def write(self, source: str | None = None, **settings: Any) -> KafkaTransactionalWrite:
        return KafkaTransactionalWrite(
            WriteOptions(options_for(self.servers, api_timeout_ms=15_000), topic=self.target),
            ExactlyOnceOptions(checkpoint_location=str(self._place), **settings),
            find_sink_columns([Column("value", pa.binary(), "binary")], topic_option=self.target),
            query_id=self.id,
            source=options_for(source or self.servers),
            epoch_ms=100,
        )

    def at(self, *offsets: int) -> KafkaSourceOffset:
        return KafkaSourceOffset({TopicPartition(self.source, number): each for number, each in enumerate(offsets)})

    def position(self, **offsets: int) -> Position:
        return Position(json.dumps({self.source: {name[1:]: each for name, each in offsets.items()}}))

    def visible(self) -> list[bytes]:
        return sorted(record.value or b"" for record in consume_committed(self.servers, self.target))

    def has_sent(self, writer: SourceOffsetsWriter, count: int) -> bool:
        """Let a writer go on sending; return whether the target holds this many records, committed or not."""
        writer.flushNow()
        return len(consume_all(self.servers, self.target)) == count

    def group_has(self) -> list[int]:
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            found: Any = admin.list_group_offsets([self.group])[self.group]
            return [each.offset for _, each in sorted(found.items())]
        finally:
            admin.close()

    def run(
        self, write: KafkaTransactionalWrite, start: KafkaSourceOffset, lanes: int = 2
    ) -> tuple[KafkaSourceOffset, list[SourceOffsetsWriter]]:
        """Begin a run as the engine does; return where it begins, and its lanes."""
        write.takeOver()
        begin = KafkaSourceOffset.from_json(write.committedOffset(start))
        write.prepareLanes(begin, lanes)
        pickled = pickle.dumps(write.createStreamingWriterFactory(PhysicalWriteInfo(lanes)))
        factory = pickle.loads(pickled)  # noqa: S301 - our own
        made = []
        for lane in range(lanes):
            writer = factory.createWriter(lane, 0, 0)
            assert isinstance(writer, SourceOffsetsWriter)
            made.append(writer)
        self.writers += made
        return begin, made


@pytest.fixture
def query(servers: str, tmp_path: Path) -> Iterator[Query]:
    query = Query(servers, tmp_path)
    yield query
    for writer in query.writers:
        writer.close()


def put(writer: SourceOffsetsWriter, *values: bytes) -> None:
    writer.write(pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], schema=_SCHEMA))
    writer.flushNow()


def test_epochs_are_visible_with_their_positions_over_runs(query: Query) -> None:
    begin, (first, second) = query.run(query.write(), query.at(0, 0))
    assert begin == query.at(0, 0)
    put(first, b"a", b"b")
    # Readers see nothing behind the first record of an open transaction: the second lane's must not come first.
    eventually(lambda: query.has_sent(first, 2))
    put(second, b"c")
    assert query.visible() == []
    # Sequences and identity over epochs: with rows in each, in some, and in none.
    assert json.loads(first.commitEpoch(0, query.position(p0=2)).json())["records"] == 2
    await_committed(query.servers, query.target, [b"a", b"b"])
    second.commitEpoch(0, query.position(p1=1))
    for epoch in range(1, 4):
        put(first, b"d%d" % epoch, b"e%d" % epoch)
        first.commitEpoch(epoch, query.position(p0=2 + 2 * epoch))
        # Rows that were filtered out.
        second.commitEpoch(epoch, query.position(p1=1 + epoch))
    eventually(lambda: len(query.visible()) == 9)
    eventually(lambda: query.group_has() == [8, 4])
    before = second._transaction  # type: ignore[attr-defined]
    second.commitEpoch(4, query.position(p1=4))
    assert second._transaction is before  # type: ignore[attr-defined]
    put(first, b"open")
    for writer in (first, second):
        writer.close()
    # Another driver, after the first was killed: the checkpoint has not followed.
    begin, (only,) = query.run(query.write(), query.at(2, 0), lanes=1)
    assert begin == query.at(8, 4)
    put(only, b"f")
    only.commitEpoch(1, query.position(p0=9, p1=4))
    only.close()
    eventually(lambda: len(query.visible()) == 10)
    assert query.visible()[-1] == b"f"
    eventually(lambda: query.group_has() == [9, 4])


def test_lane_of_an_older_run_can_commit_nothing(query: Query) -> None:
    _, (old, other) = query.run(query.write(), query.at(0, 0))
    put(old, b"old")
    _, (new, _) = query.run(query.write(), query.at(0, 0))
    for writer in (old, other):
        with pytest.raises(ConnectorError) as raised:
            writer.commitEpoch(0, query.position(p0=1))
        assert raised.value.condition in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "TRANSACTION_LOST")
        writer.abort()
    put(new, b"new")
    new.commitEpoch(0, query.position(p0=1))
    await_committed(query.servers, query.target, [b"new"])


def test_lost_response_of_a_commit_is_found_by_the_next_run(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    write = query.write()
    _, (first, second) = query.run(write, query.at(0, 0))
    put(first, b"committed")
    put(second, b"not committed")
    end = first._id.end  # type: ignore[attr-defined]

    def lost(*arguments: Any, **named: Any) -> Any:
        end(*arguments, **named)
        raise TransactionInDoubtError("planted", condition="TRANSACTION_IN_DOUBT")

    monkeypatch.setattr(first._id, "end", lost)  # type: ignore[attr-defined]
    with pytest.raises(TransactionInDoubtError):
        first.commitEpoch(0, query.position(p0=1))
    for writer in (first, second):
        writer.abort()
        writer.close()
    begin, _ = query.run(write, query.at(0, 0))
    assert begin == query.at(1, 0)
    await_committed(query.servers, query.target, [b"committed"])


def test_driver_that_another_one_replaced_ends(query: Query) -> None:
    first, second = query.write(), query.write()
    query.run(first, query.at(0, 0))
    _, (lane, _) = query.run(second, query.at(0, 0))
    with pytest.raises(DeliveryError, match="Another driver runs query") as raised:
        first.takeOver()
    assert raised.value.condition == "SINK_TAKEN_OVER"
    # The second is not disturbed.
    put(lane, b"a")
    lane.commitEpoch(0, query.position(p0=1))
    await_committed(query.servers, query.target, [b"a"])


def test_positions_that_are_gone_or_of_others_are_errors(query: Query) -> None:
    _, (lane, _) = query.run(query.write(), query.at(0, 0))
    lane.commitEpoch(0, query.position(p0=5))
    lane.close()
    admin = KafkaAdminClient(bootstrap_servers=query.servers)
    try:
        admin.delete_group_offsets(query.group, [KafkaPythonPartition(query.source, 1)])
        write = query.write()
        write.takeOver()
        with pytest.raises(CheckpointError, match=f"no position any more for {query.source}-1"):
            write.committedOffset(query.at(0, 0))
        (query._place / "continuous" / "transactions").unlink()
        again = query.write()
        again.takeOver()
        # As the hint says: the checkpoint counts where the group has no position.
        assert again.committedOffset(query.at(3, 1)) == query.at(5, 1).json()
        admin.alter_group_offsets(query.group, {KafkaPythonPartition(query.source, 0): OffsetAndMetadata(1, "", -1)})
    finally:
        admin.close()
    with pytest.raises(CheckpointError, match=r"has positions that query .* has not written"):
        query.write().takeOver()


def test_names_stay_those_of_the_checkpoint(query: Query) -> None:
    query.run(query.write(), query.at(0, 0))
    for option, changed in (
        ("kafka.transactional.id", query.write(transactional_id="other")),
        ("offsetsGroupId", query.write(offsets_group_id="other")),
    ):
        with pytest.raises(OptionError, match=f"'{option}' 'pyspark-kafka-{query.id}', which is 'other' now"):
            changed.takeOver()


def test_idle_lane_renews_its_positions(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    _, (lane, _) = query.run(query.write(), query.at(4, 0))
    before = lane._transaction  # type: ignore[attr-defined]
    lane.commitEpoch(0, query.position(p0=4))
    assert lane._transaction is before  # type: ignore[attr-defined]
    assert lane._renewed_at  # type: ignore[attr-defined]
    monkeypatch.setattr(transaction_writer, "RENEWAL_SECONDS", 0.0)
    admin = KafkaAdminClient(bootstrap_servers=query.servers)
    try:
        admin.delete_group_offsets(query.group, [KafkaPythonPartition(query.source, 0)])
    finally:
        admin.close()
    lane.commitEpoch(1, query.position(p0=4))
    eventually(lambda: query.group_has() == [4, 0])


def test_another_cluster_is_refused(kafka: EmbeddedKafka, older_kafka: EmbeddedKafka, tmp_path: Path) -> None:
    query = Query(kafka.bootstrap_servers, tmp_path)
    with pytest.raises(CapabilityError, match="a transaction cannot span both") as raised:
        query.write(source=older_kafka.bootstrap_servers).takeOver()
    assert raised.value.condition == "EXACTLY_ONCE_OTHER_CLUSTER"


def run_with_states(
    query: Query, start: KafkaSourceOffset, epoch: int, *states: str
) -> tuple[KafkaSourceOffset, dict[str, str | None], SourceOffsetsWriter]:
    """Begin a run of one lane; return where it begins, the states of the sink, and the lane."""
    write = query.write()
    write.takeOver()
    begin = KafkaSourceOffset.from_json(write.committedOffset(start))
    found = dict(write.committedStates(epoch))
    write.prepareStates({f"{query.source}-{number}": state for number, state in enumerate(states)})
    write.prepareLanes(begin, 1)
    writer = write.createStreamingWriterFactory(PhysicalWriteInfo(1)).createWriter(0, 0, 0)
    assert isinstance(writer, SourceOffsetsWriter)
    query.writers.append(writer)
    return begin, found, writer


def test_states_are_committed_with_the_positions_and_not_without_them(query: Query) -> None:
    first, second = f"{query.source}-0", f"{query.source}-1"
    _, found, lane = run_with_states(query, query.at(0, 0), -1, "x", "y")
    assert found == {}
    put(lane, b"a")
    lane.setStates({first: "x1", second: "y"})
    lane.commitEpoch(0, query.position(p0=1, p1=0))
    # The state of a position that has not moved is committed as well.
    lane.setStates({first: "x1", second: "y1"})
    lane.commitEpoch(1, query.position(p0=1, p1=0))
    # One that is not committed: its lane dies.
    lane.setStates({first: "x2", second: "y2"})
    put(lane, b"lost")
    begin, found, lane = run_with_states(query, query.at(0, 0), -1, "x1", "y1")
    assert (begin, found) == (query.at(1, 0), {first: "x1", second: "y1"})
    lane.abort()
    # The checkpoint has epoch 0, and then both.
    assert run_with_states(query, query.at(1, 0), 0, "x1", "y1")[1] == {second: "y1"}
    assert run_with_states(query, query.at(1, 0), 1, "x1", "y1")[1] == {}
    assert query.visible() == [b"a"]


def test_states_at_the_start_of_a_run_are_there_before_any_lane_commits(query: Query) -> None:
    first = f"{query.source}-0"
    run_with_states(query, query.at(4, 0), 7, "x", "y")
    begin, found, _ = run_with_states(query, query.at(2, 0), 7, "x", "y")
    # The checkpoint is an older one.
    assert (begin, found) == (query.at(4, 0), {first: "x"})


def test_recreated_topic_continues_where_its_lanes_have_committed(query: Query) -> None:
    first, second = f"{query.source}-0", f"{query.source}-1"
    _, _, lane = run_with_states(query, query.at(9, 0), -1, "x", "y")
    lane.setStates({first: "x1", second: "y"})
    lane.commitEpoch(0, query.position(p0=12, p1=0))
    lane.close()
    with client_of(query.servers) as client:
        delete_topics(client, [query.source])
        create_topic(client, query.source, 2)
    write = query.write()
    write.takeOver()
    write.committedOffset(query.at(9, 0))
    assert write.committedStates(0) == {first: None, second: None}
    # The source begins with the new topic, as the source decides.
    write.prepareStates({first: "-", second: "-"})
    write.prepareLanes(query.at(0, 0), 1)
    lane = write.createStreamingWriterFactory(PhysicalWriteInfo(1)).createWriter(0, 0, 0)  # type: ignore[assignment]
    query.writers.append(lane)
    lane.setStates({first: "n", second: "-"})
    lane.commitEpoch(1, query.position(p0=3, p1=0))
    # The driver has died: the checkpoint still has the position in the former topic.
    begin, found, _ = run_with_states(query, query.at(9, 0), 0, "n", "-")
    assert begin == query.at(3, 0)
    assert found == {first: "n", second: "-"}
