"""`pyspark-kafka tail` against a real broker, and as a program in a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from kit.administration import create_partitions
from kit.fakes.schema_registry import SchemaRegistryServer
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.cli import invoke, warnings_of
from kit.waiting import eventually
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import ProducerOptions
from pyspark_kafka.records import encode
from pyspark_kafka.testing import EmbeddedKafka

NOW_MS = 1_767_225_600_000
_PROGRAM = (sys.executable, "-m", "pyspark_kafka", "tail")


@pytest.fixture(scope="module")
def orders(bootstrap_servers: str, make_topic: TopicMaker) -> str:
    """A topic of 3 partitions with 30 records, a second apart, one after the other to each partition."""
    name = make_topic(3)
    produce(
        bootstrap_servers,
        name,
        [
            Record(
                b"k%d" % (number % 5),
                b'{"n":%d}' % number,
                partition=number % 3,
                timestamp_ms=NOW_MS + 1_000 * number,
                headers=[("parity", b"odd" if number % 2 else b"even")],
            )
            for number in range(30)
        ],
    )
    return name


def run(bootstrap_servers: str, topic: str, *arguments: str) -> Result:
    return invoke("tail", topic, "--bootstrap-servers", bootstrap_servers, *arguments)


def told(bootstrap_servers: str, topic: str, *arguments: str) -> list[dict[str, Any]]:
    done = run(bootstrap_servers, topic, "--json", *arguments)
    assert (done.exit_code, warnings_of(done)) == (0, ""), done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [json.loads(each["value"])["n"] for each in found]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), list(range(20, 30))),
        (("-n", "3"), [27, 28, 29]),
        (("-n", "100"), list(range(30))),
        (("-n", "0"), []),
        (("-n", "2", "--partition", "1"), [25, 28]),
        (("--from", "earliest", "-n", "4"), [0, 1, 2, 3]),
        (("--from", "latest"), []),
        (("--from", "9"), [27, 28, 29]),
        (("--from", "999999"), []),
        (("--from", "2026-01-01T00:00:27Z"), [27, 28, 29]),
        (("--from", "2026-01-01T01:00:28+01:00"), [28, 29]),
        (("--from", "1 minute ago"), []),
        (("--key", "k3", "-n", "2"), [23, 28]),
        (("--grep", '"n":1', "--from", "earliest"), [1, *range(10, 20)]),
        (("--header", "parity=odd", "-n", "2"), [27, 29]),
        (("--header", "parity=odd", "--key", "k0", "--from", "earliest"), [5, 15, 25]),
        (("--grep", "nowhere"), []),
    ],
)
def test_records_that_are_asked_for_are_shown_in_the_order_of_their_times(
    bootstrap_servers: str, orders: str, arguments: tuple[str, ...], expected: list[int]
) -> None:
    assert numbers(told(bootstrap_servers, orders, *arguments)) == expected


def test_record_is_a_line_that_programs_can_read(bootstrap_servers: str, orders: str) -> None:
    done = run(bootstrap_servers, orders, "-n", "1", "--utc")
    assert (done.exit_code, warnings_of(done)) == (0, "")
    assert done.stdout == f'2026-01-01T00:00:29.000Z  {orders}-2  9  k4  {{"n":29}}  [parity=odd]\n'
    (record,) = told(bootstrap_servers, orders, "-n", "1", "--utc")
    assert record == {
        "topic": orders,
        "partition": 2,
        "offset": 9,
        "timestamp_ms": NOW_MS + 29_000,
        "timestamp": "2026-01-01T00:00:29.000Z",
        "timestamp_type": "CreateTime",
        "key": "k4",
        "key_encoding": "utf-8",
        "value": '{"n":29}',
        "value_encoding": "utf-8",
        "headers": [{"name": "parity", "value": "odd", "value_encoding": "utf-8"}],
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--partition", "3"), "has no partition 3"),
        (("--from", "soon"), "--from"),
        (("--header", "parity"), "NAME=VALUE"),
        (("-n", "100001"), "100,000"),
        (("-o", "valueFormat=yaml"), "valueFormat"),
    ],
)
def test_wrong_arguments_are_refused(
    bootstrap_servers: str, orders: str, arguments: tuple[str, ...], said: str
) -> None:
    done = run(bootstrap_servers, orders, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_topic_that_does_not_exist_is_an_error(bootstrap_servers: str, orders: str) -> None:
    done = run(bootstrap_servers, f"{orders}x")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "[UNKNOWN_TOPIC]" in done.stderr


def test_hostile_records_are_shown_escaped_and_cut(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    name = make_topic(1)
    evil = b"\x1b]0;title\x07\x1b[2J\r\n\xff"
    produce(bootstrap_servers, name, [Record(evil, evil, headers=[("\x1b[31m", evil)]), Record(None, b"x" * 900_000)])
    done = run(bootstrap_servers, name)
    lines = done.stdout.splitlines()
    assert (done.exit_code, len(lines)) == (0, 2)
    assert all(line.isprintable() for line in lines)
    assert "\\x1b]0;title\\x07\\x1b[2J\\r\\n\\xff" in lines[0]
    assert lines[1].endswith(f"{'x' * 100}… (4,096 of 900,000 bytes)")
    assert len(lines[1]) < 4_300
    first, second = told(bootstrap_servers, name, "--max-bytes", "1000000")
    assert (first["key_encoding"], first["value_encoding"]) == ("base64", "base64")
    assert (len(second["value"]), "value_cut" in second) == (900_000, False)


def test_values_of_a_format_are_decoded_and_bad_ones_shown_as_bad(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    name = make_topic(1)
    produce(bootstrap_servers, name, [Record(None, value) for value in (b'{"a":1}', b"\x1bnot json", b'{"a":2}')])
    given = ("-o", "valueFormat=json", "-o", "valueSchema=a INT", "-o", "mode=FAILFAST")
    one, bad, two = told(bootstrap_servers, name, *given)
    assert (one["value"], two["value"], one["value_encoding"]) == ({"a": 1}, {"a": 2}, "json")
    assert (bad["value"], bad["bad"]["column"], bad["bad"]["reason"]) == ("\x1bnot json", "value", "DECODE_FAILED")
    lines = run(bootstrap_servers, name, *given).stdout.splitlines()
    assert lines[0].endswith('  null  {"a":1}')
    assert "\\x1bnot json  bad value: DECODE_FAILED: " in lines[1]
    assert len(told(bootstrap_servers, name, *given, "--grep", "not json")) == 1


def test_values_in_avro_are_decoded_with_the_schemas_of_a_registry(
    bootstrap_servers: str, make_topic: TopicMaker, schema_registry: SchemaRegistryServer
) -> None:
    name = make_topic(1)
    schema = {"type": "record", "name": "Order", "fields": [{"name": "n", "type": "long"}]}
    number = schema_registry.add(f"{name}-value", json.dumps(schema))
    # A long of Avro is zigzag: 14 stands for 7.
    good, unknown = (b"\x00" + each.to_bytes(4, "big") + b"\x0e" for each in (number, number + 1))
    produce(bootstrap_servers, name, [Record(None, value) for value in (good, unknown, b"")])
    given = (
        "-o",
        "valueFormat=avro",
        "-o",
        "valueFraming=confluent",
        "-o",
        f"schema.registry.url={schema_registry.url}",
    )
    one, other, empty = told(bootstrap_servers, name, *given)
    assert (one["value"], "bad" in one) == ({"n": 7}, False)
    assert other["bad"]["reason"] == "SCHEMA_ID_NOT_FOUND"
    assert empty["bad"]["reason"] == "INCOMPLETE_HEADER"


def test_records_of_aborted_transactions_are_shown_only_if_they_are_asked_for(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    import pyarrow as pa  # noqa: PLC0415 - only here

    name = make_topic(1)
    where = TopicPartition(name, 0)
    owner = TransactionalId(client, f"tail-{name}", 60_000)
    for value, commit in ((b"aborted", False), (b"committed", True)):
        transaction = owner.fence()
        owner.join(transaction, [where])
        with Producer(client, ProducerOptions(), transaction=transaction) as producer:
            producer.send_batch(where, bytearray(encode(pa.RecordBatch.from_pydict({"value": [value]}))), 1)
            producer.flush()
        owner.end(transaction, commit=commit)
    eventually(lambda: [each["value"] for each in told(bootstrap_servers, name)] == ["aborted", "committed"])
    committed = ("-o", "isolation.level=read_committed")
    eventually(lambda: [each["value"] for each in told(bootstrap_servers, name, *committed)] == ["committed"])


class Program:
    """The command as a process; its output may be a terminal."""

    def __init__(self, *arguments: str, terminal: bool = False) -> None:
        environment = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR")}
        environment |= {"TERM": "xterm-256color", "COLUMNS": "200", "LANG": "C.UTF-8", "PYTHONUTF8": "1"}
        self.text = ""
        read, write = pty.openpty() if terminal else os.pipe()
        self._read = read
        self.process = subprocess.Popen(
            [*_PROGRAM, *arguments], stdout=write, stderr=subprocess.PIPE, text=True, env=environment
        )
        os.close(write)

    def output(self) -> str:
        """Return all that it has printed by now."""
        while select.select([self._read], [], [], 0)[0]:
            try:
                data = os.read(self._read, 65536)
            except OSError:
                # The other end of a terminal is closed.
                break
            if not data:
                break
            self.text += data.decode()
        return self.text

    def end(self) -> tuple[int, str]:
        """Press Ctrl-C; return the exit status and what it has said on standard error."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=300)
        return self.process.returncode, errors

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        os.close(self._read)


