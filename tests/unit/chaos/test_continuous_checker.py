"""What the check of a killed query finds, of each kind of fault."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from chaos.continuous.checker import CommittedEpoch, Copied, KillsReport, check

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = ("in", 0)
SOURCE = {PLACE: {offset: f"v{offset}" for offset in range(6)}}
EPOCHS = [CommittedEpoch(0, 10.0, {PLACE: 2}), CommittedEpoch(1, 20.0, {PLACE: 6})]


def copied(run: str, planned: float, *offsets: int) -> list[Copied]:
    return [Copied(run, planned, 7, PLACE, offset, f"v{offset}", 0) for offset in offsets]


def reported(output: list[Copied], epochs: list[CommittedEpoch] | None = None) -> KillsReport:
    return check(SOURCE, output, EPOCHS if epochs is None else epochs)


def test_copy_of_everything_has_no_anomaly() -> None:
    report = reported(copied("a", 1.0, *range(6)))
    assert report.anomalies(exactly_once=True) == {}
    assert (report.sent, report.written, report.runs) == (6, 6, 1)


def test_records_that_were_not_committed_may_be_repeated_at_least_once() -> None:
    # The first run died after epoch 0 was committed, and had written more.
    report = reported(copied("a", 1.0, 0, 1, 2, 3) + copied("b", 11.0, 2, 3, 4, 5))
    assert report.anomalies(exactly_once=False) == {}
    assert report.anomalies(exactly_once=True) == {"repeated": 2}


@pytest.mark.parametrize(
    ("output", "found"),
    [
        (lambda: copied("a", 1.0, 0, 1, 2, 4, 5), {"lost": 1}),
        (lambda: copied("a", 1.0, 0, 1, 2) + copied("b", 11.0, 1, 2, 3, 4, 5), {"unallowed": 1}),
        (lambda: copied("a", 1.0, 0, 1, 2) + copied("b", 11.0, *range(6)), {"unallowed": 2}),
        (lambda: copied("a", 1.0, 0, 1, 3, 2, 4, 5), {"disordered": 1}),
        (lambda: [*copied("a", 1.0, 0, 1, 2, 3, 4), replace(copied("a", 1.0, 5)[0], value="v4")], {"damaged": 1}),
        (lambda: copied("a", 1.0, 0, 1, 2, 3, 4, 5, 6), {"damaged": 1}),
    ],
    ids=["lost", "one of a committed epoch", "all of it", "order", "another value", "never sent"],
)
def test_each_fault_is_counted(output: Callable[[], list[Copied]], found: dict[str, int]) -> None:
    assert reported(output()).anomalies(exactly_once=False) == found


def test_epochs_that_are_missing_or_end_earlier_are_counted() -> None:
    back = [*EPOCHS, CommittedEpoch(2, 30.0, {PLACE: 5})]
    assert reported(copied("a", 1.0, *range(6)), back).gaps == 1
    assert reported(copied("a", 1.0, *range(6)), EPOCHS[1:]).gaps == 1


def test_records_of_topics_that_vanished_are_not_missed() -> None:
    gone = ("gone", 0)
    output = [*copied("a", 1.0, *range(6)), replace(copied("a", 1.0, 0)[0], place=gone, value="was there")]
    epochs = [CommittedEpoch(0, 10.0, {PLACE: 2, gone: 1}), EPOCHS[1]]
    assert check(SOURCE, output, epochs, frozenset({"gone"})).anomalies(exactly_once=True) == {}
