"""Draw the pictures of the docs: the chart of the throughput, the card of the site, a report of made-up figures.

The chart is drawn from the table of docs/performance.md. The others need a Chromium on the path; their files have a
digest of what they show, which a test compares.

Run from the root of the repository: python tools/pictures.py
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.operations.reports import page as report_page
from pyspark_kafka._ops.operations.reports.generate import write_report
from pyspark_kafka._ops.operations.reports.render import ReportData, build_page
from pyspark_kafka._ops.operations.reports.timeline import BatchStats

_ROOT = Path(__file__).resolve().parents[1]
_IMAGES = _ROOT / "docs" / "images"
CHART, CARD, REPORT = _IMAGES / "throughput.svg", _IMAGES / "card.png", _IMAGES / "report.png"
# The keyword of the digest among the texts of a PNG file.
_KEYWORD = b"Shows"
_PNG_HEADER = 33
_BAR, _GROUP, _TOP, _LEFT, _WIDTH = 9, 43, 62, 16, 480
_STARTED_MS = 1_795_300_000_000
_OUTAGE_BATCH = 420


def example_report() -> ReportData:
    """Return the figures of a query that was down for 47 minutes and has one partition with most of the rows."""
    chance = random.Random(7)  # noqa: S311 - made up
    batches, at_ms = [], _STARTED_MS
    for number in range(700):
        taken, rows, run = chance.randint(400, 3_000), chance.randint(10_000, 60_000), "first"
        if number >= _OUTAGE_BATCH:
            run = "second"
        if number == _OUTAGE_BATCH:
            at_ms += 47 * 60_000
            taken, rows = 41_000, 900_000
        phases = {"addBatch": taken * 7 // 10, "latestOffset": taken // 10, "walCommit": 60, "commitOffsets": 50}
        batches.append(BatchStats(number, at_ms, at_ms + taken, True, rows, phases, run))
        at_ms += taken + chance.randint(10, 25_000)
    rows_by_partition = {
        TopicPartition("orders", number): chance.randint(100_000, 900_000) * (9 if number == 3 else 1)
        for number in range(12)
    }
    return ReportData(
        title="Query 6a1c1f0e-9d0a-4c7e-8a37-0f7f5e2c9b11",
        place="checkpoint /data/checkpoints/orders",
        batches=batches,
        made_ms=at_ms,
        positions={each: 10 * rows for each, rows in rows_by_partition.items()},
        rows=rows_by_partition,
        behind={each: rows // 40 for each, rows in rows_by_partition.items()},
        sentences=("The query runs in micro-batches.",),
    )


@dataclass(frozen=True)
class Throughput:
    """A row of the table of the throughput.

    Attributes:
        name: what was measured.
        ours: millions of rows per second.
        spark: the same with Spark's JVM connector.
    """

    name: str
    ours: float
    spark: float


def throughputs() -> list[Throughput]:
    """Return the rows of the table in docs/performance.md."""
    page = (_ROOT / "docs" / "performance.md").read_text()
    table = page.partition("| Spark, end to end |")[2].partition("\n\n")[0]
    found = []
    for line in table.splitlines()[2:]:
        name, ours, spark = (cell.strip() for cell in line.split("|")[1:4])
        found.append(Throughput(name, float(ours.split()[0]), float(spark.split()[0])))
    return found


def chart(rows: list[Throughput]) -> str:
    """Return the bars of the rows, as SVG for light and dark pages."""
    height = _TOP + _GROUP * len(rows) + 8
    longest = max(max(each.ours, each.spark) for each in rows)
    scale = (_WIDTH - 2 * _LEFT - 60) / longest
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title">',
        '<title id="title">Millions of rows per second, with pyspark-kafka and with Spark\'s JVM connector</title>',
        "<style>",
        "svg { --paper: #f5f6f8; --ink: #1b1f24; --ours: #4051b5; --spark: #8a929b; color-scheme: light dark }",
        "@media (prefers-color-scheme: dark) {",
        "svg { --paper: #1f2429; --ink: #e8eaed; --ours: #9fa8ff; --spark: #77818b } }",
        "text { font: 13px system-ui, sans-serif; fill: var(--ink) } .title { font-weight: 600; font-size: 15px }",
        ".value { font-size: 11px } .ours { fill: var(--ours) } .spark { fill: var(--spark) }",
        "</style>",
        f'<rect width="{_WIDTH}" height="{height}" rx="10" fill="var(--paper)"/>',
        f'<text class="title" x="{_LEFT}" y="26">Millions of rows per second</text>',
        '<rect class="ours" x="16" y="38" width="12" height="9"/><text x="34" y="47">pyspark-kafka</text>',
        '<rect class="spark" x="150" y="38" width="12" height="9"/><text x="168" y="47">Spark\'s JVM connector</text>',
    ]
    for number, each in enumerate(rows):
        y = _TOP + _GROUP * number
        parts.append(f'<text x="{_LEFT}" y="{y + 12}">{escape(each.name)}</text>')
        for kind, value, at in (("ours", each.ours, y + 17), ("spark", each.spark, y + 19 + _BAR)):
            width = round(value * scale, 1)
            parts.append(f'<rect class="{kind}" x="{_LEFT}" y="{at}" width="{width}" height="{_BAR}"/>')
            parts.append(f'<text class="value" x="{_LEFT + width + 5:.1f}" y="{at + _BAR}">{value:.2f}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def card(rows: list[Throughput]) -> str:
    """Return the page of the card, which a link to the site shows: 1200 by 630 pixels."""
    mark = (_IMAGES / "mark.svg").read_text()
    reads = sorted(each.ours / each.spark for each in rows if each.name.startswith("read"))
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><style>
body {{ margin: 0; width: 1200px; height: 630px; background: #1d2456; color: #fff;
font: 40px/1.35 system-ui, sans-serif; }}
main {{ padding: 90px 100px; }} svg {{ width: 150px; display: block; }} h1 {{ font-size: 84px; margin: 30px 0 0; }}
p {{ margin: 10px 0; color: #cfd5ff; }} b {{ color: #ffd166; }}</style></head><body><main>{mark}<h1>pyspark-kafka</h1>
<p>Apache Kafka for PySpark, in one pip install</p>
<p>Reads <b>{reads[0]:.0f} to {reads[-1]:.0f} times</b> as fast as with Spark's JVM connector</p></main></body></html>
"""


