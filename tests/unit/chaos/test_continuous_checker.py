"""What the check of a killed query finds, of each kind of fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chaos.continuous.checker import (
    HELD_S,
    CommittedEpoch,
    FlowRecord,
    KillsFindings,
    RunCopy,
    WindowRow,
    check_counts,
    check_held,
    check_letters,
    check_runs,
    check_windows,
    check_withdrawn,
)
from chaos.continuous.faults import SlowLanes
from chaos.continuous.striking import WINDOW_MS, key_of, time_of
from chaos.ledger import Stamp
from kit.log_checker import Extent, Kind, Log

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


def test_counts_of_keys_are_those_of_the_log() -> None:
    # Keys are 0, 1, 0, 1, 0, 1.
    right = [replace(each, count=each.offset // 2 + 1) for each in copied("a", 1.0, *range(6))]
    other = replace(right[0], log=Log("gone", 0), count=9)
    found = found_in(right)
    check_counts(found, EXTENTS, [*right, other], 2)
    assert (found.counted, found.anomalies()) == (6, {})
    check_counts(found, EXTENTS, [replace(right[4], count=2), replace(right[5], count=None)], 2)
    assert found["miscounted"] == 2


def windows_of(offsets: range, late: set[int]) -> list[WindowRow]:
    """Return the output of a query that has read offsets, with the windows that have ended."""
    watermark = max(map(time_of, offsets)) - 1_000
    found: dict[tuple[str, int], list[int]] = {}
    output = []
    for offset in offsets:
        window = key_of(offset).decode(), time_of(offset) // WINDOW_MS * WINDOW_MS
        if offset in late:
            output.append(WindowRow(LOG, *window, 0, offset, "a"))
        else:
            found.setdefault(window, []).append(offset)
    return output + [
        WindowRow(LOG, *window, len(rows), sum(rows), "a")
        for window, rows in found.items()
        if window[1] + WINDOW_MS <= watermark
    ]


# Late rows of the first 1,000 records: every 23rd is behind by four windows, once there are such.
LATE = {offset for offset in range(1_000) if offset % 23 == 22 and offset > 500}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda output: output, None),
        (lambda output: output[:-1], "lost"),
        (lambda output: [*output, output[-1]], "duplicated"),
        (lambda output: [*output, output[0]], "duplicated"),
        (lambda output: [*output[:-1], replace(output[-1], rows=output[-1].rows + 1)], "wrong totals"),
        (lambda output: [*output[:-1], replace(output[-1], total=output[-1].total + 1)], "wrong totals"),
        # A late row that nobody has written.
        (lambda output: output[1:], "wrong totals"),
        # A late row that its window has as well.
        (lambda output: [*output, WindowRow(LOG, key_of(482).decode(), time_of(482) // 1_000 * 1_000, 0, 482, "a")],
         "wrong totals"),
        # A row on time.
        (lambda output: [*output, WindowRow(LOG, key_of(990).decode(), time_of(990) // 1_000 * 1_000, 0, 990, "a")],
         "misdirected"),
        # A window that has not ended.
        (lambda output: [*output, WindowRow(LOG, key_of(990).decode(), time_of(990) // 1_000 * 1_000, 1, 990, "a")],
         "wrong totals"),
        (lambda output: [*output, replace(output[0], log=Log("other", 0))], "never sent"),
    ],
)  # fmt: skip
def test_windows_are_compared_with_the_log(
    change: Callable[[list[WindowRow]], list[WindowRow]], kind: Kind | None
) -> None:
    extents = {LOG: Extent(0, 1_000, dict.fromkeys(range(1000), ""))}
    found = check_windows(extents, change(windows_of(range(1_000), LATE)), EPOCHS)
    assert found.late >= len(LATE) - 1 > 10
    assert found.windows > 50
    assert set(found.anomalies()) == (set() if kind is None else {kind}), found.examples


def test_windows_of_deleted_topics_are_left_out() -> None:
    output = [WindowRow(Log("gone", 0), "k1", 0, 3, 3, "a")]
    assert check_windows({}, output, EPOCHS, frozenset({"gone"})).anomalies() == {}
    assert check_windows({}, output, EPOCHS)["never sent"] == 1


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


def flowed(offset: int, *, lane: int = 0, out: int = 0, took: float = 0.1, **fields: Any) -> FlowRecord:
    """Return a record that was there to read at 100 s and some, and that a reader saw later."""
    made = FlowRecord(
        Log("in", lane),
        offset,
        out,
        run="a",
        planned=1.0,
        attempt=7,
        read_ms=100_000 + offset,
        seen_s=100 + offset / 1000 + took,
        is_poison=False,
        is_letter=False,
    )
    return replace(made, **fields)


def test_record_of_an_older_run_is_out_of_order_if_all_runs_keep_one() -> None:
    output = [*copied("a", 1.0, 0, 1, 2), *copied("b", 11.0, 4, 5), *copied("a", 1.0, 3)]
    assert found_in(output).anomalies() == {}
    assert found_in([replace(each, keeps_order=True) for each in output]).anomalies() == {"out of order": 1}


@pytest.mark.parametrize(
    ("is_poison", "is_letter", "misdirected"),
    [(False, False, 0), (True, True, 0), (True, False, 1), (False, True, 1)],
    ids=["good", "letter", "bad in the output", "good in the letters"],
)
def test_record_in_the_wrong_topic_is_counted(is_poison: bool, is_letter: bool, misdirected: int) -> None:
    found = KillsFindings()
    output = [flowed(0), flowed(1, is_poison=is_poison, is_letter=is_letter)]
    assert check_letters(found, output) == is_letter
    assert found["misdirected"] == misdirected


@pytest.mark.parametrize(
    ("lane", "out", "took", "held"),
    [
        (1, 1, HELD_S - 1, 0),
        (1, 1, HELD_S + 9, 1),
        (1, 1, HELD_S + 1, 0),
        (0, 1, HELD_S + 9, 0),
        (1, 0, HELD_S + 9, 0),
    ],
    ids=["quick", "held", "before the slow lane", "the slow lane", "an output of the slow lane"],
)
def test_healthy_lane_that_waits_for_a_slow_one_is_counted(lane: int, out: int, took: float, held: int) -> None:
    found = KillsFindings()
    slow = [SlowLanes(99.0, 100.0 + HELD_S + 5, "q", frozenset({0}), frozenset({0}))]
    longest = check_held(found, [flowed(0, lane=lane, out=out, took=took)], slow)
    assert found["held"] == held
    assert longest == pytest.approx(took if (lane, out) == (1, 1) else 0.0)


def test_record_that_was_seen_and_is_gone_is_withdrawn() -> None:
    found = KillsFindings()
    check_withdrawn(found, {("out", 0, 0): 1.0, ("out", 0, 1): 1.0}, {("out", 0, 0), ("out", 0, 2)})
    assert found.anomalies() == {"withdrawn": 1}


def test_lane_may_be_slow_while_no_other_one_is() -> None:
    found = KillsFindings()
    check_held(found, [flowed(0, lane=1, out=1, took=99.0)], [])
    assert found.anomalies() == {}


def test_record_that_contradicts_itself_cannot_be_read() -> None:
    said = ["a", 1.0, 7, "in", 0, 4, 100, "in/0/0/9"]
    made = FlowRecord.from_value(json.dumps(said).encode(), 2, 5.0, is_letter=False, keeps_order=True)
    assert (made.log, made.offset, made.out, made.read_ms) == (LOG, 4, 2, 100)
    said[4] = 1
    with pytest.raises(ValueError, match="was read from in-1"):
        FlowRecord.from_value(json.dumps(said).encode(), 2, 5.0, is_letter=False, keeps_order=True)


def test_dead_letters_keep_an_order_of_their_own() -> None:
    said = json.dumps(
        ["a", 1.0, 7, "in", 0, 4, 100, Stamp(LOG, 9, is_poison=True).to_value().decode("utf8", "surrogateescape")]
    )
    letter = FlowRecord.from_value(said.encode(), 2, 5.0, is_letter=True, keeps_order=True)
    assert letter.is_poison
    assert letter.out != 2