@pytest.fixture
def program() -> Iterator[Any]:
    made: list[Program] = []

    def start(*arguments: str, terminal: bool = False) -> Program:
        made.append(Program(*arguments, terminal=terminal))
        return made[-1]

    yield start
    for each in made:
        each.close()


def test_followed_topic_shows_what_is_written_until_ctrl_c(
    client: KafkaClient, bootstrap_servers: str, make_topic: TopicMaker, program: Any
) -> None:
    name = make_topic(1)
    produce(bootstrap_servers, name, [Record(None, b"old-%d" % number) for number in range(3)])
    running = program(name, "-f", "-n", "1", "--bootstrap-servers", bootstrap_servers)
    eventually(lambda: "old-2" in running.output())
    assert "old-1" not in running.output()
    produce(bootstrap_servers, name, [Record(None, b"new")])
    eventually(lambda: "new" in running.output())
    # Partitions that the topic gets meanwhile are read from their beginning.
    create_partitions(client, {name: 2})
    produce(bootstrap_servers, name, [Record(None, b"elsewhere", partition=1)])
    eventually(lambda: "elsewhere" in running.output())
    status, errors = running.end()
    assert (status, errors.splitlines()[-1]) == (130, "Interrupted. Nothing was changed.")


def test_followed_topic_that_is_recreated_is_read_from_its_beginning(
    kafka: Any, bootstrap_servers: str, make_topic: TopicMaker, program: Any
) -> None:
    name = make_topic(1)
    produce(bootstrap_servers, name, [Record(None, b"former")] * 3)
    running = program(name, "-f", "--bootstrap-servers", bootstrap_servers)
    eventually(lambda: running.output().count("former") == 3)
    kafka.delete_topic(name)
    kafka.create_topic(name, 1)
    produce(bootstrap_servers, name, [Record(None, b"recreated")])
    eventually(lambda: "recreated" in running.output())
    assert running.end()[0] == 130


