"""Each feature of the table of rights, done once by one user, as an engine does it; without Spark."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from typer.testing import Result

from kit.brokers.acls import Acls
from kit.brokers.guarded import PASSWORD, PLAIN_LOGIN, guarded_broker
from kit.checkpoint_files import write_checkpoint
from kit.independent_client import Record, commit_positions, produce
from kit.programs.cli import invoke
from kit.reading import client_of, drain
from kit.rights import COMMITS, QUERY, SOURCE, TARGET, feature, renamed
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka._client.options import ExactlyOnceOptions, ProducerOptions, WriteOptions
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka._connector.sink.driver.tasks.commit_calls import BrokerTaskCommitCalls
from pyspark_kafka._connector.sink.driver.transactional import KafkaTransactionalWrite
from pyspark_kafka._connector.sink.tasks.transactions import CommitDecision, TaskTransaction
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka._connector.source.executor.partition_offset import KafkaSourcePartitionOffset
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka.connector import DataWriter, LogicalWriteInfo, PhysicalWriteInfo, SourceOffsetsWriter
from pyspark_kafka.connector.filters import GreaterThan
from pyspark_kafka.errors import ConnectorError
from pyspark_kafka.records import encode
from pyspark_kafka.testing import EmbeddedKafka

_SCHEMA = pa.schema([("value", pa.binary())])
_VALUES = pa.RecordBatch.from_arrays([pa.array([b"a", b"b"], pa.binary())], schema=_SCHEMA)
_MAX_READ_S = 30.0


class CommandError(ConnectorError):
    """A command ended with an error; the text is what it printed."""


@dataclass
class Trial:
    """One user, and names that nobody used before.

    Attributes:
        kafka: the broker.
        user: the options of the user's connection.
        place: a directory of its own.
        has_commit_topic: whether the commit topic is there from the start.
    """

    kafka: EmbeddedKafka
    user: Mapping[str, str]
    place: Path
    has_commit_topic: bool = True
    names: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        run = uuid.uuid4().hex[:10]
        self.names = {SOURCE: f"orders-{run}", TARGET: f"copies-{run}", COMMITS: f"commits-{run}"}
        self.names |= {QUERY: f"query-{run}", "sink": f"sink-{run}"}
        self.place.mkdir()
        self.kafka.create_topic(self.names[SOURCE])
        self.kafka.create_topic(self.names[TARGET])
        if self.has_commit_topic:
            self.kafka.create_topic(self.names[COMMITS], 2, {"cleanup.policy": "compact"})
        produce(self.kafka.bootstrap_servers, self.names[SOURCE], [Record(None, b"v")])

    # Reading.

    def read_options(self, **options: str) -> dict[str, str]:
        """Return the options of a read of the source topic."""
        chosen = options if options.keys() & {"assign", "subscribePattern"} else {"subscribe": self.names[SOURCE]}
        # A client of its own: what another run has heard of topics must not answer for the broker.
        own = {"kafka.client.id": uuid.uuid4().hex, "startingOffsets": "earliest"}
        return {**self.user, **own, **chosen, **options}

    def read_batch(self, **options: str) -> None:
        """Read in a batch query."""
        wanted = self.read_options(**options)
        if "startingTimestamp" in options:
            del wanted["startingOffsets"]
        builder: Any = KafkaTable().newScanBuilder(wanted)
        if "pushDownPredicate" in options:
            builder.pushFilters([GreaterThan(("offset",), -1)])
        batch = builder.build().toBatch()
        factory = batch.createReaderFactory()
        rows = sum(each.num_rows for part in batch.planInputPartitions() for each in drain(factory.createReader(part)))
        assert rows == 1

    def read_assigned(self) -> None:
        """Read listed partitions."""
        self.read_batch(assign=json.dumps({self.names[SOURCE]: [0]}))

    def read_micro_batch(self, **options: str) -> None:
        """Read one micro-batch."""
        scan = KafkaTable().newScanBuilder(self.read_options(**options)).build()
        stream = scan.toMicroBatchStream(str(self.place / uuid.uuid4().hex))
        start = stream.initialOffset()
        end = stream.latestOffset(start, stream.getDefaultReadLimit())  # type: ignore[attr-defined]
        factory = stream.createReaderFactory()
        parts = stream.planInputPartitions(start, end)
        assert sum(each.num_rows for part in parts for each in drain(factory.createReader(part))) == 1

    def read_and_commit(self) -> None:
        """Read one micro-batch, and commit its end to a group."""
        group = renamed(feature("committed-group").optional[0], self.names).name
        scan = KafkaTable().newScanBuilder(self.read_options(commitOffsetsToGroup=group)).build()
        stream = scan.toMicroBatchStream(str(self.place / uuid.uuid4().hex))
        end = stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())  # type: ignore[attr-defined]
        stream.commit(end)
        stream.stop()

    def read_continuously(self) -> None:
        """Read the first rows of a continuous query."""
        stream = self._continuous_stream()
        (part,) = stream.planInputPartitions(stream.initialOffset())
        reader = stream.createContinuousReaderFactory().createReader(part)
        end = time.monotonic() + _MAX_READ_S
        try:
            while not reader.next():
                assert time.monotonic() < end, "no row came"
            assert reader.get().num_rows == 1
        finally:
            reader.close()

    def _continuous_stream(self) -> KafkaContinuousStream:
        scan = KafkaTable().newScanBuilder(self.read_options()).build()
        stream = scan.toContinuousStream(str(self.place / uuid.uuid4().hex))
        assert isinstance(stream, KafkaContinuousStream)
        return stream

    # Writing.

    def write_of(self, **options: str) -> Any:
        """Return a write to the target topic, as a table plans it."""
        own = {"kafka.client.id": uuid.uuid4().hex, "topic": self.names[TARGET]}
        info = LogicalWriteInfo({**self.user, **own, **options}, _SCHEMA, self.names[QUERY])
        return KafkaTable().newWriteBuilder(info).build()

    @staticmethod
    def _written(writer: DataWriter) -> Any:
        try:
            writer.write(_VALUES)
            return writer.commit()
        except BaseException:
            writer.abort()
            raise
        finally:
            writer.close()

    def write_batch(self, **options: str) -> None:
        """Write in a batch query."""
        write = self.write_of(**options).toBatch()
        message = self._written(write.createBatchWriterFactory(PhysicalWriteInfo(1)).createWriter(0, 0))
        write.commit([message])

    def write_batch_plainly(self) -> None:
        """Write in a batch query, without idempotence."""
        self.write_batch(**{"kafka.enable.idempotence": "false"})

    def write_micro_batch(self, epoch: int = 0, **options: str) -> None:
        """Write one micro-batch."""
        write = self.write_of(**options).toStreaming()
        factory = write.createStreamingWriterFactory(PhysicalWriteInfo(1)).for_tasks()
        message = self._written(factory.createWriter(0, 0, epoch))
        write.commit(epoch, [message])

    def write_micro_batch_once(self, epoch: int = 0, **options: str) -> None:
        """Write one micro-batch exactly once, under a checkpoint of its own but the same query id."""
        checkpoint = self.place / uuid.uuid4().hex
        (checkpoint / "offsets").mkdir(parents=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": self.names[QUERY]}))
        (checkpoint / "offsets" / str(epoch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"source":{{"0":{epoch}}}}}')
        self.write_micro_batch(
            epoch,
            deliveryGuarantee="exactly_once",
            checkpointLocation=str(checkpoint),
            commitTopic=self.names[COMMITS],
            **options,
        )

    def write_batch_once(self) -> None:
        """Write a batch exactly once."""
        self.write_batch(deliveryGuarantee="exactly_once", commitTopic=self.names[COMMITS])

    def copy_continuously_once(self) -> None:
        """Run one epoch of a continuous query that is exactly once."""
        stream = self._continuous_stream()
        checkpoint = self.place / uuid.uuid4().hex
        options = {"deliveryGuarantee": "exactly_once", "checkpointLocation": str(checkpoint)}
        write = self.write_of(**options).toContinuous(stream, 100)
        assert isinstance(write, KafkaTransactionalWrite)
        write.takeOver()
        begin = KafkaSourceOffset.from_json(write.committedOffset(stream.initialOffset()))
        write.prepareLanes(begin, 2)
        factory = write.createStreamingWriterFactory(PhysicalWriteInfo(2))
        writers = [factory.createWriter(lane, 0, 0) for lane in range(2)]
        try:
            for lane, writer in enumerate(writers):
                assert isinstance(writer, SourceOffsetsWriter)
                writer.write(_VALUES)
                moved = {TopicPartition(self.names[SOURCE], 0): 1} if lane == 0 else {}
                writer.commitEpoch(0, KafkaSourcePartitionOffset(moved))
        finally:
            for writer in writers:
                writer.close()

    # The command line.

    def leave_transaction_open(self) -> None:
        """Begin a transaction that nobody ends, as another user; again if it was ended."""
        with client_of(self.kafka.bootstrap_servers) as client:
            owner = TransactionalId(client, self.names["sink"], 60_000)
            transaction = owner.fence()
            target = TopicPartition(self.names[TARGET], 0)
            owner.join(transaction, [target])
            with Producer(client, ProducerOptions(), transaction=transaction) as producer:
                producer.send_batch(target, bytearray(encode(_VALUES)), _VALUES.num_rows)
                producer.flush()

    def run(self, *arguments: str) -> Result:
        """Run `pyspark-kafka …` as the user."""
        config = self.place / "client.properties"
        config.write_text("".join(f"{name.removeprefix('kafka.')}={text}\n" for name, text in self.user.items()))
        # A client of its own, as for reads.
        return invoke(*arguments, "--config", str(config), "-o", f"client.id={uuid.uuid4().hex}")

    def command(self, *arguments: str) -> str:
        """Run `pyspark-kafka transactions …` as the user, and return what it printed."""
        done = self.run("transactions", *arguments)
        if done.exit_code:
            raise CommandError(done.output, condition="COMMAND_FAILED")
        return done.stdout

    def look_at_checkpoint(self) -> Result:
        """Show the lag of a query that has read nothing yet."""
        checkpoint = write_checkpoint(self.place / uuid.uuid4().hex, [{self.names[SOURCE]: {"0": 0}}])
        return self.run("lag", "--checkpoint", str(checkpoint))

    def look_at_group(self) -> Result:
        """Show the lag of a group that has read nothing yet."""
        group = renamed(feature("lag-group").rights[0], self.names).name
        commit_positions(self.kafka.bootstrap_servers, group, {(self.names[SOURCE], 0): 0})
        return self.run("lag", "--group", group)

    def look_at_topic(self, *command: str) -> Result:
        """Run a command with the source topic as its argument."""
        return self.run(*command, self.names[SOURCE])

    def abort_transaction(self, *arguments: str) -> None:
        """Abort an open transaction."""
        self.leave_transaction_open()
        self.command("abort", self.names["sink"], "--yes", *arguments)

    def abort_with_markers(self) -> None:
        """Abort an open transaction, after a look at the commit marker of its owner."""
        self.abort_transaction("--commit-topic", self.names[COMMITS])

    def resolve_loss(self) -> None:
        """Note that what a micro-batch has lost is dealt with, which another user has written."""
        sink_id, commit_topic = self.names["sink"], self.names[COMMITS]
        with client_of(self.kafka.bootstrap_servers) as client:
            settings = ExactlyOnceOptions(commit_topic=commit_topic)
            calls = BrokerTaskCommitCalls(client, WriteOptions(client.options), settings, sink_id)
            transaction = calls.fence()
            # A former attempt has left a marker, and a write compares what was read.
            calls.read()
            decision = CommitDecision("", transaction.identity).completed([TaskTransaction(transaction)], pool="")
            calls.write(transaction, CommitMarker(sink_id, "query", 0, "print", decision=decision))
        self.command("resolve", sink_id, "--yes", "--commit-topic", commit_topic)


class Guarded:
    """A broker, and a user who has no rights unless a test sets some.

    Attributes:
        kafka: the broker, for those who may do all.
        acls: the rights of the user.
        user: the options of the user's connection.
    """

    def __init__(self, kafka: EmbeddedKafka, port: int, acls: Acls) -> None:
        self.kafka, self.acls = kafka, acls
        self.user = {
            "kafka.bootstrap.servers": f"127.0.0.1:{port}",
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": f'{PLAIN_LOGIN} username="alice" password="{PASSWORD}";',
        }

    def trial(self, key: str, place: Path) -> tuple[Trial, list[Right]]:
        """Return names for a feature, and its rights on them."""
        trial = Trial(self.kafka, self.user, place / uuid.uuid4().hex, key != "create-commit-topic")
        return trial, [renamed(right, trial.names) for right in feature(key).rights]


@contextmanager
def guarded_by_acls(version: str) -> Iterator[Guarded]:
    """Run a broker with an authorizer."""
    with guarded_broker(version) as (kafka, _, port):
        acls = Acls(kafka.bootstrap_servers, "User:alice")
        try:
            yield Guarded(kafka, port, acls)
        finally:
            acls.close()
            close_clients()


# By feature: what is tried.
TRIALS: tuple[tuple[str, str, Callable[[Trial], None]], ...] = (
    ("read", "batch by subscribe", Trial.read_batch),
    ("read", "batch by assign", Trial.read_assigned),
    ("read", "batch by time", partial(Trial.read_batch, startingTimestamp="0")),
    ("read", "batch with filters", partial(Trial.read_batch, pushDownPredicate="true")),
    ("read", "micro-batch", Trial.read_micro_batch),
    ("read", "continuous", Trial.read_continuously),
    ("max-bytes", "micro-batch", partial(Trial.read_micro_batch, maxBytesPerTrigger="1000000")),
    ("committed-group", "micro-batch", Trial.read_and_commit),
    ("write", "batch", Trial.write_batch),
    ("write", "without idempotence", Trial.write_batch_plainly),
    ("write", "micro-batch", Trial.write_micro_batch),
    ("exactly-once", "micro-batch", Trial.write_micro_batch_once),
    ("exactly-once-tasks", "micro-batch", partial(Trial.write_micro_batch_once, exactlyOnceCommit="tasks")),
    ("create-commit-topic", "micro-batch", Trial.write_micro_batch_once),
    ("exactly-once-batch", "batch", Trial.write_batch_once),
    ("continuous-exactly-once", "epoch", Trial.copy_continuously_once),
    ("abort", "command", Trial.abort_transaction),
    ("markers", "command", Trial.abort_with_markers),
    ("resolve", "command", Trial.resolve_loss),
)
# By feature: commands that show what they can find out.
LOOKS: tuple[tuple[str, Callable[[Trial], Result]], ...] = (
    ("lag", Trial.look_at_checkpoint),
    ("lag-group", Trial.look_at_group),
    ("tail", lambda trial: trial.look_at_topic("tail")),
    ("tail", lambda trial: trial.look_at_topic("tail", "--from", "earliest", "--grep", "v")),
)
