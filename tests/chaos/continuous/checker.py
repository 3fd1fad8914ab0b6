"""What a continuous query has written, against its source and its checkpoint. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SHOWN = 5
Place = tuple[str, int]


@dataclass(frozen=True)
class Copied:
    """A record of the output.

    Attributes:
        run: of the engine, which wrote it.
        planned: when the start of that run was known, in seconds.
        attempt: Spark's task attempt.
        place: topic and partition where it was read.
        offset: its offset there.
        value: its value there.
        out: the partition of the output.
    """

    run: str
    planned: float
    attempt: int
    place: Place
    offset: int
    value: str
    out: int


@dataclass(frozen=True)
class CommittedEpoch:
    """An epoch of the checkpoint.

    Attributes:
        number: of it.
        at: when the commit log had it, in seconds.
        ends: where it ends.
    """

    number: int
    at: float
    ends: Mapping[Place, int]


@dataclass
class KillsReport:
    """What was found.

    Attributes:
        sent: records of the source that are to be in the output.
        written: records of the output that a reader of committed records sees.
        runs: runs of the engine that have written something.
        repeated: records of the output that were there already; every time after the first counts.
        lost: records of the source that are not in the output.
        damaged: records with another value than that of the source, or that the source does not have.
        disordered: records that one attempt wrote after a later one of the same topic-partition.
        unallowed: repeated records of which the checkpoint said, when their run began, that they were written.
        gaps: epochs that are missing in the checkpoint, or end before the one before.
        examples: some of each, for people.
    """

    sent: int = 0
    written: int = 0
    runs: int = 0
    repeated: int = 0
    lost: int = 0
    damaged: int = 0
    disordered: int = 0
    unallowed: int = 0
    gaps: int = 0
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def anomalies(self, *, exactly_once: bool) -> dict[str, int]:
        """Return what is not 0 and should be."""
        names = ["lost", "damaged", "disordered", "unallowed", "gaps", *(["repeated"] if exactly_once else [])]
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    def note(self, kind: str, what: str) -> None:
        """Count one, and keep some as examples."""
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.examples[kind]) < _SHOWN:
            self.examples[kind].append(what)


def check(
    source: Mapping[Place, Mapping[int, str]],
    output: Iterable[Copied],
    epochs: Iterable[CommittedEpoch],
    vanished: frozenset[str] = frozenset(),
) -> KillsReport:
    """Compare.

    Args:
        source: the values of each partition of the source by offset, at the end.
        output: in the order of each partition of the output.
        epochs: of the checkpoint, by number, all of them.
        vanished: topics that were deleted: nobody can know what was left unread.
    """
    report = KillsReport(sent=sum(map(len, source.values())))
    epochs = list(epochs)
    _check_epochs(report, epochs, vanished)
    times: Counter[tuple[Place, int]] = Counter()
    last: dict[tuple[str, int, Place, int], int] = {}
    begun: dict[tuple[str, Place], int] = {}
    runs: dict[str, float] = {}
    for each in output:
        report.written += 1
        runs[each.run] = each.planned
        what = f"{each.place[0]}-{each.place[1]} offset {each.offset} of run {each.run}"
        if each.place[0] not in vanished and source.get(each.place, {}).get(each.offset) != each.value:
            report.note("damaged", what)
        times[each.place, each.offset] += 1
        if times[each.place, each.offset] > 1:
            report.note("repeated", what)
        lane = (each.run, each.attempt, each.place, each.out)
        if last.get(lane, -1) >= each.offset:
            report.note("disordered", f"{what} behind {last[lane]}")
        last[lane] = max(last.get(lane, -1), each.offset)
        key = (each.run, each.place)
        begun[key] = min(begun.get(key, each.offset), each.offset)
    report.runs = len(runs)
    for (run, place), first in begun.items():
        committed = _committed_before(epochs, runs[run]).get(place, 0)
        if first < committed:
            report.unallowed += committed - first - 1
            report.note("unallowed", f"run {run} began {place} at {first}, and {committed} was committed")
    for place, records in source.items():
        for offset in records:
            if not times[place, offset]:
                report.note("lost", f"{place[0]}-{place[1]} offset {offset}")
    return report


def _check_epochs(report: KillsReport, epochs: list[CommittedEpoch], vanished: frozenset[str]) -> None:
    for number, epoch in enumerate(epochs):
        if epoch.number != number:
            report.note("gaps", f"epoch {number} is missing before {epoch.number}")
            return
    for before, after in pairwise(epochs):
        for place, end in before.ends.items():
            if place[0] not in vanished and after.ends.get(place, -1) < end:
                report.note("gaps", f"epoch {after.number} ends at {after.ends.get(place)} in {place}, after {end}")


def _committed_before(epochs: list[CommittedEpoch], moment: float) -> Mapping[Place, int]:
    found: Mapping[Place, int] = {}
    for epoch in epochs:
        if epoch.at < moment:
            found = epoch.ends
    return found
