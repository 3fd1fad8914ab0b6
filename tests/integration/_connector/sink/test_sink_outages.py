"""A sink of a stream continues through an outage of a real broker, and says so: in tasks and at commits."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kit.fixtures.broker import FREEZE, MortalBroker
from kit.fixtures.waits import report_no_other_waits, waiting_lines
from kit.independent_client import consume, consume_committed
from kit.waiting import PATIENCE_S
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.leaders import find_leaders
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.client.waiting import stalls as reports
from pyspark_kafka._client.options import WriteOptions, parse_write_options
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.commit_marker import CommitMarker, MarkerFinding
from pyspark_kafka._connector.sink.driver.at_least_once import KafkaDataWriterFactory
from pyspark_kafka._connector.sink.driver.checked_sink import CheckedSinkWrite
from pyspark_kafka._connector.sink.driver.exactly_once import KafkaExactlyOnceStreamingWrite
from pyspark_kafka._connector.sink.driver.publisher import Publisher
from pyspark_kafka._connector.sink.driver.tasks.exactly_once import KafkaTaskCommitStreamingWrite
from pyspark_kafka._connector.sink.executor.outbox import Chunk, PreparedBatch
from pyspark_kafka.connector import DataWriter, PhysicalWriteInfo
from pyspark_kafka.errors import DeadlineError, DeliveryError, TransportError
from pyspark_kafka.records import encode

FROZEN = pytest.param(True, marks=FREEZE.marks)
pytestmark = pytest.mark.usefixtures("early_reports")


def options_of(broker: MortalBroker, topic: str, *, streaming: bool = True, **more: str) -> WriteOptions:
    raw = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "topic": topic,
        # One attempt of anything is shorter than an outage.
        "kafka.default.api.timeout.ms": "1500",
        "kafka.max.block.ms": "1500",
        **more,
    }
    options = parse_write_options(raw, streaming=streaming)
    return replace(options, producer=replace(options.producer, delivery_timeout_ms=2_000))


def rows(start: int, stop: int) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([b"%04d" % n for n in range(start, stop)], pa.binary())})


def writer_of(options: WriteOptions, epoch_id: int) -> DataWriter:
    return KafkaDataWriterFactory(options, SinkColumns(value=0)).createWriter(0, 0, epoch_id)


def write_all(writer: DataWriter) -> None:
    writer.write(rows(0, 10_000))
    writer.commit()


def outlast(broker: MortalBroker, call: Callable[[], object], *, frozen: bool = False) -> list[object]:
    """Run a call in an outage that is longer than any of its attempts; return what it returned."""
    found: list[object] = []
    if frozen:
        broker.kafka.pause()
    else:
        broker.kafka.kill()
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(5.0)
    ended = not thread.is_alive()
    report_no_other_waits()
    if frozen:
        broker.kafka.resume()
    else:
        broker.kafka.start()
    thread.join(PATIENCE_S)
    assert not ended, "it did not wait"
    return found


def await_leaders(broker: MortalBroker, topic: str) -> None:
    """Wait for what the client of `support` does not wait for: a broker that was away is a member again."""
    with KafkaClient(replace(options_of(broker, topic).connection, api_timeout_ms=60_000)) as client:
        find_leaders(client, [TopicPartition(topic, 0)])


def await_coordinator(broker: MortalBroker, name: str) -> None:
    """Wait until a broker that has just started has made its log of transactions, which may take some seconds."""
    with KafkaClient(replace(options_of(broker, "t").connection, api_timeout_ms=60_000)) as client:
        TransactionalId(client, name, 3_000).fence()


@pytest.mark.parametrize("frozen", [False, FROZEN], ids=["killed", "frozen"])
@pytest.mark.parametrize(
    "begun",
    [pytest.param(False, marks=pytest.mark.full("Outages at every step")), True],
    ids=["before the first row", "with rows in flight"],
)
def test_a_task_of_a_stream_that_has_run_delivers_after_an_outage(
    mortal_broker: MortalBroker, caplog: pytest.LogCaptureFixture, begun: bool, frozen: bool
) -> None:
    topic = f"outage-sink-{begun}-{frozen}"
    mortal_broker.kafka.create_topic(topic, 2)
    writer = writer_of(options_of(mortal_broker, topic), epoch_id=1)
    if begun:
        writer.write(rows(0, 500))
        writer._producer or writer._send(writer._encoder.finish())  # type: ignore[attr-defined]

    def write() -> object:
        writer.write(rows(500 if begun else 0, 1_000))
        return writer.commit()

    caplog.clear()
    (message,) = outlast(mortal_broker, write, frozen=frozen)
    writer.close()
    assert message.records == 1_000  # type: ignore[attr-defined]
    await_leaders(mortal_broker, topic)
    found = consume(mortal_broker.bootstrap_servers, topic, 1_000)
    assert sorted(record.value or b"" for record in found) == [b"%04d" % n for n in range(1_000)]
    lines = waiting_lines(caplog)
    assert lines[0].startswith("Waiting for Kafka: delivery of ")
    assert f"{mortal_broker.bootstrap_servers} answered last, at " in lines[0]
    assert sum(line.startswith("Waiting for Kafka is over after ") for line in lines) == 1


def test_a_batch_write_and_the_first_task_of_a_process_fail_as_before(
    mortal_broker: MortalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    mortal_broker.kafka.create_topic("outage-sink-first")
    batch = options_of(mortal_broker, "outage-sink-first", streaming=False)
    mortal_broker.kafka.kill()
    monkeypatch.setattr(reports, "_CONTACTS", {})
    for options in (batch, options_of(mortal_broker, "outage-sink-first")):
        writer = writer_of(options, epoch_id=0)
        with pytest.raises((TransportError, DeliveryError)):
            write_all(writer)
        writer.close()


def exactly_once(broker: MortalBroker, tmp_path: Path, **more: str) -> WriteOptions:
    named = {"deliveryGuarantee": "exactly_once", "checkpointLocation": str(tmp_path), "commitTopic": "c-outages"}
    return options_of(broker, "t", streaming=True, **named, **more)


def publisher_of(broker: MortalBroker, tmp_path: Path, name: str, **more: str) -> tuple[Publisher, Any]:
    options = exactly_once(broker, tmp_path, **more)
    assert options.exactly_once is not None
    borrowed = borrow_client(options.connection)
    return Publisher(borrowed.__enter__(), options, options.exactly_once, name, None), borrowed


def chunk(topic: str, *values: bytes) -> Chunk:
    data = encode(pa.RecordBatch.from_pydict({"value": list(values)}))
    return Chunk((PreparedBatch(TopicPartition(topic, 0), len(data), len(values)),), data)


@pytest.mark.parametrize("frozen", [False, FROZEN], ids=["killed", "frozen"])
@pytest.mark.parametrize(
    "step",
    [*(pytest.param(step, marks=pytest.mark.full("Outages at every step")) for step in ("fence", "join")), "end"],
)
def test_a_micro_batch_is_committed_once_after_an_outage(
    mortal_broker: MortalBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch,
    step: str, frozen: bool,
) -> None:  # fmt: skip
    topic = f"outage-commit-{step}-{frozen}"
    mortal_broker.kafka.create_topic(topic)
    name = f"sink-{uuid.uuid4().hex}"
    # The outage is longer than a transaction may last.
    await_coordinator(mortal_broker, name)
    publisher, borrowed = publisher_of(mortal_broker, tmp_path, name, **{"kafka.transaction.timeout.ms": "3000"})
    publisher.check(CommitMarker(name, "query", -1, ""))
    reached, go = threading.Event(), threading.Event()
    real = getattr(publisher._id, step)

    def held(*arguments: Any, **named: Any) -> Any:
        if not reached.is_set():
            reached.set()
            assert go.wait(PATIENCE_S)
        return real(*arguments, **named)

    monkeypatch.setattr(publisher._id, step, held)
    marker = CommitMarker(name, "query", 0, "print")
    found: list[MarkerFinding] = []
    committing = threading.Thread(
        target=lambda: found.append(publisher.publish(marker, [chunk(topic, b"a", b"b")])), daemon=True
    )
    caplog.clear()
    committing.start()
    assert reached.wait(PATIENCE_S)

    def resume() -> None:
        go.set()
        committing.join(PATIENCE_S)

    outlast(mortal_broker, resume, frozen=frozen)
    borrowed.__exit__(None, None, None)
    assert len(found) == 1
    await_leaders(mortal_broker, topic)
    values = [record.value for record in consume_committed(mortal_broker.bootstrap_servers, topic)]
    assert values == [b"a", b"b"]
    lines = [line for line in waiting_lines(caplog) if "checking the sink" not in line]
    assert lines[0].startswith(f"Waiting for Kafka: committing batch 0 of sink '{name}'")
    assert any(line.startswith("Waiting for Kafka is over after ") for line in lines)


@pytest.mark.full("Waits for limits of time")
def test_commit_whose_outage_lasts_too_long_names_the_outage(mortal_broker: MortalBroker, tmp_path: Path) -> None:
    name = f"sink-{uuid.uuid4().hex}"
    publisher, borrowed = publisher_of(mortal_broker, tmp_path, name, outageTimeout="3s")
    publisher.check(CommitMarker(name, "query", -1, ""))
    mortal_broker.kafka.kill()
    with pytest.raises(DeadlineError) as caught:
        publisher.publish(CommitMarker(name, "query", 0, "print"), [])
    text = str(caught.value)
    assert text.startswith("[OUTAGE_TOO_LONG] ")
    assert f"allows: committing batch 0 of sink '{name}'." in text
    assert f"{mortal_broker.bootstrap_servers} answered last, at " in text
    borrowed.__exit__(None, None, None)


@pytest.mark.full("Waits for limits of time")
@pytest.mark.parametrize("kind", [KafkaExactlyOnceStreamingWrite, KafkaTaskCommitStreamingWrite])
def test_check_of_a_sink_waits_for_an_outage_only_if_the_query_has_run(
    mortal_broker: MortalBroker, tmp_path: Path, kind: type[CheckedSinkWrite]
) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": uuid.uuid4().hex}))
    options = exactly_once(mortal_broker, tmp_path, outageTimeout="3s")
    assert options.exactly_once is not None
    write = kind(options, options.exactly_once, SinkColumns(value=0))
    mortal_broker.kafka.kill()
    with pytest.raises(TransportError, match="BOOTSTRAP_FAILED"):
        write.createStreamingWriterFactory(PhysicalWriteInfo())
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()
    with pytest.raises(DeadlineError, match="OUTAGE_TOO_LONG"):
        write.createStreamingWriterFactory(PhysicalWriteInfo())
