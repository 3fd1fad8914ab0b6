"""The findings of a verification, as values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

# The maximum of single findings of one kind; a log may have 100,000 damaged files.
_MAX_OF_A_KIND = 20


class Severity(Enum):
    """The severity of a finding."""

    # A restart fails, loses records or writes records twice.
    FAULT = "fault"
    # A file is not as the query left it; a restart may still be correct.
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class CheckpointFinding:
    """One finding.

    Attributes:
        severity: its severity.
        code: a short name of its kind, for programs.
        where: the file below the checkpoint, the topic-partition, the topic or the transactional id.
        text: the finding, and its meaning.
        advice: the next step; empty if nothing is to be done.
    """

    severity: Severity
    code: str
    where: str
    text: str
    advice: str = ""


@dataclass(slots=True)
class Findings:
    """Findings in their order, and unknown values.

    Attributes:
        unknown: sentences about unknown values, with the reason.
    """

    unknown: list[str] = field(default_factory=list)
    _kept: list[CheckpointFinding] = field(default_factory=list)
    _counts: dict[tuple[Severity, str], int] = field(default_factory=dict)

    def add_finding(self, severity: Severity, code: str, where: str, text: str, advice: str = "") -> None:
        """Add a finding; of a kind with many findings only the first ones are kept, and the others are counted."""
        key = severity, code
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] <= _MAX_OF_A_KIND:
            self._kept.append(CheckpointFinding(severity, code, where, text, advice))

    def extend(self, others: Iterable[CheckpointFinding]) -> None:
        """Add findings."""
        for each in others:
            self.add_finding(each.severity, each.code, each.where, each.text, each.advice)

    def __iter__(self) -> Iterator[CheckpointFinding]:
        """Yield the findings, faults first; after them one for each kind with further findings."""
        order = list(Severity)
        yield from sorted(self._kept, key=lambda each: order.index(each.severity))
        for (severity, code), count in self._counts.items():
            if count > _MAX_OF_A_KIND:
                yield CheckpointFinding(severity, code, "", f"{count - _MAX_OF_A_KIND} more findings of this kind.")

    def count(self, severity: Severity) -> int:
        """Return the number of findings with a severity, including findings that were only counted."""
        return sum(count for (each, _), count in self._counts.items() if each is severity)
