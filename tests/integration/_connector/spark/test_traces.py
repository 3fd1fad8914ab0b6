"""Traces from a producer through queries to a consumer: one linked picture, whatever process has the spans."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_all, produce
from kit.programs.run import run_connect_program, run_logging_program
from kit.span_collector import span_collector
from kit.span_files import KeptSpan, kept_spans, variables_of_exporter
from kit.spans import KeptTracer
from pyspark_kafka._base.traces.roles import SpanKind
from pyspark_kafka._base.traces.trace_parent import parse_trace_parent
from pyspark_kafka.testing import EmbeddedKafka

_FULL = pytest.mark.full("Drivers of their own")

START = """
import sys
from pyspark.sql import SparkSession
import pyspark_kafka
from pyspark_kafka import continuous

pyspark_kafka.prepare()
servers, source, target, place, parent = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
kafka = {"kafka.bootstrap.servers": servers, "traceContext": MODE}
if parent:
    kafka["traceParent"] = parent
"""
MICRO_BATCH = """
read = spark.readStream.format("pyspark_kafka").options(**kafka).option("subscribe", source)
rows = read.option("startingOffsets", "earliest").option("includeHeaders", HEADERS).load().select(*COLUMNS)
write = rows.writeStream.format("pyspark_kafka").options(**kafka).options(**SINK).option("topic", target)
query = write.option("checkpointLocation", place).trigger(availableNow=True).start()
query.awaitTermination()
print(query.runId)
"""
CONTINUOUS = """
read = continuous.read(spark).format("pyspark_kafka").options(**kafka).option("subscribe", source)
rows = read.option("startingOffsets", "earliest").option("includeHeaders", HEADERS).load().select(*COLUMNS)
write = rows.writeStream.format("pyspark_kafka").options(**kafka).options(**SINK).option("topic", target)
query = write.option("checkpointLocation", place).trigger(continuous="1 second").start()
query.processAllAvailable()
query.stop()
print(query.runId)
"""
BATCH = """
read = spark.read.format("pyspark_kafka").options(**kafka).option("subscribe", source)
rows = read.option("includeHeaders", HEADERS).load().select(*COLUMNS)
write = rows.write.format("pyspark_kafka").options(**kafka).options(**SINK).option("topic", target)
write.mode("append").save()
print("")
"""
PRODUCED = 6


class Picture:
    """What a producer has written, a program has copied, and a consumer has read, each with its spans."""

    def __init__(self, servers: str, source: str, target: str, place: Path) -> None:
        self._servers, self._source, self._target, self._place = servers, source, target, place
        self._tracer = KeptTracer()
        self.produced: list[tuple[str, str]] = []
        self.spans: list[KeptSpan] = []
        self.run_id = self.log = ""

    def produce(self) -> None:
        """Write records, each in a span of its own, as instrumented producers do."""
        records = []
        for number in range(PRODUCED):
            span = self._tracer.start(f"send {self._source}", SpanKind.PRODUCER)
            headers: list[tuple[str, bytes | None]] = [("traceparent", span.traceparent.encode())]
            records.append(Record(b"k", b"secret-value-%d" % number, number % 2, headers=headers))
            span.end()
            self.produced.append(_ids(span.traceparent))
        produce(self._servers, self._source, records)

    def copy(
        self,
        program: str,
        *,
        mode: str = "link",
        headers: bool = False,
        parent: str = "",
        exporter: Mapping[str, str] | None = None,
        connect: bool = False,
        **sink: str,
    ) -> None:
        """Run a query as a program; its spans are in files, if it has no other exporter."""
        text = START.replace("MODE", repr(mode)) + program
        columns = ["key", "value", "headers"] if headers else ["key", "value"]
        text = text.replace("HEADERS", repr(headers)).replace("COLUMNS", repr(columns)).replace("SINK", repr(sink))
        checkpoint = str(self._place / "checkpoint")
        if sink.get("deliveryGuarantee") == "exactly_once" and program is not BATCH:
            sink["checkpointLocation"] = checkpoint
        arguments = self._servers, self._source, self._target, checkpoint, parent
        variables = exporter or variables_of_exporter(self._place)
        if connect:
            text = text.replace('.master("local[2]")', '.remote("local[2]")')
            printed = run_connect_program(text, *arguments, place=self._place, environment=variables)
        else:
            printed, self.log = run_logging_program(text, *arguments, place=self._place, environment=variables)
        self.run_id = printed.strip().splitlines()[-1] if printed.strip() else ""
        self.spans = kept_spans(self._place)

    def consumed(self) -> list[tuple[str, str]]:
        """Return the span that each record of the target names; each names one."""
        found = []
        for record in consume_all(self._servers, self._target):
            values = [value for name, value in record.headers or [] if name == "traceparent"]
            assert len(values) == 1, record
            found.append(_ids((values[0] or b"").decode()))
        return found

    def named(self, start: str) -> list[KeptSpan]:
        """Return the spans whose names begin so."""
        return [span for span in self.spans if span.name.startswith(start)]


def _ids(text: str) -> tuple[str, str]:
    parent = parse_trace_parent(text)
    assert parent is not None
    return f"{parent.trace_id:032x}", f"{parent.span_id:016x}"


@pytest.fixture
def picture(kafka: EmbeddedKafka, make_topic: TopicMaker, tmp_path: Path) -> Picture:
    made = Picture(kafka.bootstrap_servers, make_topic(partitions=2), make_topic(), tmp_path)
    made.produce()
    return made


def test_micro_batch_is_one_picture_from_producer_to_consumer(picture: Picture) -> None:
    picture.copy(MICRO_BATCH)
    reads, writes, (commit,), (plan,) = map(picture.named, ("poll", "send", "commit", "plan"))
    # Producer to read: links.
    assert sorted(link for read in reads for link in read.links if link != plan.ids) == sorted(picture.produced)
    assert [read.attributes["messaging.batch.message_count"] for read in reads] == [3, 3]
    assert all(plan.ids in read.links for read in reads)
    # Read to write and commit: one trace.
    assert len({span.trace_id for span in [*reads, *writes, commit]}) == 1
    # Write to consumer: the header.
    assert set(picture.consumed()) == {write.ids for write in writes}
    assert set(commit.links) == {write.ids for write in writes}
    assert {span.attributes["pyspark_kafka.run.id"] for span in [*reads, *writes]} == {picture.run_id}
    assert any(span.name == "look up ends" and span.parent == plan.span_id for span in picture.spans)
    assert "secret-value" not in repr(picture.spans)


def test_continuous_query_is_one_picture_from_producer_to_consumer(picture: Picture) -> None:
    picture.copy(CONTINUOUS)
    lanes, commits, plans = map(picture.named, ("process", "commit", "plan"))
    assert sorted(link for lane in lanes for link in lane.links) == sorted(picture.produced)
    assert set(picture.consumed()) == {lane.ids for lane in lanes}
    assert {lane.kind for lane in lanes} == {"CONSUMER"}
    assert {lane.trace_id for lane in lanes} <= {commit.trace_id for commit in commits if commit.parent is None}
    assert plans
    assert "secret-value" not in repr(picture.spans)


@_FULL
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (MICRO_BATCH, {"plan", "poll", "send", "commit"}),
        (CONTINUOUS, {"plan", "process", "commit"}),
        # What it writes belongs to the plan of the write.
        (BATCH, {"plan", "poll"}),
    ],
    ids=["micro-batch", "continuous", "batch"],
)
def test_query_with_a_parent_has_all_its_spans_below_it(program: str, expected: set[str], picture: Picture) -> None:
    parent = f"00-{0xABC:032x}-{0xDEF:016x}-01"
    picture.copy(program, parent=parent)
    assert {span.trace_id for span in picture.spans} == {f"{0xABC:032x}"}
    tops = [span for span in picture.spans if span.parent == f"{0xDEF:016x}"]
    assert {span.name.partition(" ")[0] for span in tops} == expected
    assert {trace for trace, _ in picture.consumed()} == {f"{0xABC:032x}"}


@_FULL
def test_row_that_is_continued_keeps_its_producer(picture: Picture) -> None:
    picture.copy(MICRO_BATCH, mode="continue", headers=True)
    assert sorted(picture.consumed()) == sorted(picture.produced)
    writes = picture.named("send")
    assert sorted(link for write in writes for link in write.links) == sorted(picture.produced)


@_FULL
def test_row_that_is_linked_names_the_task_and_not_its_producer(picture: Picture) -> None:
    picture.copy(MICRO_BATCH, mode="link", headers=True)
    assert set(picture.consumed()) == {write.ids for write in picture.named("send")}


@_FULL
@pytest.mark.parametrize("commit", ["driver", "tasks"])
def test_exactly_once_micro_batch_has_the_requests_of_its_commit(commit: str, picture: Picture) -> None:
    picture.copy(MICRO_BATCH, deliveryGuarantee="exactly_once", exactlyOnceCommit=commit)
    (found,) = picture.named("commit")
    requests = {span.name for span in picture.spans if span.parent == found.span_id}
    assert requests & {"EndTxn", "AddPartitionsToTxn", "Produce"}
    assert set(picture.consumed()) == {write.ids for write in picture.named("send")}


@_FULL
def test_exactly_once_continuous_query_names_its_epochs(picture: Picture) -> None:
    picture.copy(CONTINUOUS, deliveryGuarantee="exactly_once")
    lanes = picture.named("process")
    assert set(picture.consumed()) == {lane.ids for lane in lanes}


@_FULL
@pytest.mark.parametrize("program", [MICRO_BATCH, CONTINUOUS], ids=["micro-batch", "continuous"])
def test_spans_reach_a_collector_by_the_protocol_of_opentelemetry(program: str, picture: Picture) -> None:
    with span_collector() as collector:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "orders-copy"}
        picture.copy(program, exporter=variables)
    assert collector.services == {"orders-copy"}
    of_reads = [span for span in collector.spans if span.name.startswith(("poll", "process"))]
    links = {(link.trace_id.hex(), link.span_id.hex()) for span in of_reads for link in span.links}
    assert links >= set(picture.produced)
    of_writes = [span for span in collector.spans if span.name.startswith(("send", "process"))]
    assert set(picture.consumed()) <= {(span.trace_id.hex(), span.span_id.hex()) for span in of_writes}
    assert {span.name.partition(" ")[0] for span in collector.spans} >= {"plan", "commit"}
    assert "secret-value" not in str(collector.spans)


@_FULL
@pytest.mark.parametrize("program", [MICRO_BATCH, CONTINUOUS], ids=["micro-batch", "continuous"])
def test_query_of_spark_connect_is_one_picture(program: str, picture: Picture) -> None:
    picture.copy(program, connect=True)
    reads = [*picture.named("poll"), *picture.named("process")]
    writes = [*picture.named("send"), *picture.named("process")]
    assert {link for read in reads for link in read.links} >= set(picture.produced)
    assert set(picture.consumed()) <= {write.ids for write in writes}
    assert {span.name.partition(" ")[0] for span in picture.spans} >= {"plan", "commit"}
    assert {span.attributes["pyspark_kafka.run.id"] for span in writes} == {picture.run_id}


def test_query_without_the_option_has_neither_spans_nor_headers(picture: Picture) -> None:
    picture.copy(MICRO_BATCH, mode="off", headers=True)
    assert picture.spans == []
    assert sorted(picture.consumed()) == sorted(picture.produced)
