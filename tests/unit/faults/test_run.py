"""How the long fault test spreads its kills, and the table that it prints."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

from faults.checker import Report
from faults.run import BEGIN, END, Line, spread, table
from kit.marked_page import put_between

if TYPE_CHECKING:
    from pathlib import Path


def test_every_point_is_chosen_about_as_often_as_the_others() -> None:
    chosen = Counter(spread(["a", "b", "c"], 8, random.Random(1)))
    assert sorted(chosen.values()) == [2, 3, 3]
    assert spread(["a", "b", "c"], 8, random.Random(1)) == spread(["a", "b", "c"], 8, random.Random(1))


def test_the_table_adds_up_what_was_found_at_a_point_and_tells_every_kind() -> None:
    lines = {
        "executor task_row": Line("executor", "row"),
        "after_end": Line("driver", "after EndTxn", [1, 2], [1.0, 3.0, 2.0]),
        "task task_row": Line("task", "row"),
    }
    reports = {1: Report(30, 30), 2: Report(30, 61, lost=1, duplicated=30, torn=1, inversions=2)}
    assert table(lines, reports).splitlines()[2:] == [
        "| driver | after EndTxn | 2 | 1 | 30 | 1 | 2 | 2.0 s |",
        "| task | row | 0 | 0 | 0 | 0 | 0 |  |",
        "| executor | row | 0 | 0 | 0 | 0 | 0 |  |",
    ]


def test_the_table_replaces_the_one_in_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    put_between(page, BEGIN, "new", END)
    assert page.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