def test_terminal_gets_colors_and_a_pipe_does_not(bootstrap_servers: str, orders: str, program: Any) -> None:
    given = (orders, "-n", "1", "--utc", "--bootstrap-servers", bootstrap_servers)
    shown, piped = program(*given, terminal=True), program(*given)
    for each in (shown, piped):
        assert each.process.wait(300) == 0
    expected = f'2026-01-01T00:00:29.000Z  {orders}-2  9  k4  {{"n":29}}  [parity=odd]'
    assert piped.output() == f"{expected}\n"
    assert "\x1b[" in shown.output()
    assert re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.output()).strip() == expected


def test_program_that_reads_enough_ends_it_quietly(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    name = make_topic(1)
    produce(bootstrap_servers, name, [Record(None, b"v" * 1_000)] * 500)
    tail = subprocess.Popen(
        [*_PROGRAM, name, "--from", "earliest", "--bootstrap-servers", bootstrap_servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert tail.stdout is not None
    assert tail.stderr is not None
    assert tail.stdout.readline().endswith(b"v\n")
    tail.stdout.close()
    assert tail.wait(300) == 0
    assert b"BrokenPipe" not in tail.stderr.read()
    tail.stderr.close()


def test_secured_cluster_is_read_with_the_options_of_every_place(secured_kafka: EmbeddedKafka, tmp_path: Path) -> None:
    name = f"tail-{time.time_ns()}"
    secured_kafka.create_topic(name, 1)
    produce(secured_kafka.bootstrap_servers, name, [Record(b"k", b"v")])
    properties, options = tmp_path / "client.properties", tmp_path / "options.json"
    given = secured_kafka.client_options("SASL_SSL", "alice")
    lines = {key.removeprefix("kafka."): value.replace("\\", "\\\\") for key, value in given.items()}
    properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    options.write_text(json.dumps({**given, "subscribe": "orders", "startingOffsets": "earliest"}))
    for place in (["--config", str(properties)], ["--options", str(options)], [f"-o{k}={v}" for k, v in given.items()]):
        done = invoke("tail", name, *place)
        assert (done.exit_code, warnings_of(done)) == (0, "")
        assert done.stdout.endswith(f"  {name}-0  0  k  v\n")
    refused = invoke("tail", name, *[f"-o{k}={v}" for k, v in secured_kafka.client_options("SASL_SSL", "bob").items()])
    assert refused.exit_code == 2
    assert "AUTHORIZATION_FAILED" in refused.stderr
