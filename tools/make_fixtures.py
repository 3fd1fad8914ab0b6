"""Makes tests/golden/batches: partitions as brokers hand them out, written by three producers, with what was sent.

    python tools/make_fixtures.py [--broker 4.3.0] [--only CASE ...]

Each case is a script (begin, send, commit, abort) that Apache Kafka's Java producer, librdkafka and kafka-python play
against an embedded broker. Then the record bytes and aborted lists are fetched and stored, beside what the writer was
told to send and what brokers acknowledged. Expected values never come from our decoder.

Needs a JDK (not only a JRE), and a network once: confluent-kafka is installed into a temporary virtual environment.
Run it only to add a case; the stored files are what the tests read.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import tempfile
import time
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kafka

from fixture_cases import BATCHES, CASES, Case, Record
from pyspark_kafka._base.model import IsolationLevel, OffsetRange, TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.jars import kafka_classpath
from pyspark_kafka.testing.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka._client.client.fetch.cursor import FetchedRecords

    # Plays a script; return the version of the program and the acknowledged offset and time of each record.
    Writer = Callable[[dict[str, Any]], tuple[str, list[dict[str, int]]]]

WRITERS_FOLDER = Path(__file__).with_name("fixture_writers")
CONFLUENT_KAFKA = "confluent-kafka==2.16.1"
PROGRAMS = {"java": "Apache Kafka's Java producer", "librdkafka": "librdkafka", "kafka-python": "kafka-python"}
# A cleaner that looks again soon.
BROKER = {"log.cleaner.backoff.ms": "100", "log.retention.check.interval.ms": "100000000"}
DEADLINE_S = 60


class RawHeaderKey(str):
    """A header key of any bytes: kafka-python lets a string encode itself."""

    __slots__ = ("raw",)
    raw: bytes

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:  # noqa: ARG002 - as str has it
        """Return the bytes as they are."""
        return self.raw


def play_java(script: dict[str, Any]) -> tuple[str, list[dict[str, int]]]:
    """Play a script with the Java producer, run from its source."""
    command = [str(find_java().executable), "-cp", kafka_classpath(), str(WRITERS_FOLDER / "JavaWriter.java")]
    return run(command, script)


def play_librdkafka(python: Path) -> Writer:
    """Return the writer that plays a script with librdkafka, by an interpreter that has confluent-kafka."""
    return lambda script: run([str(python), str(WRITERS_FOLDER / "librdkafka_writer.py")], script)


def run(command: list[str], script: dict[str, Any]) -> tuple[str, list[dict[str, int]]]:
    """Run another program with the script on its standard input."""
    output = subprocess.run(command, input=json.dumps(script), stdout=subprocess.PIPE, text=True, check=True).stdout
    result = json.loads(output.splitlines()[-1])
    return result["version"], result["sent"]


def play_kafka_python(script: dict[str, Any]) -> tuple[str, list[dict[str, int]]]:
    """Play a script with kafka-python, in this process."""
    producers = {}
    for name, description in script["producers"].items():
        codec = None if description["codec"] == "none" else description["codec"]
        producer = kafka.KafkaProducer(
            bootstrap_servers=script["bootstrap_servers"],
            compression_type=codec,
            # Longer than a step takes to hand over its records: one batch a step.
            linger_ms=1000,
            acks="all",
            **({"transactional_id": description["transactional_id"]} if description["transactional_id"] else {}),
        )
        if description["transactional_id"]:
            producer.init_transactions()
        producers[name] = producer
    sent = []
    for verb, name, *details in script["steps"]:
        producer = producers[name]
        if verb != "send":
            getattr(producer, f"{verb}_transaction" if verb != "begin" else "begin_transaction")()
            continue
        promised = [
            producer.send(
                script["topic"],
                value=decoded(record["value"]),
                key=decoded(record["key"]),
                headers=[(header_key(key), decoded(value)) for key, value in record["headers"]],
                partition=0,
                timestamp_ms=record["timestamp_ms"],
            )
            for record in details[0]
        ]
        producer.flush()
        for future in promised:
            metadata = future.get(timeout=DEADLINE_S)
            sent.append({"offset": metadata.offset, "timestamp_ms": metadata.timestamp})
    for producer in producers.values():
        producer.close()
    return kafka.__version__, sent


def header_key(text: str) -> str:
    """Make a header key that kafka-python writes as the bytes that the script has."""
    raw = base64.b64decode(text)
    key = RawHeaderKey(raw.decode(errors="replace"))
    key.raw = raw
    return key


def decoded(text: str | None) -> bytes | None:
    """Read base64, or null."""
    return None if text is None else base64.b64decode(text)


def encoded(data: bytes | None) -> str | None:
    """Write base64, or null."""
    return None if data is None else base64.b64encode(data).decode()


def to_script(record: Record) -> dict[str, Any]:
    """Write a record for a script and for the file beside the bytes."""
    return {
        "key": encoded(record.key),
        "value": encoded(record.value),
        "headers": [[encoded(key), encoded(value)] for key, value in record.headers],
        "timestamp_ms": record.timestamp_ms,
    }


def make(case: Case, writer: str, play: Writer, broker: EmbeddedKafka) -> None:
    """Write one case, wait until the log is as it will stay, fetch it and store it."""
    topic = f"{writer}-{case.name}"
    broker.create_topic(topic, 1, case.topic_config)
    steps = case.steps(writer)
    script: dict[str, Any] = {"bootstrap_servers": broker.bootstrap_servers, "topic": topic}
    script["producers"] = {
        name: {"codec": producer.codec, "transactional_id": f"{topic}-{name}" if producer.transactional else None}
        for name, producer in case.producers.items()
    }
    script["steps"] = [
        [verb, name, *[[to_script(record) for record in records] for records in rest]] for verb, name, *rest in steps
    ]
    version, sent = play(script)
    written = describe(case, steps, sent)
    high_watermark = wait_for_end(broker, topic, len(written) + case.markers(steps))
    visible = [record["offset"] for record in written if not record["aborted"]]
    everything = [record["offset"] for record in written]
    if case.compacted:
        visible = everything = survivors(written)
        wait_for_cleaner(broker, topic, visible)
    answers = list(fetch(broker, topic, high_watermark))
    name = f"{writer}-{version}-{case.name}"
    if broker.version != "4.3.0":
        name += f"-from-broker-{broker.version}"
    described = {
        "written_by": {"program": PROGRAMS[writer], "version": version},
        "fetched_from": f"Apache Kafka {broker.version}",
        "about": case.about,
        "high_watermark": high_watermark,
        "answers": [
            {"start_offset": a.start_offset, "bytes": len(a.records), "aborted_transactions": a.aborted_transactions}
            for a in answers
        ],
        "read_uncommitted": everything,
        "read_committed": visible,
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in described.items()]
    rows = ",\n  ".join(json.dumps(record) for record in written)
    BATCHES.mkdir(parents=True, exist_ok=True)
    (BATCHES / f"{name}.bin").write_bytes(b"".join(bytes(answer.records) for answer in answers))
    (BATCHES / f"{name}.json").write_text("{\n" + ",\n".join(lines) + f',\n "records": [\n  {rows}\n ]\n}}\n')
    print(f"{name}: {len(written)} records, {sum(len(answer.records) for answer in answers)} bytes")


def describe(case: Case, steps: list[Any], sent: list[dict[str, int]]) -> list[dict[str, Any]]:
    """Return each record that was sent, with its acknowledged offset and whether its transaction was aborted."""
    log_append = case.topic_config.get("message.timestamp.type") == "LogAppendTime"
    written: list[dict[str, Any]] = []
    undecided: dict[str, list[dict[str, Any]]] = {}
    acknowledged = iter(sent)
    for verb, name, *rest in steps:
        if verb == "begin":
            undecided[name] = []
        elif verb in {"commit", "abort"}:
            for record in undecided.pop(name):
                record["aborted"] = verb == "abort"
        for record in rest[0] if rest else ():
            answer = next(acknowledged)
            row = {"offset": answer["offset"]} | to_script(record)
            if log_append:
                row["timestamp_ms"] = answer["timestamp_ms"]
            row |= {"timestamp_type": int(log_append), "aborted": False}
            written.append(row)
            if name in undecided:
                undecided[name].append(row)
    return written


def survivors(written: list[dict[str, Any]]) -> list[int]:
    """Return the offsets that compaction leaves: of each key the last record that was not aborted."""
    last = {record["key"]: record["offset"] for record in written if not record["aborted"]}
    return sorted(last.values())


def consumer_of(broker: EmbeddedKafka, topic: str) -> tuple[Any, Any]:
    """Open a kafka-python consumer at the beginning of the partition."""
    partition = kafka.TopicPartition(topic, 0)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, enable_auto_commit=False, isolation_level="read_committed"
    )
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    return consumer, partition


def wait_for_end(broker: EmbeddedKafka, topic: str, end: int) -> int:
    """Wait until all markers are written: EndTxn is answered before."""
    consumer, partition = consumer_of(broker, topic)
    try:
        deadline = time.monotonic() + DEADLINE_S
        while (found := consumer.end_offsets([partition])[partition]) != end:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} ends at {found}, expected {end}")
    finally:
        consumer.close()
    return end


def wait_for_cleaner(broker: EmbeddedKafka, topic: str, expected: list[int]) -> None:
    """Wait until exactly the expected records are left."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        consumer, partition = consumer_of(broker, topic)
        try:
            found: list[int] = []
            end = consumer.end_offsets([partition])[partition]
            while consumer.position(partition) < end:
                found += [record.offset for records in consumer.poll(200).values() for record in records]
        finally:
            consumer.close()
        if found == expected:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic} holds {found}, expected {expected} after compaction")


