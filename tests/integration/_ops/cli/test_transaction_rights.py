"""`pyspark-kafka transactions` as a user without rights, and with transactions of the first generation."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import Result

from kit.administration import create_topic
from kit.brokers.guarded import PASSWORD, PLAIN_LOGIN
from kit.fixtures.guarded import OLDER_VERSION
from kit.programs.cli import invoke
from kit.rights_in_use import Guarded
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.open_transaction import Generation
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import ConnectionOptions, ProducerOptions
from pyspark_kafka.records import encode


@pytest.fixture
def ports(guarded_of: Callable[[str], Guarded]) -> tuple[int, int]:
    """A broker with transactions of the first generation; who has no password may do all, and alice nothing."""
    guarded = guarded_of(OLDER_VERSION)
    plain, sasl = (int(guarded.kafka.address(name).rpartition(":")[2]) for name in ("PLAINTEXT", "SASL_PLAINTEXT"))
    return plain, sasl


@pytest.fixture
def left_open(ports: tuple[int, int]) -> str:
    """A transactional id with a transaction that nobody ends."""
    name, topic = f"id-{uuid.uuid4().hex}", f"t-{uuid.uuid4().hex[:8]}"
    with KafkaClient(ConnectionOptions((("127.0.0.1", ports[0]),))) as client:
        create_topic(client, topic)
        where = TopicPartition(topic, 0)
        owner = TransactionalId(client, name, 600_000)
        transaction = owner.fence()
        assert transaction.identity.generation is Generation.V1
        owner.join(transaction, [where])
        with Producer(client, ProducerOptions(), transaction=transaction) as producer:
            producer.send_batch(where, bytearray(encode(pa.RecordBatch.from_pydict({"value": [b"v"]}))), 1)
            producer.flush()
    return name


def run(port: int, *arguments: str) -> Result:
    return invoke("transactions", *arguments, "--bootstrap-servers", f"127.0.0.1:{port}")


def test_transactions_of_the_first_generation_are_listed_and_aborted(ports: tuple[int, int], left_open: str) -> None:
    (told,) = json.loads(run(ports[0], "list", "--json", "--prefix", left_open).stdout)
    assert (told["state"], len(told["topic_partitions"])) == ("Ongoing", 1)
    done = run(ports[0], "abort", left_open, "--yes")
    assert done.exit_code == 0, done.output
    assert json.loads(run(ports[0], "list", "--json", "--prefix", left_open).stdout) == []
    unknown = run(ports[0], "abort", f"not-{left_open}", "--yes")
    assert unknown.exit_code == 1
    assert "is not known to its coordinator" in unknown.stdout


def test_user_without_rights_sees_no_transactional_id_and_cannot_abort_it(
    ports: tuple[int, int], left_open: str, tmp_path: Path
) -> None:
    file = tmp_path / "alice.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=\\\n"
        f'  {PLAIN_LOGIN} \\\n  username="alice" \\\n  password="{PASSWORD}";\n'
    )
    done = run(ports[1], "list", "--config", str(file))
    assert done.exit_code == 0, done.output
    assert done.stdout == "No open transaction, among the transactional ids that this user may describe.\n"
    assert "the password crosses the network unencrypted" in done.stderr
    done = run(ports[1], "abort", left_open, "--yes", "--config", str(file))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53)" in done.stderr
    assert "Missing right: DESCRIBE on transactional id" in done.stderr
    file.write_text(file.read_text().replace(PASSWORD, "wrong-one"))
    done = run(ports[1], "list", "--config", str(file))
    assert done.exit_code == 2
    assert "[SASL_AUTHENTICATION_FAILED]" in done.stderr
    assert "wrong-one" not in done.output
    # It is still there.
    (told,) = json.loads(run(ports[0], "list", "--json", "--prefix", left_open).stdout)
    assert told["state"] == "Ongoing"
