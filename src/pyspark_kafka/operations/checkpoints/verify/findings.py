"""What a look at a checkpoint finds, as values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

# Findings of one kind that are kept one by one; a log of 100,000 damaged files says the same of each.
_MAX_OF_A_KIND = 20


class Severity(Enum):
    """How much a finding matters."""

    # A restart fails, loses records or writes some twice.
    FAULT = "fault"
    # Something is not as the query left it; a restart may be right all the same.
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class CheckpointFinding:
    """One finding.

    Attributes:
        severity: how much it matters.
        code: a short name of its kind, for programs.
        where: the file below the checkpoint, the topic-partition, the topic or the transactional id.
        text: what was found, and what it means.
        advice: what to do; empty if there is nothing to do.
    """

    severity: Severity
    code: str
    where: str
    text: str
    advice: str = ""


@dataclass(slots=True)
class Findings:
    """Findings in the order in which they were made, and what could not be found out.

    Attributes:
        unknown: sentences about what could not be found out, with the reason.
    """

    unknown: list[str] = field(default_factory=list)
    _kept: list[CheckpointFinding] = field(default_factory=list)
    _counts: dict[tuple[Severity, str], int] = field(default_factory=dict)

    def add(self, severity: Severity, code: str, where: str, text: str, advice: str = "") -> None:
        """Add a finding; of a kind that has many, only the first ones are kept, and the rest is counted."""
        key = severity, code
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] <= _MAX_OF_A_KIND:
            self._kept.append(CheckpointFinding(severity, code, where, text, advice))

    def extend(self, others: Iterable[CheckpointFinding]) -> None:
        """Add findings."""
        for each in others:
            self.add(each.severity, each.code, each.where, each.text, each.advice)

    def __iter__(self) -> Iterator[CheckpointFinding]:
        """Yield the findings, faults first; after them one for each kind of which some were left out."""
        order = list(Severity)
        yield from sorted(self._kept, key=lambda each: order.index(each.severity))
        for (severity, code), count in self._counts.items():
            if count > _MAX_OF_A_KIND:
                yield CheckpointFinding(severity, code, "", f"{count - _MAX_OF_A_KIND} more findings of this kind.")

    def count(self, severity: Severity) -> int:
        """Return how many findings of a severity there are, with those that are not kept one by one."""
        return sum(count for (each, _), count in self._counts.items() if each is severity)