def shown_by_card() -> str:
    """Return the digest of the card."""
    return _digest(card(throughputs()))


def shown_by_report() -> str:
    """Return the digest of the report: its texts, its style, and the kinds and titles of its plots."""
    with _utc():
        page = build_page(example_report())
    plots = {
        name: [plot.layout.title.text, *(f"{trace.type} {trace.marker.color}" for trace in plot.data)]
        for name, plot in page.plots.items()
    }
    style = Path(report_page.__file__).with_name("page.html").read_text()
    return _digest(json.dumps([asdict(replace(page, plots={})), plots, style], default=sorted))


def shown_in(picture: Path) -> str | None:
    """Return the digest that a PNG file has of what it shows; None if it has none."""
    _, found, rest = picture.read_bytes().partition(b"tEXt" + _KEYWORD + b"\0")
    return rest[:64].decode() if found else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _mark(picture: Path, digest: str) -> None:
    chunk = b"tEXt" + _KEYWORD + b"\0" + digest.encode()
    framed = (len(chunk) - 4).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big")
    data = picture.read_bytes()
    picture.write_bytes(data[:_PNG_HEADER] + framed + data[_PNG_HEADER:])


@contextmanager
def _utc() -> Iterator[None]:
    """Show times as in UTC."""
    former = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        if former is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = former
        time.tzset()


def main() -> None:
    """Draw the pictures."""
    CHART.write_text(chart(throughputs()))
    sys.path.insert(0, str(_ROOT / "tests"))
    from kit.browser import Browser, find_browser  # noqa: PLC0415 - of the tests

    program = find_browser()
    if program is None:
        sys.exit(f"{CHART.name} is drawn. The others need Chromium: none is on the path or in PYSPARK_KAFKA_BROWSER.")
    with tempfile.TemporaryDirectory() as place, _utc():
        page = Path(place) / "page.html"
        page.write_text(card(throughputs()))
        Browser(program, 1_200).picture(page, CARD, 630)
        _mark(CARD, shown_by_card())
        write_report(example_report(), page)
        Browser(program, 900).picture(page, REPORT, 1_350)
        _mark(REPORT, shown_by_report())
    print(*(each.relative_to(_ROOT) for each in (CHART, CARD, REPORT)))


if __name__ == "__main__":
    main()
