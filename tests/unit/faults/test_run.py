"""How the long fault test spreads its kills, and the table that it prints."""

from __future__ import annotations

import random
from collections import Counter

from faults.checker import BatchFindings
from faults.run import Line, spread, table_of
from kit.log_checker import Kind


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
    counts: Counter[Kind] = Counter({"lost": 1, "duplicated": 30, "torn": 1, "out of order": 2})
    findings = {1: BatchFindings(30, 30), 2: BatchFindings(30, 61, counts)}
    assert table_of("driver", lines, findings).splitlines()[2:] == [
        "| driver | after EndTxn | 2 | 1 | 30 | 1 | 2 | 2.0 s |",
        "| task | row | 0 | 0 | 0 | 0 | 0 |  |",
        "| executor | row | 0 | 0 | 0 | 0 | 0 |  |",
    ]
