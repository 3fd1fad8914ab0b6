"""The findings of a diagnosis, as values: one line each, with its remedy. Pure: no sockets, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

# Raised when a key is renamed or removed; keys that are added leave it as it is.
SCHEMA_VERSION = 1


class FindingStatus(Enum):
    """The status of one line of a diagnosis."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a diagnosis. Plain data: it travels from a worker to the driver as JSON.

    Attributes:
        step: the step that found it, as in `steps.STEPS`: "names", "tls", "rights" and others.
        status: ok; warning (it works now, and may not later); failed; skipped (it could not be judged, because
            something before it failed); unknown (it cannot be known without changing the cluster).
        text: what was found, as a sentence. No secret and no content of a record is in it.
        remedy: what to change, as an imperative sentence; empty if there is nothing to change.
        facts: the values that the text names, for programs: texts, numbers, lists.
        where: "driver", or "worker" and its host.
    """

    step: str
    status: FindingStatus
    text: str
    remedy: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    where: str = "driver"

    def to_json(self) -> dict[str, Any]:
        """Return the finding as values for JSON. Its keys are public."""
        return {
            "where": self.where,
            "step": self.step,
            "status": self.status.value,
            "text": self.text,
            "remedy": self.remedy,
            "facts": dict(self.facts),
        }

    @staticmethod
    def from_json(told: Mapping[str, Any]) -> Finding:
        """Return the finding of `to_json`."""
        return Finding(
            str(told["step"]),
            FindingStatus(told["status"]),
            str(told["text"]),
            str(told["remedy"]),
            dict(told["facts"]),
            str(told["where"]),
        )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings of one check, in the order in which they were found.

    Attributes:
        findings: the lines.
        elapsed_ms: how long it took.
    """

    findings: tuple[Finding, ...]
    elapsed_ms: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing failed and nothing had to be skipped."""
        return not any(finding.status in (FindingStatus.FAILED, FindingStatus.SKIPPED) for finding in self.findings)

    def of(self, step: str, *statuses: FindingStatus) -> list[Finding]:
        """Return the findings of one step, on the driver and on workers; with some statuses: only those."""
        return [
            finding
            for finding in self.findings
            if finding.step == step and (not statuses or finding.status in statuses)
        ]

    def counts(self) -> dict[FindingStatus, int]:
        """Return the number of findings by status."""
        counts = dict.fromkeys(FindingStatus, 0)
        for finding in self.findings:
            counts[finding.status] += 1
        return counts

    def to_json(self) -> dict[str, Any]:
        """Return everything as values for JSON. Its keys are public: docs/check.md."""
        return {
            "schema": SCHEMA_VERSION,
            "ok": self.ok,
            "elapsed_ms": self.elapsed_ms,
            "counts": {str(status): number for status, number in self.counts().items()},
            "findings": [finding.to_json() for finding in self.findings],
        }
