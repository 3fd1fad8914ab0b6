"""What docs/exactly-once.md says of the fault tests is what their table says: docs/internals/fault-tests.md."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_summary_has_the_numbers_of_the_table() -> None:
    table = (
        (DOCS / "internals" / "fault-tests.md")
        .read_text()
        .split("<!-- result: faults-driver -->")[1]
        .split("<!-- end of the result -->")[0]
    )
    summary = (DOCS / "exactly-once.md").read_text().split("## What was tested")[1]
    run = re.search(r"on one checkpoint: (.+?)\. .*: (\d+) records sent, (\d+) visible; 0 lost, 0 duplicated", table)
    assert run is not None
    killed, sent, visible = run.groups()
    assert sent == visible
    for part in (
        *re.findall(r"\d+ [\w' ]+", killed),
        f"sent {sent} records",
        f"saw {visible}: none lost, none duplicated",
    ):
        # Line breaks of the page do not count.
        assert part.strip().removesuffix(" the broker") in " ".join(summary.split())
