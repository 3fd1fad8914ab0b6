"""Each kind of read and write, and commands, on networks that are bad in one way: the result is that of a good one.

Without Spark: what a network can damage is below it. Queries on a whole cluster in motion: `tests/chaos`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, produce
from kit.network.changes import cut, lost, throttled
from kit.network.proxy import Proxy, proxied
from kit.network.wire import CLEAN, Drip, Wire
from kit.reading import client_of, drain
from kit.rights import COMMITS, SOURCE, TARGET
from kit.rights_in_use import Trial
from kit.waiting import PATIENCE_S
from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka._client.client.produce.pool import drop_producers
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka.testing import EmbeddedKafka

VALUES = [b"%d" % number * 200 for number in range(300)]
# Shorter than by default: some of the networks have a response lost.
TIMES = {
    "kafka.request.timeout.ms": "2000",
    "kafka.default.api.timeout.ms": "30000",
    "kafka.retry.backoff.ms": "20",
}
THROTTLED = ("Fetch", "Metadata", "ListOffsets", "Produce", "InitProducerId", "FindCoordinator", "EndTxn")

# Each as a function, because changes count what they have changed.
WIRES: Mapping[str, Callable[[], Wire]] = {
    "slow": lambda: Wire(rate=400_000),
    "far": lambda: Wire(delay_s=0.03),
    "dripping": lambda: Wire(drip=Drip(200, 0.002)),
    "cutting": lambda: Wire(cut=0.1),
    "throttled": lambda: Wire(changes=(throttled(30, *THROTTLED),)),
}
# One that takes responses apart and one that ends connections; the others differ in what they cost.
NETWORKS = [
    name if name in ("dripping", "cutting") else pytest.param(name, marks=pytest.mark.full("Further networks"))
    for name in WIRES
]
# The response that does not arrive, once: the broker has acted.
LOST = ("Metadata", "ListOffsets", "Fetch")
LOST_OF_WRITES = ("Metadata", "InitProducerId", "Produce")
LOST_OF_TRANSACTIONS = ("FindCoordinator", "InitProducerId", "AddPartitionsToTxn", "Produce", "EndTxn")


@pytest.fixture
def proxy(kafka: EmbeddedKafka) -> Iterator[Proxy]:
    """The network before the broker of the run; nothing is pooled of it afterwards."""
    with proxied(kafka.bootstrap_servers) as made:
        yield made
        drop_producers()
        close_clients()


@pytest.fixture
def trial(kafka: EmbeddedKafka, proxy: Proxy, tmp_path: Path) -> Trial:
    """Topics of the test, and a user behind the network."""
    return Trial(kafka, {**TIMES, "kafka.bootstrap.servers": proxy.address}, tmp_path / "trial")


@pytest.fixture(scope="module")
def filled(kafka: EmbeddedKafka, make_topic: TopicMaker) -> str:
    """A topic with all values."""
    topic = make_topic()
    produce(kafka.bootstrap_servers, topic, [Record(None, value) for value in VALUES])
    return topic


def scan_of(proxy: Proxy, topic: str) -> Any:
    options = {
        **TIMES,
        "kafka.bootstrap.servers": proxy.address,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka.max.partition.fetch.bytes": "20000",
    }
    return KafkaTable().newScanBuilder(options).build()


def values_of(parts: Any, factory: Any) -> list[bytes]:
    return [
        value for part in parts for rows in drain(factory.createReader(part)) for value in rows["value"].to_pylist()
    ]


def read_batch(proxy: Proxy, topic: str, _: Path) -> list[bytes]:
    batch = scan_of(proxy, topic).toBatch()
    return values_of(batch.planInputPartitions(), batch.createReaderFactory())


def read_micro_batch(proxy: Proxy, topic: str, place: Path) -> list[bytes]:
    stream = scan_of(proxy, topic).toMicroBatchStream(str(place / uuid.uuid4().hex))
    start = stream.initialOffset()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    return values_of(stream.planInputPartitions(start, end), stream.createReaderFactory())


def read_continuously(proxy: Proxy, topic: str, place: Path) -> list[bytes]:
    stream = scan_of(proxy, topic).toContinuousStream(str(place / uuid.uuid4().hex))
    (part,) = stream.planInputPartitions(stream.initialOffset())
    reader = stream.createContinuousReaderFactory().createReader(part)
    found: list[bytes] = []
    end = time.monotonic() + PATIENCE_S
    try:
        while len(found) < len(VALUES):
            if reader.next():
                found += reader.get()["value"].to_pylist()
            assert time.monotonic() < end, f"{len(found)} rows came"
    finally:
        reader.close()
    return found


Read = Callable[[Proxy, str, Path], list[bytes]]
READS = pytest.mark.parametrize("read", [read_batch, read_micro_batch, read_continuously])
WRITES: Mapping[str, Callable[[Trial], None]] = {
    "batch": Trial.write_batch,
    "micro-batch": Trial.write_micro_batch,
}
WRITES_ONCE: Mapping[str, Callable[[Trial], None]] = {
    "micro-batch": Trial.write_micro_batch_once,
    "tasks": lambda trial: trial.write_micro_batch_once(exactlyOnceCommit="tasks"),
    "batch": Trial.write_batch_once,
}


@READS
@pytest.mark.parametrize("name", NETWORKS)
def test_read_returns_each_row_once_on_a_bad_network(
    proxy: Proxy, filled: str, tmp_path: Path, read: Read, name: str
) -> None:
    proxy.set_wire(WIRES[name]())
    assert read(proxy, filled, tmp_path) == VALUES


@READS
@pytest.mark.parametrize("api", LOST)
def test_read_returns_each_row_once_when_a_response_is_lost(
    proxy: Proxy, filled: str, tmp_path: Path, read: Read, api: str
) -> None:
    proxy.set_wire(Wire(changes=(lost(api),)))
    assert read(proxy, filled, tmp_path) == VALUES


@READS
def test_read_returns_each_row_once_when_responses_end_within_a_record_batch(
    proxy: Proxy, filled: str, tmp_path: Path, read: Read
) -> None:
    proxy.set_wire(Wire(changes=(cut("Fetch", 10_000, times=3),)))
    assert read(proxy, filled, tmp_path) == VALUES


@READS
def test_read_returns_each_row_once_on_forgotten_connections(
    proxy: Proxy, filled: str, tmp_path: Path, read: Read
) -> None:
    for _ in range(2):
        assert read(proxy, filled, tmp_path) == VALUES
        proxy.forget()


def await_written(trial: Trial, times: int = 1) -> None:
    """Wait for what a trial writes, and for nothing else."""
    await_committed(trial.kafka.bootstrap_servers, trial.names[TARGET], [b"a", b"b"] * times)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", NETWORKS)
def test_write_stores_each_row_once_on_a_bad_network(trial: Trial, proxy: Proxy, write: str, name: str) -> None:
    proxy.set_wire(WIRES[name]())
    WRITES[write](trial)
    await_written(trial)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("api", LOST_OF_WRITES)
def test_write_stores_each_row_once_when_a_response_is_lost(trial: Trial, proxy: Proxy, write: str, api: str) -> None:
    proxy.set_wire(Wire(changes=(lost(api),)))
    WRITES[write](trial)
    await_written(trial)


def test_write_stores_each_row_once_on_forgotten_connections(trial: Trial, proxy: Proxy) -> None:
    for epoch in range(2):
        trial.write_micro_batch(epoch)
        proxy.forget()
    await_written(trial, 2)


@pytest.mark.parametrize("write", WRITES_ONCE)
@pytest.mark.parametrize("name", NETWORKS)
def test_exactly_once_write_is_committed_once_on_a_bad_network(
    trial: Trial, proxy: Proxy, write: str, name: str
) -> None:
    proxy.set_wire(WIRES[name]())
    WRITES_ONCE[write](trial)
    await_written(trial)


@pytest.mark.parametrize("api", LOST_OF_TRANSACTIONS)
def test_exactly_once_write_is_committed_once_when_a_response_is_lost(trial: Trial, proxy: Proxy, api: str) -> None:
    proxy.set_wire(Wire(changes=(lost(api),)))
    trial.write_micro_batch_once()
    await_written(trial)


def test_exactly_once_write_is_committed_once_on_forgotten_connections(trial: Trial, proxy: Proxy) -> None:
    for epoch in range(2):
        trial.write_micro_batch_once(epoch)
        proxy.forget()
    await_written(trial, 2)


@pytest.mark.parametrize("name", NETWORKS)
def test_epoch_of_a_continuous_query_is_committed_once_on_a_bad_network(trial: Trial, proxy: Proxy, name: str) -> None:
    proxy.set_wire(WIRES[name]())
    trial.copy_continuously_once()
    await_written(trial, 2)


def test_commit_topic_is_created_once_when_the_response_is_lost(
    kafka: EmbeddedKafka, proxy: Proxy, tmp_path: Path
) -> None:
    user = {**TIMES, "kafka.bootstrap.servers": proxy.address}
    trial = Trial(kafka, user, tmp_path / "trial", has_commit_topic=False)
    proxy.set_wire(Wire(changes=(lost("CreateTopics"),)))
    trial.write_micro_batch_once()
    await_written(trial)
    with client_of(kafka.bootstrap_servers) as client:
        assert client.fetch_metadata([trial.names[COMMITS]]).topics[trial.names[COMMITS]].error_code == 0


COMMANDS: Mapping[str, Callable[[Trial], Any]] = {
    "lag": Trial.look_at_checkpoint,
    "lag of a group": Trial.look_at_group,
    "tail": lambda trial: trial.look_at_topic("tail", "--from", "earliest"),
    "grep": lambda trial: trial.look_at_topic("tail", "--from", "earliest", "--grep", "v"),
    "check": lambda trial: trial.run("check", "--topic", trial.names[SOURCE]),
    "transactions": lambda trial: trial.run("transactions", "list"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["forgotten", *(network for network in NETWORKS if network != "cutting")])
def test_command_succeeds_on_a_bad_network(trial: Trial, proxy: Proxy, command: str, name: str) -> None:
    """Not on one that cuts responses: commands may report a lost connection instead of hiding it."""
    if name == "forgotten":
        assert COMMANDS[command](trial).exit_code == 0
        proxy.forget()
    proxy.set_wire(WIRES.get(name, lambda: CLEAN)())
    done = COMMANDS[command](trial)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("command", ["tail", "grep"])
def test_records_are_shown_on_a_network_that_cuts_responses(trial: Trial, proxy: Proxy, command: str) -> None:
    proxy.set_wire(WIRES["cutting"]())
    done = COMMANDS[command](trial)
    assert done.exit_code == 0, done.output
