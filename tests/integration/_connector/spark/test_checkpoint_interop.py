"""One checkpoint, two connectors: Spark's own on the JVM, and ours, each going on where the other stopped.

Needs the JVM connector's jars, for the PySpark that runs: their folder in the environment variable
PYSPARK_KAFKA_JVM_JARS. `make test-interop JVM_JARS=folder` sets it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyspark
import pytest

from kit.administration import create_partitions
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.cli import invoke
from kit.waiting import PATIENCE_S
from pyspark_kafka import records
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import ConnectionOptions, ExactlyOnceOptions, ProducerOptions, WriteOptions
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka._connector.sink.driver.publisher import Publisher
from pyspark_kafka._connector.sink.executor.outbox import Chunk, PreparedBatch
from pyspark_kafka.checkpoint import CheckpointFiles, CommitLog, InitialOffsetLog, OffsetSeqLog
from pyspark_kafka.checkpoint.initial_offset_log import encode

_JARS_VARIABLE = "PYSPARK_KAFKA_JVM_JARS"
JVM, OURS = "kafka", "pyspark_kafka"

pytestmark = pytest.mark.skipif(
    not os.environ.get(_JARS_VARIABLE), reason=f"{_JARS_VARIABLE} names no folder with the JVM connector's jars"
)

# A session's jars cannot be changed, and that of the other tests has none: this one is in a process of its own. It
# takes a query a line and answers with what the query's batches held.
_WORKER = """
import json, sys
from pyspark.sql import SparkSession

jars, place = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]").config("spark.jars", jars)
    .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    .config("spark.log.level", "OFF").config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.local.dir", place)
    .config("spark.sql.warehouse.dir", place + "/warehouse").config("spark.sql.shuffle.partitions", "2")
    .config("spark.driver.extraJavaOptions", "-Dderby.system.home=" + place).getOrCreate()
)

def run(format, options, checkpoint, fail_at, conf, grouped):
    batches = {}
    for name, value in conf.items():
        spark.conf.set(name, value)
    def keep(rows, batch_id):
        if batch_id == fail_at:
            raise RuntimeError("this batch is to stay uncommitted")
        texts = rows.selectExpr("CAST(value AS STRING) AS text").collect()
        batches[batch_id] = sorted(int(row.text) for row in texts)
    stream = spark.readStream.format(format).options(**options).load()
    if grouped:
        stream = stream.groupBy("topic", "partition").count().selectExpr("CAST(count AS STRING) AS value")
    query = (
        stream.writeStream.foreachBatch(keep).outputMode("update" if grouped else "append")
        .option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    )
    try:
        query.awaitTermination()
    except Exception as error:
        return {"batches": batches, "error": str(error)}
    finally:
        for name in conf:
            spark.conf.unset(name)
    return {"batches": batches, "error": ""}

print("answer", json.dumps({}), flush=True)
for line in sys.stdin:
    print("answer", json.dumps(run(**json.loads(line))), flush=True)
spark.stop()
"""


class Spark:
    """The process with the session."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def answer(self) -> dict[str, Any]:
        """Wait for the next answer."""
        for line in cast("IO[str]", self._process.stdout):
            if line.startswith("answer "):
                return cast("dict[str, Any]", json.loads(line.removeprefix("answer ")))
        raise AssertionError(f"the process with Spark is gone: {self._log.read_text()[-4000:]}")

    def ask(self, **query: Any) -> dict[str, Any]:
        """Run a query."""
        stdin = cast("IO[str]", self._process.stdin)
        stdin.write(json.dumps(query) + "\n")
        stdin.flush()
        return self.answer()


