"""`pyspark-kafka transactions` against a real broker: what is listed, what an abort ends, what it leaves alone."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer.main
from typer.testing import Result

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, produce
from kit.programs.cli import invoke
from kit.waiting import eventually
from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.transactions.inspection import TransactionState, describe_transaction
from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import ExactlyOnceOptions, ProducerOptions, WriteOptions
from pyspark_kafka._connector.sink.commit_marker import CommitMarker, MarkerFinding
from pyspark_kafka._connector.sink.driver.commit_topic import CommitTopic
from pyspark_kafka._connector.sink.driver.publisher import Publisher
from pyspark_kafka._connector.sink.executor.outbox import Chunk, PreparedBatch
from pyspark_kafka._ops.cli.transactions import app as transactions
from pyspark_kafka.errors import DeliveryError
from pyspark_kafka.records import encode

_PAGE = Path(__file__).parents[4] / "docs" / "transactions.md"


@pytest.fixture
def name(client: KafkaClient) -> Iterator[str]:
    """A transactional id; what a test leaves open under it is ended."""
    name = f"cli-{uuid.uuid4().hex}"
    yield name
    if describe_transaction(client, name) is not None:
        TransactionalId(client, name, 60_000).fence()


def run(bootstrap_servers: str, *args: str, answer: str = "") -> Result:
    command, *rest = args
    return invoke("transactions", command, "--bootstrap-servers", bootstrap_servers, *rest, answer=answer)


def write(client: KafkaClient, transaction: OpenTransaction, *partitions: TopicPartition) -> None:
    with Producer(client, ProducerOptions(), transaction=transaction) as producer:
        for where in partitions:
            producer.send_batch(where, bytearray(encode(pa.RecordBatch.from_pydict({"value": [b"v"]}))), 1)
        producer.flush()


def leave_open(
    client: KafkaClient, name: str, *partitions: TopicPartition, timeout_ms: int = 123_000
) -> tuple[TransactionalId, OpenTransaction]:
    owner = TransactionalId(client, name, timeout_ms)
    transaction = owner.fence()
    owner.join(transaction, partitions)
    write(client, transaction, *partitions)
    return owner, transaction


def stable_end(client: KafkaClient, where: TopicPartition) -> int:
    return list_offsets(client, {where: Latest()}, IsolationLevel.READ_COMMITTED)[where]


def test_an_open_transaction_is_listed_with_its_partitions(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker, name: str
) -> None:
    one, two = sorted([make_topic(4), make_topic()])
    held = [TopicPartition(topic, 0) for topic in (one, two)]
    began_ms = time.time_ns() // 1_000_000
    _, transaction = leave_open(client, name, *held)
    done = run(bootstrap_servers, "list", "--prefix", name)
    assert done.exit_code == 0, done.output
    (row,) = [line for line in done.stdout.splitlines() if name in line]
    cells = re.split(r" {2,}", row)
    identity = transaction.identity
    assert cells[:4] == [
        name,
        "Ongoing",
        f"{identity.producer_id}, epoch {identity.producer_epoch}",
        f"1 ({bootstrap_servers})",
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \([\d.]+ m?s\)", cells[4])
    assert cells[5:] == ["2 m 3 s", f"{one} 0; {two} 0"]

    (told,) = json.loads(run(bootstrap_servers, "list", "--prefix", name, "--json").stdout)
    # The broker's clock is this machine's.
    assert began_ms <= told.pop("began_at_ms") <= time.time_ns() // 1_000_000
    assert 0 <= told.pop("open_for_ms") < 600_000
    assert told == {
        "transactional_id": name,
        "state": "Ongoing",
        "open": True,
        "producer_id": identity.producer_id,
        "producer_epoch": identity.producer_epoch,
        "coordinator_id": 1,
        "coordinator": bootstrap_servers,
        "timeout_ms": 123_000,
        "topic_partitions": [{"topic": where.topic, "partition": 0} for where in held],
    }


def test_only_what_is_asked_for_is_listed(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker, name: str
) -> None:
    owner, transaction = leave_open(client, name, TopicPartition(make_topic(), 0))

    def listed(*options: str) -> list[str]:
        found = json.loads(run(bootstrap_servers, "list", "--json", *options).stdout)
        return [each["state"] for each in found if each["transactional_id"] == name]

    assert listed() == listed("--older-than", "0ms") == listed("--all") == ["Ongoing"]
    assert listed("--prefix", f"{name}-") == listed("--older-than", "1h") == []
    owner.end(transaction, commit=True)
    eventually(lambda: listed() == [])
    assert listed("--all") == ["CompleteCommit"]
    done = run(bootstrap_servers, "list", "--prefix", name)
    assert done.exit_code == 0
    assert done.stdout == (
        f"No open transaction of an id that begins with '{name}', among the transactional ids that this user may "
        "describe.\n"
    )
    done = run(bootstrap_servers, "list", "--prefix", name, "--older-than", "5m")
    assert "No open transaction of an id" in done.stdout
    assert "for longer than 5 m," in done.stdout


def test_abort_ends_it_after_yes_and_readers_go_on_and_the_owner_is_shut_out(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker, name: str
) -> None:
    where = TopicPartition(make_topic(), 0)
    _, transaction = leave_open(client, name, where)
    # Of another producer, without a transaction, and held back with it.
    produce(bootstrap_servers, where.topic, [Record(None, b"behind", 0)])

    done = run(bootstrap_servers, "abort", name, answer="n\n")
    assert done.exit_code == 1
    assert f"Transaction of '{name}': state Ongoing, producer {transaction.identity.producer_id}, epoch" in done.stdout
    assert f"timeout 2 m 3 s, coordinator 1 ({bootstrap_servers}).\nIt holds {where.topic} 0.\n" in done.stdout
    assert done.stdout.endswith("Nothing was done.\n")
    # Nobody answers.
    done = run(bootstrap_servers, "abort", name)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "Nothing was done.")
    assert stable_end(client, where) == 0
    kept = describe_transaction(client, name)
    assert kept is not None
    assert (kept.state, kept.producer_epoch) == (TransactionState.ONGOING, transaction.identity.producer_epoch)

    done = run(bootstrap_servers, "abort", name, answer="y\n")
    assert done.exit_code == 0, done.output
    assert f"The transaction of '{name}' is aborted: readers with read_committed continue" in done.stdout
    found = describe_transaction(client, name)
    assert found is not None
    assert (found.state, found.partitions) == (TransactionState.EMPTY, ())
    end = list_offsets(client, {where: Latest()})[where]
    # Two records, and the marker behind them.
    assert end == 3
    eventually(lambda: stable_end(client, where) == end)
    await_committed(bootstrap_servers, where.topic, [b"behind"])
    with pytest.raises(DeliveryError, match=r"INVALID_PRODUCER_EPOCH|PRODUCER_FENCED"):
        write(client, transaction, where)

    done = run(bootstrap_servers, "abort", name, "--yes")
    assert done.exit_code == 1
    assert done.stdout == f"The transactional id '{name}' has no open transaction (state Empty). Nothing was done.\n"


def test_an_id_that_is_not_known_is_not_created(client: KafkaClient, bootstrap_servers: str) -> None:
    unknown = f"nobody-{uuid.uuid4().hex}"
    done = run(bootstrap_servers, "abort", unknown, "--yes")
    assert done.exit_code == 1
    assert done.stdout == f"The transactional id '{unknown}' is not known to its coordinator. Nothing was done.\n"
    assert describe_transaction(client, unknown) is None


def test_the_query_of_a_sink_is_named_by_its_newest_commit_marker(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker, name: str
) -> None:
    commits = CommitTopic(client, make_topic(3))
    where = commits.partition_of(name)
    owner = TransactionalId(client, name, 60_000)
    for batch_id, commit in ((4, True), (5, False)):
        transaction = owner.fence()
        owner.join(transaction, [where])
        marker = CommitMarker(name, "8c0e", batch_id, "f", committed_at_ms=1_767_225_600_007)
        with Producer(client, ProducerOptions(), transaction=transaction) as producer:
            producer.send_batch(where, bytearray(commits.encode(name, marker)), 1)
            producer.flush()
        # The second one stays open, and its marker is in it.
        if commit:
            owner.end(transaction, commit=True)
    owner_text = "query 8c0e, last committed batch 4 at 2026-01-01T00:00:00.007Z"
    options = ["--prefix", name, "--commit-topic", commits.name]
    assert owner_text in run(bootstrap_servers, "list", *options).stdout
    (told,) = json.loads(run(bootstrap_servers, "list", "--json", *options).stdout)
    assert told["last_committed"] == {"query_id": "8c0e", "batch_id": 4, "committed_at_ms": 1_767_225_600_007}
    done = run(bootstrap_servers, "abort", name, "--commit-topic", commits.name, answer="n\n")
    assert f"Its owner: {owner_text}.\n" in done.stdout

    missing = run(bootstrap_servers, "list", "--commit-topic", f"no-{uuid.uuid4().hex}", "--prefix", name)
    assert missing.exit_code == 2
    assert missing.stderr.startswith("[UNKNOWN_TOPIC]")


def test_an_exactly_once_sink_writes_its_batch_again_by_itself(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, commits = TopicPartition(make_topic(), 0), make_topic()
    publisher = Publisher(client, WriteOptions(client.options), ExactlyOnceOptions(commit_topic=commits), name, None)
    end, shown = TransactionalId.end, list[str]()

    def aborted_before(owner: TransactionalId, transaction: OpenTransaction, *, commit: bool) -> None:
        if not shown:
            shown.append(run(bootstrap_servers, "abort", name, "--yes", "--commit-topic", commits).stdout)
        end(owner, transaction, commit=commit)

    monkeypatch.setattr(TransactionalId, "end", aborted_before)
    data = encode(pa.RecordBatch.from_pydict({"value": [b"a", b"b"]}))
    chunk = Chunk((PreparedBatch(where, len(data), 2),), data)
    assert publisher.publish(CommitMarker(name, "query", 4, "f"), [chunk]) is MarkerFinding.NOT_COMMITTED
    assert f"The transaction of '{name}' is aborted" in shown[0]
    assert "Its owner: no commit marker.\n" in shown[0]
    publisher.publish(CommitMarker(name, "query", 5, "f"), [])
    await_committed(bootstrap_servers, where.topic, [b"a", b"b"])


def test_the_commands_of_the_page_run_as_they_stand(
    client: KafkaClient,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where, commits = TopicPartition(make_topic(), 0), make_topic()
    leave_open(client, name, where)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "client.properties").write_text(f"bootstrap.servers={bootstrap_servers}\n")
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", _PAGE.read_text(), re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    # `resolve` stands in a list, and needs a loss: tests/integration/_connector/sink/test_task_commits.py runs it.
    assert len(lines) == 4
    outputs = []
    for line in lines:
        own = line.replace("localhost:9092", bootstrap_servers).replace("pyspark_kafka_commits", commits)
        program, *arguments = shlex.split(own.replace("billing", name))
        assert program == "pyspark-kafka"
        done = invoke(*arguments, answer="y\n")
        assert done.exit_code == 0, done.output
        outputs.append(done.stdout)
    assert name in outputs[0]
    assert name not in outputs[1]
    assert name in [each["transactional_id"] for each in json.loads(outputs[2])]
    assert f"The transaction of '{name}' is aborted" in outputs[3]
    heads = re.findall(r"^\| (`-.*?) \|", _PAGE.read_text(), re.MULTILINE)
    options = [option for head in heads for option in re.findall(r"`(--?[a-z-]+)", head)]
    command: Any = typer.main.get_command(transactions.app)
    known = {name for parameter in command.commands["list"].params for name in parameter.opts}
    # The help leaves out the alias, which is the name in Kafka's own tools.
    assert sorted(options) == sorted(known - {"--help", "-h"} | {"--bootstrap-server"})


def test_the_program_takes_its_options_from_file_and_environment(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker, name: str, tmp_path: Path
) -> None:
    where = TopicPartition(make_topic(), 0)
    leave_open(client, name, where)
    file = tmp_path / "client.properties"
    file.write_text(f"# ours\nbootstrap.servers={bootstrap_servers}\ngroup.id=reports\nacks=all\n")
    program = [sys.executable, "-m", "pyspark_kafka", "transactions"]
    variable = "PYSPARK_KAFKA_BOOTSTRAP_SERVERS"
    environment = {key: value for key, value in os.environ.items() if key != variable}
    listed = subprocess.run(
        [*program, "list", "--config", str(file), "--json", "--prefix", name], env=environment,
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert [each["transactional_id"] for each in json.loads(listed.stdout)] == [name]
    assert [line for line in listed.stderr.splitlines() if not re.search(r" …( \d+ s)?$", line)] == []
    aborted = subprocess.run(
        [*program, "abort", "--yes", name],
        env=environment | {variable: bootstrap_servers},
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert "is aborted" in aborted.stdout
    eventually(lambda: stable_end(client, where) == 2)
