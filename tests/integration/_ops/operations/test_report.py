"""The page about a query that has run, and what a browser makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kit.browser import Browser, find_browser
from kit.checkpoint_files import write_checkpoint
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.cli import invoke
from pictures import example_report
from pyspark_kafka._ops.operations.reports.generate import write_report
from pyspark_kafka._ops.operations.reports.live import LiveView

_BATCHES = 3


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


@pytest.fixture
def query(spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, place: Path) -> StreamingQuery:
    """A query that has ended after three batches of ten records."""
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, [Record(None, b"%d" % n, n % 2) for n in range(10 * _BATCHES)])
    query: StreamingQuery = (
        spark.readStream.format("pyspark_kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "10")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(place))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)
    return query


@pytest.mark.broker
@pytest.mark.spark
def test_page_of_a_query_has_its_batches_and_partitions(query: StreamingQuery, place: Path, tmp_path: Path) -> None:
    told = tmp_path / "progress.json"
    told.write_text("".join(f"{each.json}\n" for each in query.recentProgress))
    page = tmp_path / "page.html"
    done = invoke("report", str(place), "--html", str(page), "--progress", str(told))
    assert done.exit_code == 0, done.output
    assert done.stdout == f"Wrote {page}.\n"
    text = page.read_text()
    assert f"Query {query.id}" in text
    assert "<b>3</b><span>batches</span>" in text
    assert "<b>30</b><span>rows</span>" in text
    assert "addBatch" in text


@pytest.mark.broker
@pytest.mark.spark
def test_page_has_how_far_the_query_is_behind(
    query: StreamingQuery, bootstrap_servers: str, place: Path, tmp_path: Path
) -> None:
    assert query.lastProgress is not None
    (topic,) = json.loads(query.lastProgress.sources[0].endOffset)
    produce(bootstrap_servers, topic, [Record(None, b"late", 1)] * 1_234)
    page = tmp_path / "page.html"
    done = invoke("report", str(place), "--html", str(page), "--bootstrap-servers", bootstrap_servers)
    assert done.exit_code == 0, done.output
    assert "<b>1,234</b><span>records behind</span>" in page.read_text()


@pytest.mark.broker
@pytest.mark.spark
def test_page_is_written_without_brokers(query: StreamingQuery, place: Path, tmp_path: Path) -> None:
    assert query.id
    page = tmp_path / "page.html"
    options = [
        "-o",
        "default.api.timeout.ms=2000",
        "-o",
        "request.timeout.ms=1000",
        "--bootstrap-servers",
        "127.0.0.1:1",
    ]
    done = invoke("report", str(place), "--html", str(page), *options)
    assert done.exit_code == 3, done.output
    assert "How far the query is behind is not known" in page.read_text()


@pytest.mark.broker
@pytest.mark.spark
def test_live_view_shows_a_query_that_spark_runs(query: StreamingQuery) -> None:
    shown: list[str] = []
    view = LiveView(query, 0.01, lambda figure, text, _: shown.append(f"{len(figure.data)} {text}"))
    view.stop()
    assert f"{_BATCHES} batches, {10 * _BATCHES} rows" in shown[0]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1000], ids=["phone", "desk"])
def test_browser_shows_every_plot_within_the_window(tmp_path: Path, width: int, *, dark: bool) -> None:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is on the path, and PYSPARK_KAFKA_BROWSER names none")
    page = tmp_path / "page.html"
    write_report(example_report(), page)
    browser = Browser(program, width, dark=dark)
    found = json.loads(
        browser.ask(
            page,
            "{plots: [...document.querySelectorAll('.plot')].map(plot => plot.querySelectorAll('svg.main-svg').length),"
            " bars: document.querySelectorAll('.plot .point').length,"
            " cut: [...document.querySelectorAll('.scroll')].some(each => each.scrollWidth > each.clientWidth),"
            " wide: document.documentElement.scrollWidth, paper: getComputedStyle(document.body).backgroundColor,"
            " ink: getComputedStyle(document.body).color}",
        )
    )
    assert len(found["plots"]) == 5
    assert all(found["plots"]), found
    assert found["bars"] > 100
    assert found["wide"] <= width
    assert found["cut"] is False
    light, darkness = "rgb(255, 255, 255)", "rgb(20, 23, 26)"
    assert found["paper"] == (darkness if dark else light)
    assert found["ink"] != found["paper"]


def test_checkpoint_of_nobody_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = invoke("report", str(tmp_path), "--html", str(page))
    assert done.exit_code == 2
    assert "There is no checkpoint of a streaming query" in done.stderr
    assert not page.exists()


def test_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "c", [{"t": {"0": 1}}])
    done = invoke("report", str(place), "--html", str(tmp_path / "none" / "page.html"))
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr
