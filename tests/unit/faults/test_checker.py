"""The check of the fault tests notices every kind of damage."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from faults.checker import Planned, check_batches
from faults.stamped import Stamped, from_value, generate, to_value
from kit.log_checker import Extent, Kind, Log

Visible = dict[int, list[bytes]]
Markers = list[tuple[int, int]]


def values(start: int, end: int, partition: int = 0, run: str = "r") -> list[bytes]:
    return [to_value(Log(run, partition), offset, random.Random(0)) for offset in range(start, end)]


EXTENTS = {Log("r", 0): Extent(0, 6), Log("r", 1): Extent(0, 4)}
PLANNED = {0: Planned({0: (0, 3), 1: (0, 4)}), 1: Planned({0: (3, 6)})}


def good() -> tuple[Visible, Markers]:
    return {0: values(0, 6), 1: values(0, 4, partition=1)}, [(0, 7), (1, 3)]


def lose(visible: Visible, _: Markers) -> None:
    del visible[0][2]


def duplicate(visible: Visible, _: Markers) -> None:
    visible[0] += visible[0][3:6]


def duplicate_elsewhere(visible: Visible, _: Markers) -> None:
    visible[1].append(visible[0][5])


def invent(visible: Visible, _: Markers) -> None:
    visible[1] += values(4, 5, partition=1)


def mix_in_another_run(visible: Visible, _: Markers) -> None:
    visible[1] += values(0, 1, partition=1, run="other")


def flip_a_bit(visible: Visible, _: Markers) -> None:
    visible[0][1] = bytes([visible[0][1][0] ^ 1]) + visible[0][1][1:]


def swap(visible: Visible, _: Markers) -> None:
    visible[0][0], visible[0][1] = visible[0][1], visible[0][0]


def lose_a_marker(_: Visible, markers: Markers) -> None:
    del markers[1]


def lose_all_records_of_a_batch(visible: Visible, _: Markers) -> None:
    del visible[0][3:]


def mark_twice(_: Visible, markers: Markers) -> None:
    markers.append((1, 3))


def mark_an_unknown_batch(_: Visible, markers: Markers) -> None:
    markers.append((9, 0))


def miscount(_: Visible, markers: Markers) -> None:
    markers[1] = (1, 4)


def test_nothing_is_reported_where_all_is_well() -> None:
    visible, markers = good()
    found = check_batches(EXTENTS, visible, planned=PLANNED, markers=markers, seen_before={0: visible[0][:2]})
    assert (found.expected, found.records, found.batches) == (10, 10, 2)
    assert not found.anomalies()
    assert not found.examples


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lose, {"lost": 1, "torn": 1}),
        (duplicate, {"duplicated": 3, "torn": 1}),
        (duplicate_elsewhere, {"duplicated": 1, "torn": 1}),
        (invent, {"never sent": 1}),
        (mix_in_another_run, {"never sent": 1}),
        (flip_a_bit, {"damaged": 1, "lost": 1, "torn": 1}),
        (swap, {"out of order": 1}),
        (lose_a_marker, {"torn": 1}),
        (lose_all_records_of_a_batch, {"lost": 3, "torn": 1}),
        (mark_twice, {"torn": 1}),
        (mark_an_unknown_batch, {"torn": 1}),
        (miscount, {"torn": 1}),
    ],
)
def test_damage_is_reported_by_its_name(damage: Callable[[Visible, Markers], None], expected: dict[Kind, int]) -> None:
    visible, markers = good()
    damage(visible, markers)
    found = check_batches(EXTENTS, visible, planned=PLANNED, markers=markers)
    assert found.anomalies() == expected
    assert set(found.examples) == set(expected)


def test_a_record_that_was_seen_and_is_gone_is_reported() -> None:
    visible, markers = good()
    seen = {1: [*visible[1], *values(9, 10, partition=1)]}
    assert check_batches(EXTENTS, visible, planned=PLANNED, markers=markers, seen_before=seen).anomalies() == {
        "withdrawn": 1
    }


def test_a_value_gives_its_stamp_back_and_another_value_none() -> None:
    made = generate("r", {0: range(5), 1: range(3, 6)}, seed=1)
    assert [from_value(value) for _, value in made[1]] == [Stamped(Log("r", 1), offset) for offset in range(3, 6)]
    assert made == generate("r", {0: range(5), 1: range(3, 6)}, seed=1)
    assert made != generate("r", {0: range(5), 1: range(3, 6)}, seed=2)
    whole = made[0][0][1]
    damaged = [
        whole[:-1],
        whole[1:],
        b"",
        b"\xff",
        b"a|b|c|d|e",
        whole.replace(b"r|0|0", b"r|0|1"),
        whole + b"#",
        whole + b"#x",
    ]
    assert [from_value(value) for value in damaged] == [None] * len(damaged)


def by_task(*tasks_and_ranges: tuple[int, int, int]) -> list[bytes]:
    return [
        value + f"#{task}".encode()
        for task, start, end in tasks_and_ranges
        for value in values(start, end, partition=0)
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(by_task((1, 2, 3), (0, 0, 2), (0, 3, 6)), {}, id="one task before another"),
        pytest.param(by_task((0, 1, 3), (0, 0, 1), (0, 3, 6)), {"out of order": 1}, id="within a task"),
        pytest.param(by_task((0, 0, 2), (0, 3, 6), (1, 2, 3)), {"out of order": 1}, id="between micro-batches"),
    ],
)
def test_tasks_that_publish_keep_an_order_each_and_micro_batches_one_together(
    written: list[bytes], expected: dict[Kind, int]
) -> None:
    planned = {0: Planned({0: (0, 3)}), 1: Planned({0: (3, 6)})}
    found = check_batches({Log("r", 0): Extent(0, 6)}, {0: written}, planned=planned, markers=[(0, 3), (1, 3)])
    assert found.anomalies() == expected