@pytest.fixture(scope="module")
def spark_with_jars(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    folder = Path(os.environ[_JARS_VARIABLE])
    jars = sorted(folder.glob("*.jar"))
    # Releases of one minor version take each other's connector, and not each of them is published.
    version = ".".join(pyspark.__version__.split(".")[:2])
    if not any(f"kafka-0-10_2.13-{version}." in jar.name for jar in jars):
        pytest.fail(f"{folder} has no jars of the connector of Spark {version}")
    place = tmp_path_factory.mktemp("interop")
    script = place / "worker.py"
    script.write_text(_WORKER)
    with (place / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), ",".join(map(str, jars)), str(place / "local")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=place, start_new_session=True,
        )  # fmt: skip
    try:
        spark = Spark(process, place / "log")
        spark.answer()
        yield spark
    finally:
        cast("IO[str]", process.stdin).close()
        try:
            process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        cast("IO[str]", process.stdout).close()


class Query:
    """A query on one topic that either connector may run, with one checkpoint."""

    def __init__(self, spark: Spark, bootstrap_servers: str, topic: str, checkpoint: Path) -> None:
        self._spark = spark
        self._servers = bootstrap_servers
        self._produced = 0
        self.topic = topic
        self.checkpoint = checkpoint
        self.files = CheckpointFiles(str(checkpoint))

    def produce(self, count: int, partition: int = 0) -> None:
        """Produce records with the next numbers."""
        numbers = range(self._produced, self._produced + count)
        produce(self._servers, self.topic, [Record(b"k", b"%d" % i, partition=partition) for i in numbers])
        self._produced += count

    def attempt(
        self,
        connector: str,
        options: dict[str, str] | None = None,
        *,
        fail_at: int = -1,
        conf: dict[str, str] | None = None,
        grouped: bool = False,
    ) -> dict[str, Any]:
        """Run the query to the end of what there is."""
        given = {"kafka.bootstrap.servers": self._servers, "subscribe": self.topic, "startingOffsets": "earliest"}
        return self._spark.ask(
            format=connector,
            options={**given, **(options or {})},
            checkpoint=str(self.checkpoint),
            fail_at=fail_at,
            conf=conf or {},
            grouped=grouped,
        )

    def run(self, connector: str, **options: str) -> dict[int, list[int]]:
        """Run the query and return what each batch held; those that held nothing are left out."""
        done = self.attempt(connector, options)
        assert done["error"] == ""
        return {int(batch_id): values for batch_id, values in done["batches"].items() if values}

    def fail(self, connector: str, batch_id: int, **options: str) -> None:
        """Run the query so that a batch is planned and not committed."""
        assert "is to stay uncommitted" in self.attempt(connector, options, fail_at=batch_id)["error"]
        assert (self.checkpoint / "offsets" / str(batch_id)).exists()
        assert not (self.checkpoint / "commits" / str(batch_id)).exists()

    def offset(self, *offsets: int) -> KafkaSourceOffset:
        """Return an offset by partition."""
        return KafkaSourceOffset.from_dict({self.topic: {str(number): value for number, value in enumerate(offsets)}})

    @property
    def place(self) -> dict[str, str]:
        """The option that tells our source where the checkpoint is."""
        return {"checkpointLocation": str(self.checkpoint)}


