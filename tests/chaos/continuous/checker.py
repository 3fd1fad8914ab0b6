"""What a continuous query has written, against its source and its checkpoint. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from kit.log_checker import Copied, Extent, Findings, Log, check

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence


@dataclass(frozen=True, kw_only=True)
class RunCopy(Copied):
    """A record of the output.

    Attributes:
        run: of the engine, which wrote it.
        planned: when the start of that run was known, in seconds.
        attempt: Spark's task attempt.
    """

    run: str
    planned: float
    attempt: int

    @property
    def writer(self) -> Hashable:
        """The task attempt of its run."""
        return self.run, self.attempt


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
    ends: Mapping[Log, int]


@dataclass
class KillsFindings(Findings):
    """What was found in the output of a query that was killed.

    Attributes:
        runs: of the engine, that have written something.
    """

    runs: int = 0


def check_runs(
    extents: Mapping[Log, Extent],
    output: Sequence[RunCopy | bytes],
    epochs: Sequence[CommittedEpoch],
    deleted: frozenset[str] = frozenset(),
) -> KillsFindings:
    """Compare.

    Args:
        extents: of each partition of the source.
        output: in the order of each partition of the output.
        epochs: of the checkpoint, by number, all of them.
        deleted: topics that are gone: nobody can know what was left unread.
    """
    planned = {each.run: each.planned for each in output if isinstance(each, RunCopy)}
    committed = {run: _committed_before(epochs, moment) for run, moment in planned.items()}

    def is_read_twice(copied: RunCopy, before: RunCopy | None) -> bool:
        of_the_same = before is not None and before.writer == copied.writer
        return of_the_same or copied.offset < committed[copied.run].get(copied.log, 0)

    found = KillsFindings(runs=len(planned))
    _check_epochs(found, epochs, deleted)
    check(found, extents, output, is_gone=lambda log: log.topic in deleted, is_read_twice=is_read_twice)
    return found


def _check_epochs(found: Findings, epochs: Sequence[CommittedEpoch], deleted: frozenset[str]) -> None:
    for number, epoch in enumerate(epochs):
        if epoch.number != number:
            found.note("gaps", f"epoch {number} is missing before {epoch.number}")
            return
    for before, after in pairwise(epochs):
        for log, end in before.ends.items():
            if log.topic not in deleted and after.ends.get(log, -1) < end:
                found.note("gaps", f"epoch {after.number} ends at {after.ends.get(log)} in {log}, after {end}")


def _committed_before(epochs: Sequence[CommittedEpoch], moment: float) -> Mapping[Log, int]:
    return next((epoch.ends for epoch in reversed(epochs) if epoch.at < moment), {})
