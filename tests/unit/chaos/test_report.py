"""What the record of a run on a cluster in motion counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from chaos.report import Outcome
from kit.log_checker import Findings

WELL = Outcome(
    strikes=[],
    findings={"flow": Findings(records=40, counts=Counter({"duplicated": 3})), "once": Findings(records=37)},
    times={},
    ended=[],
    batch_jobs={},
    batch_failures=[],
    batch_wrong=[],
    batch_lost=0,
    vanished=0,
    false_alarms=[],
    exactly_once=frozenset({"once"}),
    not_caught_up=[],
    begin=0.0,
    end=3420.0,
    seed=1,
)


def test_all_that_should_be_0_is_counted_and_duplicates_only_under_exactly_once() -> None:
    counts = WELL.counts
    assert (counts["minutes"], counts["records out"]) == (57, 77)
    assert {counts[kind] for kind in ("lost", "duplicated", "read twice", "out of order", "queries ended")} == {0}


def test_anomalies_are_counted_by_their_kinds() -> None:
    once = Findings(records=38, counts=Counter({"duplicated": 1, "lost": 2}))
    ill = replace(WELL, findings={**WELL.findings, "once": once}, batch_lost=4, ended=[(1.0, "once", "it failed")])
    assert ill.anomalies.items() <= ill.counts.items()
    assert (ill.counts["lost"], ill.counts["duplicated"], ill.counts["queries ended"]) == (6, 1, 1)