@pytest.fixture
def query(spark_with_jars: Spark, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> Query:
    return Query(spark_with_jars, bootstrap_servers, make_topic(), tmp_path / "checkpoint")


def add_partition(bootstrap_servers: str, topic: str) -> None:
    host, port = bootstrap_servers.rsplit(":", 1)
    with borrow_client(ConnectionOptions(((host, int(port)),))) as client:
        create_partitions(client, {topic: 2})


@pytest.mark.parametrize("with_place", [False, True])
@pytest.mark.parametrize(("first", "second"), [(JVM, OURS), (OURS, JVM)])
def test_one_goes_on_where_the_other_stopped(
    query: Query, bootstrap_servers: str, first: str, second: str, with_place: bool
) -> None:
    ours = query.place if with_place else {}
    query.produce(10)
    limit = {"maxOffsetsPerTrigger": "4"}
    held = query.run(first, **limit, **(ours if first == OURS else {}))
    assert held == {0: [0, 1, 2, 3], 1: [4, 5, 6, 7], 2: [8, 9]}
    query.produce(3)
    add_partition(bootstrap_servers, query.topic)
    query.produce(2, partition=1)
    held = query.run(second, **(ours if second == OURS else {}))
    assert held == {3: [10, 11, 12, 13, 14]}
    # And back.
    query.produce(1)
    assert query.run(first, **(ours if first == OURS else {})) == {4: [15]}
    assert OffsetSeqLog(query.files).batch_ids() == CommitLog(query.files).batch_ids() == [0, 1, 2, 3, 4]
    latest = OffsetSeqLog(query.files).latest()
    assert latest is not None
    assert KafkaSourceOffset.from_json(latest.of_source() or "") == query.offset(14, 2)


@pytest.mark.parametrize(("first", "second"), [(JVM, OURS), (OURS, JVM)])
def test_an_uncommitted_batch_is_run_again_with_the_same_records(query: Query, first: str, second: str) -> None:
    limit = {"maxOffsetsPerTrigger": "4"}
    query.produce(8)
    query.fail(first, 1, **limit)
    query.produce(2)
    assert query.run(second, **limit) == {1: [4, 5, 6, 7], 2: [8, 9]}


@pytest.mark.parametrize(("first", "second"), [(JVM, OURS), (OURS, JVM)])
def test_an_uncommitted_first_batch_starts_where_it_did(query: Query, first: str, second: str) -> None:
    query.produce(5)
    # The start was resolved when the query was made; what comes after it, and before the first batch, is in that one.
    assert InitialOffsetLog(query.files).get_or_create(lambda: query.offset(5)) == query.offset(5)
    query.produce(3)
    latest = {"startingOffsets": "latest"}
    query.fail(first, 0, **latest, **(query.place if first == OURS else {}))
    query.produce(2)
    held = query.run(second, **latest, **(query.place if second == OURS else {}))
    assert held == {0: [5, 6, 7], 1: [8, 9]}


@pytest.mark.parametrize(("first", "second"), [(JVM, OURS), (OURS, JVM)])
def test_a_change_without_new_records_reads_none(query: Query, first: str, second: str) -> None:
    query.produce(3)
    assert query.run(first) == {0: [0, 1, 2]}
    assert query.run(second) == {}
    # An empty batch, as offsets are compared as text, and the texts differ in blanks.
    assert OffsetSeqLog(query.files).batch_ids() == [0, 1]
    query.produce(1)
    (held,) = query.run(second).values()
    assert held == [3]


def test_aggregation_started_by_the_jvm_connector_continues_with_ours(query: Query) -> None:
    query.produce(3)
    assert query.attempt(JVM, grouped=True) == {"batches": {"0": [3]}, "error": ""}
    query.produce(2)
    assert query.attempt(OURS, grouped=True) == {"batches": {"1": [5]}, "error": ""}


def test_aggregation_started_by_ours_continues_with_the_jvm_connector_if_spark_allows_it(query: Query) -> None:
    query.produce(3)
    assert query.attempt(OURS, grouped=True) == {"batches": {"0": [3]}, "error": ""}
    query.produce(2)
    # Our topic and partition are never null, and theirs are declared as if they might be.
    assert "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE" in query.attempt(JVM, grouped=True)["error"]
    unchecked = {"spark.sql.streaming.stateStore.stateSchemaCheck": "false"}
    assert query.attempt(JVM, grouped=True, conf=unchecked) == {"batches": {"1": [5]}, "error": ""}


def test_first_batch_of_theirs_on_our_checkpoint_starts_at_the_option_without_kept_offsets(query: Query) -> None:
    query.produce(5)
    query.fail(OURS, 0, maxOffsetsPerTrigger="4")
    start = query.offset(2).json()
    assert query.run(JVM, startingOffsets=start) == {0: [2, 3], 1: [4]}


def test_first_batch_of_ours_on_their_checkpoint_starts_at_the_option_without_its_place(query: Query) -> None:
    query.produce(5)
    InitialOffsetLog(query.files).get_or_create(lambda: query.offset(3))
    query.fail(JVM, 0)
    assert query.run(OURS) == {0: [0, 1, 2, 3, 4]}


def test_their_initial_offsets_are_ours_byte_for_byte(query: Query) -> None:
    query.produce(3)
    query.run(JVM, startingOffsets="latest")
    assert InitialOffsetLog(query.files).get() == query.offset(3)
    assert query.files.read("sources/0/0") == encode(query.offset(3))


def test_our_initial_offsets_are_those_that_theirs_starts_from(query: Query) -> None:
    query.produce(5)
    InitialOffsetLog(query.files).get_or_create(lambda: query.offset(2))
    assert query.run(JVM, startingOffsets="latest") == {0: [2, 3, 4]}


def test_a_start_inside_the_first_end_is_no_obstacle_to_theirs(query: Query) -> None:
    query.produce(5)
    query.run(OURS, startingOffsets="latest")
    first = OffsetSeqLog(query.files).get(0)
    assert first is not None
    assert json.loads(first.of_source() or "") == {query.topic: {"00": 5, "0": 5}}
    query.produce(2)
    assert query.run(JVM) == {1: [5, 6]}


def test_a_checksum_of_a_former_file_stops_spark_unless_it_is_taken_away(query: Query) -> None:
    query.produce(5)
    query.fail(JVM, 0)
    assert (query.checkpoint / "sources" / "0" / ".0.crc").exists()
    (query.checkpoint / "sources" / "0" / "0").write_bytes(encode(query.offset(3)))
    # Where Spark reads through Hadoop's FileSystem; through its FileContext it does not look at checksums.
    package = "" if pyspark.__version__.startswith("4.0.") else "checkpointing."
    manager = f"org.apache.spark.sql.execution.streaming.{package}FileSystemBasedCheckpointFileManager"
    conf = {"spark.sql.streaming.checkpointFileManagerClass": manager}
    assert "Checksum error" in query.attempt(JVM, conf=conf)["error"]
    query.files.replace("sources/0/0", encode(query.offset(3)))
    done = query.attempt(JVM, conf=conf)
    assert (done["error"], done["batches"]) == ("", {"0": [3, 4]})


def test_spark_goes_on_from_an_offset_log_that_was_written_here(query: Query) -> None:
    query.produce(6)
    query.run(JVM)
    text = (query.files.read("offsets/0") or b"").decode()
    query.files.replace("offsets/0", text.replace(query.offset(6).json(), query.offset(4).json()).encode())
    assert query.run(JVM) == {1: [4, 5]}


def test_initial_offsets_of_a_newer_version_are_refused_with_a_sentence(query: Query) -> None:
    query.produce(1)
    query.files.create("sources/0/0", b"\0v99999\n{}")
    for connector, place in ((OURS, query.place), (JVM, {})):
        done = query.attempt(connector, place)
        assert done["batches"] == {}
        assert "maximum supported log version is v1, but encountered v99999" in done["error"]


def test_an_offset_log_of_a_newer_version_is_refused_with_a_sentence(query: Query) -> None:
    query.produce(1)
    query.run(OURS)
    query.files.replace("offsets/0", b"v99999\n{}\n-")
    for connector in (OURS, JVM):
        # v1 in Spark 4.0, v2 later.
        assert re.search(r"supported log version is v\d, but encountered v99999", query.attempt(connector)["error"])


def test_sparks_connector_reads_what_was_committed_exactly_once(
    spark_with_jars: Spark, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    connection = ConnectionOptions((("127.0.0.1", int(bootstrap_servers.rpartition(":")[2])),))
    sink = f"sink-of-{topic}"
    with borrow_client(connection) as client:
        publisher = Publisher(client, WriteOptions(connection), ExactlyOnceOptions(), sink, None)
        for batch_id in range(3):
            numbers = range(10 * batch_id, 10 * batch_id + 10)
            data = records.encode(pa.RecordBatch.from_pydict({"value": [b"%d" % number for number in numbers]}))
            prepared = Chunk((PreparedBatch(TopicPartition(topic, batch_id % 2), len(data), 10),), data)
            for _ in range(2):
                publisher.publish(CommitMarker(sink, "q", batch_id, "f"), [prepared])
        # Records that nobody is to see: of a driver that was shut out.
        transaction = TransactionalId(client, f"other-{sink}", 60_000).fence()
        with Producer(client, ProducerOptions(), transaction=transaction) as producer:
            producer.send_batch(
                TopicPartition(topic, 0), records.encode(pa.RecordBatch.from_pydict({"value": [b"99"]})), 1
            )
            producer.flush()
        TransactionalId(client, f"other-{sink}", 60_000).fence()
    options = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest"}
    answer = spark_with_jars.ask(
        format=JVM, options={**options, "kafka.isolation.level": "read_committed"}, checkpoint=str(tmp_path),
        fail_at=None, conf={}, grouped=False,
    )  # fmt: skip
    assert answer == {"batches": {"0": list(range(30))}, "error": ""}


def command(name: str, *arguments: object) -> None:
    """Fork or rewind a checkpoint, without the brokers."""
    done = invoke("checkpoint", name, *map(str, arguments), "--yes")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(("first", "second"), [(JVM, JVM), (JVM, OURS), (OURS, JVM)])
def test_query_of_either_connector_continues_from_a_fork_and_after_a_rewind(
    query: Query, spark_with_jars: Spark, bootstrap_servers: str, tmp_path: Path, first: str, second: str
) -> None:
    query.produce(8)
    assert query.run(first, maxOffsetsPerTrigger="4") == {0: [0, 1, 2, 3], 1: [4, 5, 6, 7]}
    forked = Query(spark_with_jars, bootstrap_servers, query.topic, tmp_path / "forked")
    command("fork", query.checkpoint, forked.checkpoint, "--offsets", json.dumps({query.topic: {"0": 3}}))
    assert forked.run(second) == {3: [3, 4, 5, 6, 7]}
    query.produce(1)
    assert forked.run(first) == {4: [8]}
    command("rewind", query.checkpoint, "--batch", 0, "--force")
    assert query.run(second) == {3: [4, 5, 6, 7, 8]}


@pytest.mark.parametrize(("first", "second"), [(JVM, JVM), (JVM, OURS), (OURS, OURS)])
def test_aggregation_of_either_connector_continues_from_a_fork_with_and_without_its_state(
    query: Query, spark_with_jars: Spark, bootstrap_servers: str, tmp_path: Path, first: str, second: str
) -> None:
    query.produce(3)
    assert query.attempt(first, grouped=True) == {"batches": {"0": [3]}, "error": ""}
    query.produce(2)
    assert query.attempt(first, grouped=True) == {"batches": {"1": [5]}, "error": ""}
    carried, dropped = (
        Query(spark_with_jars, bootstrap_servers, query.topic, tmp_path / name) for name in ("carried", "dropped")
    )
    command("fork", query.checkpoint, carried.checkpoint, "--batch", 0)
    assert carried.attempt(second, grouped=True) == {"batches": {"1": [5]}, "error": ""}
    offsets = json.dumps({query.topic: {"0": 1}})
    command("fork", query.checkpoint, dropped.checkpoint, "--offsets", offsets, "--drop-state")
    done = dropped.attempt(second, grouped=True)
    assert done["error"] == ""
    # The first batch reads nothing: it begins where it ends.
    assert {number: held for number, held in done["batches"].items() if held} == {"1": [4]}
