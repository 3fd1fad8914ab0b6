"""The check of copied records counts each planted fault by its name, in the format of every program that uses it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from chaos.checker import TaskCopy, is_read_twice
from chaos.continuous.checker import CommittedEpoch, RunCopy, check_runs
from faults.checker import check_batches
from faults.stamped import to_value
from kit.log_checker import Copied, Extent, Findings, Kind, Log, check

LOG, OTHER = Log("orders", 1), Log("orders", 0)
END = 6
EXTENTS = {LOG: Extent(0, END), OTHER: Extent(0, 3)}


class Row(NamedTuple):
    """A record of an output, before it has the format of a program."""

    offset: int
    log: Log = LOG
    out: int = 0
    # None: nobody can parse it.
    value: str | None = ""


GOOD = [*(Row(offset) for offset in range(END)), *(Row(offset, OTHER, out=1) for offset in range(3))]


def found_in_chaos(rows: list[Row], extents: dict[Log, Extent]) -> Findings:
    fields: Any = {"read_ms": 0, "batch_ms": 7, "task": 0, "attempt": "a", "written_s": 0.0}
    output: list[TaskCopy | bytes] = [
        b"?" if row.value is None else TaskCopy(row.log, row.offset, row.out, row=f"row-{number}", **fields)
        for number, row in enumerate(rows)
    ]
    found = Findings()
    check(found, extents, output, is_read_twice=is_read_twice)
    return found


def found_in_continuous(rows: list[Row], extents: dict[Log, Extent]) -> Findings:
    valued = {
        log: Extent(extent.start, extent.end, {offset: f"{offset}" for offset in extent.offsets})
        for log, extent in extents.items()
    }
    output: list[RunCopy | bytes] = [
        b"?"
        if row.value is None
        else RunCopy(row.log, row.offset, row.out, row.value or f"{row.offset}", run="r", planned=1.0, attempt=0)
        for row in rows
    ]
    return check_runs(valued, output, [CommittedEpoch(0, 10.0, {LOG: END})])


def found_in_faults(rows: list[Row], extents: dict[Log, Extent]) -> Findings:
    visible: dict[int, list[bytes]] = {}
    for row in rows:
        value = b"?" if row.value is None else to_value(row.log, row.offset, random.Random(0))
        visible.setdefault(row.out, []).append(value)
    return check_batches(extents, visible)


@pytest.fixture(params=[found_in_chaos, found_in_continuous, found_in_faults], ids=["chaos", "continuous", "faults"])
def found_in(request: pytest.FixtureRequest) -> Callable[[list[Row], dict[Log, Extent]], Findings]:
    """The check of one of the programs."""
    checked: Callable[[list[Row], dict[Log, Extent]], Findings] = request.param
    return checked


Found = dict[Kind, int]
PLANTED: dict[str, tuple[list[Row], Found]] = {
    "one is missing": (GOOD[:2] + GOOD[3:], {"lost": 1}),
    "all after one are missing": (GOOD[:3] + GOOD[END:], {"lost": 3}),
    "a whole log is missing": (GOOD[:END], {"lost": 3}),
    "some are there again": ([*GOOD, *GOOD[3:END]], {"duplicated": 3}),
    "one is there again, elsewhere": ([*GOOD, Row(5, out=1)], {"duplicated": 1}),
    "two have changed places": ([GOOD[1], GOOD[0], *GOOD[2:]], {"out of order": 1}),
    "one comes late": ([GOOD[0], *GOOD[2:4], GOOD[1], *GOOD[4:]], {"out of order": 1}),
    "the log ends before it": ([*GOOD, Row(END)], {"never sent": 1}),
    "nobody knows its log": ([*GOOD, Row(0, Log("others", 1))], {"never sent": 1}),
    "it is of another incarnation": ([*GOOD, Row(0, Log("others", 1, 1))], {"never sent": 1}),
    "it cannot be parsed": ([GOOD[0], Row(1, value=None), *GOOD[2:]], {"damaged": 1, "lost": 1}),
}


def test_complete_output_has_no_anomaly(found_in: Callable[[list[Row], dict[Log, Extent]], Findings]) -> None:
    found = found_in(GOOD, EXTENTS)
    assert not found.anomalies()
    assert not found.examples
    assert (found.expected, found.records) == (9, 9)


@pytest.mark.parametrize(("rows", "expected"), PLANTED.values(), ids=PLANTED)
def test_planted_fault_is_counted_by_its_name_in_every_program(
    found_in: Callable[[list[Row], dict[Log, Extent]], Findings], rows: list[Row], expected: Found
) -> None:
    found = found_in(rows, EXTENTS)
    kinds = {kind: count for kind, count in found.anomalies().items() if kind != "read twice"}
    assert kinds == expected
    assert set(found.examples) - {"read twice"} == set(expected)
    assert all(found.examples.values())


def test_missing_offset_is_named(found_in: Callable[[list[Row], dict[Log, Extent]], Findings]) -> None:
    found = found_in(GOOD[:2] + GOOD[3:], EXTENTS)
    (example,) = found.examples["lost"]
    assert example == "orders-1: 1 of [0, 6), such as [2]"


def test_offsets_before_the_start_are_not_lost_and_may_be_there() -> None:
    late = {LOG: Extent(3, END), OTHER: EXTENTS[OTHER]}
    for rows in (GOOD, GOOD[3:]):
        assert not found_in_chaos(rows, late).anomalies()


def test_order_is_that_of_one_log_in_one_output_partition(
    found_in: Callable[[list[Row], dict[Log, Extent]], Findings],
) -> None:
    mixed = [Row(1), Row(0, OTHER), Row(2), Row(2, OTHER), *(Row(offset) for offset in range(3, END))]
    others = [Row(0, out=1), Row(1, OTHER, out=1)]
    assert not found_in(mixed + others, EXTENTS).anomalies()


def test_order_is_that_of_one_writer() -> None:
    fields: Any = {"read_ms": 0, "batch_ms": 7, "task": 0, "row": "row", "written_s": 0.0}
    output = [TaskCopy(LOG, offset, attempt=attempt, **fields) for offset, attempt in ((1, "a"), (0, "b"), (2, "a"))]
    found = Findings()
    check(found, {LOG: Extent(0, 3)}, output)
    assert not found.anomalies()


def test_log_that_is_gone_has_no_lost_and_no_unknown_records_but_duplicates() -> None:
    gone = Log("gone", 0)
    found = Findings()
    check(found, {}, [Copied(gone, 0), Copied(gone, 7), Copied(gone, 7)], is_gone=lambda log: log == gone)
    assert found.anomalies() == {"duplicated": 1}


def test_copy_is_compared_with_the_one_before_it_of_the_same_writer() -> None:
    compared: list[tuple[Copied, Copied | None]] = []

    def noted(copied: RunCopy, before: RunCopy | None) -> bool:
        compared.append((copied, before))
        return before is not None

    first, other = (RunCopy(LOG, 0, run=run, planned=1.0, attempt=0) for run in "ab")
    found = Findings()
    check(found, {LOG: Extent(0, 1)}, [first, other, other], is_read_twice=noted)
    assert compared == [(first, None), (other, first), (other, other)]
    assert found.anomalies(exactly_once=False) == {"read twice": 2}


def test_duplicates_are_no_anomaly_where_a_query_writes_at_least_once() -> None:
    found = found_in_faults([*GOOD, GOOD[0]], EXTENTS)
    assert found["duplicated"] == 1
    assert not found.anomalies(exactly_once=False)
    assert found.anomalies() == {"duplicated": 1}


def test_few_examples_are_kept_of_many() -> None:
    found = found_in_faults([*GOOD, *GOOD], EXTENTS)
    assert (found["duplicated"], len(found.examples["duplicated"])) == (9, 5)
