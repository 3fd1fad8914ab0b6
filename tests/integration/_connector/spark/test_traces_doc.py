"""The programs of docs/traces.md, run as they stand but for addresses and places; its numbers are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_all, produce
from kit.programs.run import run_logging_program
from kit.span_files import kept_spans, variables_of_exporter
from pyspark_kafka._base.traces import link_sample
from pyspark_kafka._base.traces.otel import export_queue, spans

_TEXT = (Path(__file__).parents[4] / "docs" / "traces.md").read_text()
_START = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from pyspark.sql import SparkSession
import pyspark_kafka

pyspark_kafka.prepare()
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
trace.set_tracer_provider(TracerProvider())
"""


@pytest.mark.full("Programs of the pages")
def test_the_programs_copy_records_with_spans(bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path) -> None:
    source, target = make_topic(), make_topic()
    produce(
        bootstrap_servers, source, [Record(b"k", b"v", headers=[("traceparent", f"00-{7:032x}-{8:016x}-01".encode())])]
    )
    stream, batch = re.findall(r"```python\n(.*?)```", _TEXT, re.DOTALL)
    stream = stream.replace(".start()", ".trigger(availableNow=True).start()") + "query.awaitTermination()\n"
    text = _START + stream + batch + 'print(carrier["traceparent"])\n'
    text = text.replace("localhost:9092", bootstrap_servers).replace("/checkpoints", str(tmp_path))
    text = text.replace('"orders"', f'"{source}"').replace('"orders-out"', f'"{target}"')
    printed, _ = run_logging_program(text, place=tmp_path, environment=variables_of_exporter(tmp_path))
    trace_id = printed.strip().splitlines()[-1].split("-")[1]
    found = kept_spans(tmp_path)
    producer = (f"{7:032x}", f"{8:016x}")
    reads = [span for span in found if span.name == f"poll {source}"]
    assert [producer in span.links for span in reads] == [True, True]
    assert [span.trace_id == trace_id for span in reads] == [False, True]
    assert {span.name for span in found if span.trace_id == trace_id} >= {
        f"plan {source}", f"poll {source}", f"plan write {target}", f"send {target}", f"commit {target}",
    }  # fmt: skip
    assert len(consume_all(bootstrap_servers, target)) == 2


def test_numbers_of_the_page_are_those_of_the_code() -> None:
    assert f"At most {export_queue._MAX_SPANS:,} spans of a process wait" in _TEXT
    assert f"waits for its exporter for at most {spans._FLUSH_MS} ms" in _TEXT
    text = " ".join(_TEXT.split())
    assert f"has at most {link_sample.MAX_LINKS} links to distinct spans" in text
    assert f"The first {link_sample.RECORDS_AT_A_TIME} records of a response are looked at" in text
    assert f"of each of the first {link_sample._ALL_FIRST} responses" in text
