"""Draw the picture of a report in the docs: docs/images/report.png, of figures that are made up.

Needs a Chromium on the path. Run from the root of the repository: python tools/report_pictures.py
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.operations.reports.generate import write_report
from pyspark_kafka._ops.operations.reports.render import ReportData
from pyspark_kafka._ops.operations.reports.timeline import BatchStats

_ROOT = Path(__file__).parents[1]
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


def main() -> None:
    """Draw the picture."""
    sys.path.insert(0, str(_ROOT / "tests"))
    from kit.browser import Browser, find_browser  # noqa: PLC0415 - of the tests

    program = find_browser()
    if program is None:
        sys.exit("No Chromium is on the path, and PYSPARK_KAFKA_BROWSER names none.")
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "report.html"
        write_report(example_report(), page)
        picture = _ROOT / "docs" / "images" / "report.png"
        picture.parent.mkdir(exist_ok=True)
        Browser(program, 900).picture(page, picture, 1_350)
    print(picture.relative_to(_ROOT))


if __name__ == "__main__":
    main()
