"""What the check of a killed query finds, of each kind of fault."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from chaos.continuous.checker import CommittedEpoch, KillsFindings, RunCopy, check_runs
from kit.log_checker import Extent, Kind, Log

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = Log("in", 0)
EXTENTS = {LOG: Extent(0, 6, {offset: f"v{offset}" for offset in range(6)})}
EPOCHS = [CommittedEpoch(0, 10.0, {LOG: 2}), CommittedEpoch(1, 20.0, {LOG: 6})]


def copied(run: str, planned: float, *offsets: int) -> list[RunCopy]:
    return [RunCopy(LOG, offset, 0, f"v{offset}", run=run, planned=planned, attempt=7) for offset in offsets]


def found_in(output: list[RunCopy], epochs: list[CommittedEpoch] | None = None) -> KillsFindings:
    return check_runs(EXTENTS, output, EPOCHS if epochs is None else epochs)


def test_copy_of_everything_has_no_anomaly() -> None:
    found = found_in(copied("a", 1.0, *range(6)))
    assert found.anomalies(exactly_once=True) == {}
    assert (found.expected, found.records, found.runs) == (6, 6, 1)


def test_records_that_were_not_committed_may_be_repeated_at_least_once() -> None:
    # The first run died after epoch 0 was committed, and had written more.
    found = found_in(copied("a", 1.0, 0, 1, 2, 3) + copied("b", 11.0, 2, 3, 4, 5))
    assert found.anomalies(exactly_once=False) == {}
    assert found.anomalies(exactly_once=True) == {"duplicated": 2}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (lambda: copied("a", 1.0, 0, 1, 2, 4, 5), {"lost": 1}),
        (lambda: copied("a", 1.0, 0, 1, 2) + copied("b", 11.0, 1, 2, 3, 4, 5), {"read twice": 1}),
        (lambda: copied("a", 1.0, 0, 1, 2) + copied("b", 11.0, *range(6)), {"read twice": 2}),
        (lambda: copied("a", 1.0, 0, 1, 3, 2, 4, 5), {"out of order": 1}),
        (lambda: [*copied("a", 1.0, 0, 1, 2, 3, 4), replace(copied("a", 1.0, 5)[0], value="v4")], {"damaged": 1}),
        (lambda: copied("a", 1.0, 0, 1, 2, 3, 4, 5, 6), {"never sent": 1}),
        (lambda: copied("a", 1.0, 0, 1, 2, 3, 4, 5, 5), {"read twice": 1}),
        (lambda: copied("a", 1.0, 0, 1, 2, 3, 4) + copied("b", 1.0, 4, 4, 5), {"read twice": 1}),
    ],
    ids=[
        "lost",
        "one of a committed epoch",
        "all of it",
        "order",
        "another value",
        "never sent",
        "one attempt, twice",
        "another attempt, twice",
    ],
)
def test_each_fault_is_counted(output: Callable[[], list[RunCopy]], expected: dict[Kind, int]) -> None:
    assert found_in(output()).anomalies(exactly_once=False) == expected


def test_epochs_that_are_missing_or_end_earlier_are_counted() -> None:
    back = [*EPOCHS, CommittedEpoch(2, 30.0, {LOG: 5})]
    assert found_in(copied("a", 1.0, *range(6)), back)["gaps"] == 1
    assert found_in(copied("a", 1.0, *range(6)), EPOCHS[1:])["gaps"] == 1


def test_records_of_topics_that_were_deleted_are_not_missed() -> None:
    gone = Log("gone", 0)
    output = [*copied("a", 1.0, *range(6)), replace(copied("a", 1.0, 0)[0], log=gone, value="was there")]
    epochs = [CommittedEpoch(0, 10.0, {LOG: 2, gone: 1}), EPOCHS[1]]
    assert check_runs(EXTENTS, output, epochs, frozenset({"gone"})).anomalies(exactly_once=True) == {}