def fetch(broker: EmbeddedKafka, topic: str, end: int) -> Iterator[FetchedRecords]:
    """Fetch the partition under read_committed, which is what lists aborted transactions."""
    host, _, port = broker.bootstrap_servers.rpartition(":")
    options = FetchOptions(isolation_level=IsolationLevel.READ_COMMITTED)
    with (
        KafkaClient(ConnectionOptions(((host, int(port)),))) as client,
        Fetcher(client, [OffsetRange(TopicPartition(topic, 0), 0, end)], options) as fetcher,
    ):
        for _, fetched in fetcher:
            yield fetched


def main() -> None:
    """Make all fixtures, or those named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--broker", default="4.3.0", help="version of the broker")
    parser.add_argument("--only", nargs="+", help="names of cases")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, EmbeddedKafka(arguments.broker, properties=BROKER) as broker:
        venv.create(place, with_pip=True)
        python = Path(place) / "bin" / "python"
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", CONFLUENT_KAFKA], check=True)
        writers: dict[str, Writer] = {
            "java": play_java,
            "librdkafka": play_librdkafka(python),
            "kafka-python": play_kafka_python,
        }
        for case in CASES:
            if not arguments.only or case.name in arguments.only:
                for writer, play in writers.items():
                    make(case, writer, play, broker)


if __name__ == "__main__":
    main()
