"""Reads files of a checkpoint for its verification: an unreadable file is a finding, not an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import QueryCheckpoint
    from pyspark_kafka._ops.operations.checkpoints.verify.findings import Findings, Severity

_T = TypeVar("_T")

# The file could not be read; its content is unknown.
_NOT_READ = ("CHECKPOINT_IO", "CHECKPOINT_FILE_TOO_LARGE", "CHECKPOINT_LOCATION_INVALID")
FROM_A_COPY = "Restore the file from a copy of the checkpoint."


class FileJudge:
    """Reads for the verification of a checkpoint, and notes unreadable files.

    Runs on: any program; methods block on the file system.

    Args:
        checkpoint: what is verified.
        findings: what was found is added here.
        report: told what is being done, for a step that takes a while.

    Attributes:
        checkpoint: what is verified.
        findings: what was found is added here.
        report: told what is being done.
    """

    def __init__(self, checkpoint: QueryCheckpoint, findings: Findings, report: Callable[[str], object]) -> None:
        self.checkpoint = checkpoint
        self.findings = findings
        self.report = report

    def attempt(self, name: str, severity: Severity | None, read: Callable[[], _T], advice: str = "") -> _T | None:
        """Return the result of a call that reads; None with a finding about the file if it fails.

        Args:
            name: of the file.
            severity: of the finding; None adds no finding.
            read: reads it.
            advice: what to do if the file is damaged; None: the advice of the error.
        """
        try:
            return read()
        except CheckpointError as error:
            if severity is not None:
                self._add(name, severity, error, advice)
            return None

    def _add(self, name: str, severity: Severity, error: CheckpointError, advice: str) -> None:
        if error.condition in _NOT_READ:
            self.findings.unknown.append(error.message)
            return
        if error.condition == "CHECKPOINT_VERSION":
            self.findings.add_finding(severity, "newer-version", name, error.message, error.hint)
            return
        if error.condition == "CHECKPOINT_REWIND_UNFINISHED":
            text = f"{error.message} No query starts here."
            self.findings.add_finding(severity, "unfinished-rewind", name, text, error.hint)
            return
        try:
            status = self.checkpoint.files.status(name)
        except CheckpointError:
            status = None
        empty = status is not None and status.size == 0
        text = f"The file is empty: it was cut short. {error.message}" if empty else error.message
        self.findings.add_finding(severity, "damaged", name, text, advice or error.hint)
