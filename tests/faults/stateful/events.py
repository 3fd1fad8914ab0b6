"""The records of stateful queries, and which of them the watermark must drop. Pure.

A micro-batch reads one step of event time: `STEP_S` seconds. Partition 0 is always on time. Partition 1 is in order as
well, but behind: a micro-batch reads from it the end of the step before, and from the fourth one on also records of
three steps before. These are late: the watermark is one of the whole topic, and partition 0 has moved it beyond them.

The margins are wide. In micro-batch `n` the watermark is `DELAY_S` behind the end of step `n - 1`; Spark judges late
rows by the one before. Records that are on time are above both, records that are late are below both.
"""

from __future__ import annotations

from dataclasses import dataclass

PARTITIONS = 2
STEP_S, WINDOW_S, DELAY_S, JOIN_S = 60, 20, 30, 20
# 2026-01-01T00:00:00Z, the start of a step and of a window.
BASE_S = 1_767_225_600
# Of each partition, in each micro-batch but the last.
RECORDS = 12
# Seconds of a step, of the partition that is on time: the last second is always there, and moves the watermark.
_ON_TIME_S = (0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 59)
_BEHIND_S = (45, 50, 55, 59)
_LATE_S = (0, 5, 10, 15)
_LATE_FROM = 3
# How many steps after its first record an id is forgotten: `dropDuplicatesWithinWatermark` lets it pass again.
_FORGOTTEN_AFTER = 3


@dataclass(frozen=True)
class Event:
    """One record.

    Attributes:
        batch: the micro-batch that reads it.
        partition: where it is.
        at_s: its timestamp, in seconds after `BASE_S`.
        name: of no other record of its topic; what the join looks for.
        id: may be that of another record: a duplicate.
        late: the watermark must drop it.
        again: it is a duplicate of a record of its own step or the one before, and must be dropped.
        last: it is read to move the watermark beyond all other records, and is itself never beyond it.
    """

    batch: int
    partition: int
    at_s: int
    name: str
    id: str
    late: bool = False
    again: bool = False
    last: bool = False

    @property
    def key(self) -> str:
        """Its group: one of three, or one of its own for the last records."""
        return "last" if self.last else f"k{self.at_s % 3}"

    @property
    def timestamp_ms(self) -> int:
        """Its timestamp, as Kafka keeps it."""
        return (BASE_S + self.at_s) * 1000

    @property
    def value(self) -> bytes:
        """Its value: name and id."""
        return f"{self.name},{self.id}".encode()


def watermark_ms(batch: int) -> int:
    """Return the watermark of a micro-batch, for those that are there before the last records are read."""
    return (BASE_S + (batch - 1) * STEP_S + _ON_TIME_S[-1] - DELAY_S) * 1000 if batch else 0


def left_events(batches: int) -> list[Event]:
    """Return the records of the topic that all queries read, in the order of each partition."""
    made: list[Event] = []
    for batch in range(batches):
        start = batch * STEP_S
        made += [
            Event(batch, 0, start + second, f"{batch}-on-{number}", f"{batch}-on-{number}")
            for number, second in enumerate(_ON_TIME_S)
        ]
        behind = _behind(batch, "left")
        made += behind
        others: list[tuple[str, bool]] = [(f"{batch}-on-2", True)]
        if batch:
            others.append((f"{batch - 1}-on-3", True))
        if batch >= _FORGOTTEN_AFTER:
            others.append((f"{batch - _FORGOTTEN_AFTER}-on-4", False))
        for number in range(RECORDS - len(behind)):
            name = f"{batch}-too-{number}"
            found, again = others[number] if number < len(others) else (name, False)
            made.append(Event(batch, 1, start + 20 + 2 * number, name, found, again=again))
    return made + _last(batches, "last")


def right_events(batches: int) -> list[Event]:
    """Return the records of the other topic of the joins: their names are those of records that they match.

    Some match within the micro-batch, some with the one before, in both directions. Some have a name that nobody has,
    or a time at which they do not match. The late ones would match if they were not dropped.
    """
    made: list[Event] = []
    for batch in range(batches):
        start = batch * STEP_S
        for number, second in enumerate(_ON_TIME_S):
            name = f"nobody-{batch}-{number}"
            if number % 2:
                name = f"{batch}-on-{number - 1}"
            elif number == 4:
                # That one comes 5 seconds after it.
                name = f"{batch}-on-5"
            elif number == 10:
                # Of the next micro-batch, 5 seconds before it.
                name = f"{batch + 1}-behind-0"
            made.append(Event(batch, 0, start + second, name, name))
        behind = _behind(batch, "right")
        made += behind
        made += [
            Event(batch, 1, start + 20 + 2 * number, f"nobody-{batch}-too-{number}", "")
            for number in range(RECORDS - len(behind))
        ]
    return made + _last(batches, "nobody-last")


def _behind(batch: int, side: str) -> list[Event]:
    """Return what partition 1 has of steps before."""
    late, behind = [], []
    if batch >= _LATE_FROM:
        step = batch - _LATE_FROM
        for number, second in enumerate(_LATE_S):
            name = f"{batch}-late-{number}" if side == "left" else f"{step}-on-1"
            late.append(Event(batch, 1, step * STEP_S + second, name, f"{batch}-late-{number}", late=True))
    if batch:
        step = batch - 1
        matches = [f"{step}-on-{number}" for number in (9, 7, 8, 11)]
        for number, second in enumerate(_BEHIND_S):
            name = f"{batch}-behind-{number}" if side == "left" else matches[number]
            behind.append(Event(batch, 1, step * STEP_S + second, name, f"{batch}-behind-{number}"))
    return late + behind


def _last(batches: int, name: str) -> list[Event]:
    at_s = (batches + 10) * STEP_S
    return [
        Event(batches, number, at_s, f"{name}-{number}", f"{name}-{number}", last=True) for number in range(PARTITIONS)
    ]
