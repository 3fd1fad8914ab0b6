"""Verifies a checkpoint by its files alone: whether a restart can read them, and whether they are consistent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark_kafka._ops.operations.checkpoints.batches import COMMITS, OFFSETS, is_batch_name
from pyspark_kafka._ops.operations.checkpoints.forking.state_files import judge_state, version_of
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import CheckpointKind
from pyspark_kafka._ops.operations.checkpoints.verify.checksums import compare_checksum
from pyspark_kafka._ops.operations.checkpoints.verify.file_judge import FROM_A_COPY, FileJudge
from pyspark_kafka._ops.operations.checkpoints.verify.findings import Severity
from pyspark_kafka._ops.operations.checkpoints.verify.log_checks import LogChecks
from pyspark_kafka._ops.operations.checkpoints.verify.state_checks import check_states_of_epoch
from pyspark_kafka.checkpoint.continuous_files import MESSAGES, VERSIONS
from pyspark_kafka.errors import CheckpointError, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import QueryCheckpoint
    from pyspark_kafka._ops.operations.checkpoints.verify.findings import Findings
    from pyspark_kafka.checkpoint.files import DirectoryNames

_STATE_FROM_A_COPY = "Restore the whole directory state from the same copy as the logs."
# Next to the versions, in the directory of a state.
_OF_ROCKSDB = ("SSTs", "logs")


def check_files(
    checkpoint: QueryCheckpoint,
    findings: Findings,
    *,
    max_batches: int | None = None,
    report: Callable[[str], object] = str,
) -> None:
    """Add the faults of a checkpoint's files.

    Runs on: any program; reads every file of the logs, or the last ones; blocks on the file system.

    Args:
        checkpoint: the checkpoint.
        findings: the findings are added here.
        max_batches: the maximum number of batches to read, the last ones; None for all.
        report: called with the current step, if it takes a while.
    """
    judge = FileJudge(checkpoint, findings, report)
    _FileChecks(judge, max_batches).run()
    LogChecks(judge).run(max_batches)


class _FileChecks:
    def __init__(self, judge: FileJudge, max_batches: int | None) -> None:
        self._judge = judge
        self._max_batches = max_batches
        self._checkpoint = judge.checkpoint
        self._history = judge.checkpoint.history
        self._files = judge.checkpoint.files
        self._findings = judge.findings
        self._report = judge.report

    def run(self) -> None:
        self._check_single_files()
        self._check_state()
        self._check_directories()

    def _check_single_files(self) -> None:
        """Read everything except the logs, each file by the code that reads it in a restart."""
        checkpoint, attempt = self._checkpoint, self._judge.attempt
        attempt("metadata", Severity.FAULT, self._check_metadata)
        for source in attempt("sources", Severity.FAULT, checkpoint.sources) or ():
            # Read until batch 0 is finished.
            needed = Severity.WARNING if self._history.finished else Severity.FAULT
            place = f"sources/{source}"
            attempt(f"{place}/0", needed, partial(checkpoint.initial_offsets, source))
            attempt(f"{place}/topic-ids", Severity.FAULT, partial(checkpoint.topic_ids, source))
            attempt(f"{place}/reader-schemas", Severity.FAULT, partial(checkpoint.reader_schemas, source))
        attempt("sink/schemas", Severity.FAULT, checkpoint.sink_schemas)
        attempt("continuous/transactions", Severity.FAULT, checkpoint.lane_record)
        if attempt(OFFSETS, None, checkpoint.kind) is CheckpointKind.CONTINUOUS:
            self._check_epochs()

    def _check_metadata(self) -> None:
        if self._checkpoint.query_id() is None:
            self._findings.add_finding(
                Severity.FAULT,
                "no-query-id",
                "metadata",
                "There is no file metadata. A restart makes another query id, so an exactly-once sink takes the query "
                "for another one.",
                FROM_A_COPY,
            )

    def _check_epochs(self) -> None:
        """Read the start of a continuous query: the versions of states, and the epoch that it commits again."""
        checkpoint, attempt = self._checkpoint, self._judge.attempt
        done, last = self._history.last_finished, self._history.last_begun
        if done is not None:
            attempt(f"{VERSIONS}/{done}", Severity.FAULT, partial(checkpoint.check_state_versions, done))
            check_states_of_epoch(self._judge, done)
        if last is None or last == done:
            return
        name = attempt(f"{OFFSETS}/{last}", None, lambda: checkpoint.messages_of(last)) or f"{MESSAGES}/{last}"
        # None if it cannot be read, which is a finding of its own.
        are_kept = attempt(name, Severity.FAULT, lambda: checkpoint.prepared_epoch(last) is not None)
        if are_kept is not False:
            return
        # A running query marks an epoch as finished before it removes the messages.
        if attempt(COMMITS, None, lambda: self._files.status(f"{COMMITS}/{last}") is None):
            self._findings.add_finding(
                Severity.FAULT,
                "no-messages",
                name,
                f"Epoch {last} has begun and is not finished, and its commit messages are gone: a continuous query "
                "refuses to start.",
                "Restore the checkpoint from a copy; or run the query once with trigger(availableNow=True), which runs "
                "the epoch again: a sink that is not idempotent may then have rows of it twice.",
            )

    def _check_state(self) -> None:
        """Check that each partition of a state has the version that a restart loads."""
        last = self._history.last_finished
        if last is None or "state" not in self._checkpoint.names.directories:
            return
        for operator in self._directories("state"):
            place = f"state/{operator}"
            stores: dict[str, list[str]] = {}
            for partition in self._directories(place):
                if is_batch_name(partition):
                    stores |= self._stores(f"{place}/{partition}")
            if any(stores.values()):
                for store, names in stores.items():
                    self._check_store(store, names, last + 1)
            elif stores:
                self._findings.add_finding(
                    Severity.WARNING,
                    "state-empty",
                    place,
                    "No partition has a version of the state: it was dropped, or its files were removed. If the query "
                    "has this operator, a restart fails.",
                    _STATE_FROM_A_COPY,
                )

    def _directories(self, place: str) -> list[str]:
        names = self._judge.attempt(place, Severity.FAULT, partial(self._files.scan, place))
        return [] if names is None else sorted(names.directories)

    def _stores(self, place: str) -> dict[str, list[str]]:
        """Return the version files of a state's partition, by directory."""
        names = self._judge.attempt(place, Severity.FAULT, lambda: self._files.scan(place))
        if names is None:
            return {}
        if not names.complete:
            self._add_not_complete(place, names)
            return {}
        versions = [name for name in names.files if version_of(name) is not None]
        # Joins keep several stores in a partition, each in a directory of its own.
        inner = [name for name in sorted(names.directories) if not name.startswith("_") and name not in _OF_ROCKSDB]
        if versions or not inner:
            return {place: versions}
        return {store: found for name in inner for store, found in self._stores(f"{place}/{name}").items()}

    def _check_store(self, place: str, names: Sequence[str], needed: int) -> None:
        newest = max((number for name in names if (number := version_of(name)) is not None), default=None)
        restart = f"a restart loads version {needed}, which batch {needed - 1} has written, and fails without it."
        if newest is None:
            code, text = "state-missing", f"There is no version of the state; {restart}"
        elif newest < needed:
            code, text = "state-behind", f"The newest version of the state is {newest}; {restart}"
        elif judge_state([f"{place}/{name}" for name in names], needed).missing:
            code = "state-incomplete"
            text = (
                f"Version {needed} of the state is not whole: there is no snapshot of a version up to it with all "
                f"changes since then; {restart}"
            )
        else:
            return
        self._findings.add_finding(Severity.FAULT, code, place, text, _STATE_FROM_A_COPY)

    def _check_directories(self) -> None:
        """Check hidden files: checksums, which must match, and temporary files."""
        sources = self._judge.attempt("sources", None, self._checkpoint.sources) or ()
        for directory in ("", OFFSETS, COMMITS, MESSAGES, VERSIONS, *(f"sources/{source}" for source in sources)):
            names = self._judge.attempt(directory or ".", Severity.WARNING, partial(self._files.scan, directory))
            if names is not None:
                self._check_hidden(directory, names)
                if not names.complete:
                    self._add_not_complete(directory or ".", names)

    def _add_not_complete(self, directory: str, names: DirectoryNames) -> None:
        self._findings.unknown.append(
            f"The directory {directory} has more than {len(names.files):,} files; only these were looked at."
        )

    def _check_hidden(self, directory: str, names: DirectoryNames) -> None:
        prefix = f"{directory}/" if directory else ""
        known, unread = set(names.files), self._unread(directory)
        for number, name in enumerate(sorted(names.hidden)):
            if number % 1000 == 0:
                self._report(f"Comparing checksums in {directory or '.'}, {number} of {len(names.hidden)}")
            if name.endswith(".crc"):
                target = name[1:].removesuffix(".crc")
                if target in unread:
                    continue
                if target in known:
                    self._check_checksum(prefix, target, name)
                elif not target.startswith("."):
                    self._findings.add_finding(
                        Severity.WARNING,
                        "checksum-alone",
                        f"{prefix}{name}",
                        f"The checksum of {target} is there, and the file is not. A new file of this name, written by "
                        "another program than Spark, would not match it.",
                        "Remove the checksum.",
                    )
            elif name.endswith(".tmp"):
                target = name[1:].partition(".")[0]
                raced = target in known and bool(directory)
                self._findings.add_finding(
                    Severity.WARNING if raced else Severity.NOTE,
                    "two-writers" if raced else "temporary",
                    f"{prefix}{name}",
                    f"A file that was being written as {prefix}{target} was left behind"
                    + (
                        f", and {prefix}{target} is there as well: a program died just after, or two programs wrote it."
                        if raced
                        else ": a program died while it wrote, or is writing now. No restart reads it."
                    ),
                    "Make sure that only one query uses this checkpoint. Remove the file when no query runs.",
                )
        if directory in (OFFSETS, COMMITS):
            strange = sorted(name for name in names.files if not is_batch_name(name))
            if strange:
                self._findings.add_finding(
                    Severity.NOTE,
                    "other-files",
                    directory,
                    f"Files that are not batches: {listed(strange, noun='files')}. Restarts do not read them.",
                )

    def _unread(self, directory: str) -> set[str]:
        """Return the files of a log that belong to older batches than requested, and are not read."""
        if self._max_batches is None or directory not in (OFFSETS, COMMITS):
            return set()
        numbers = self._history.begun if directory == OFFSETS else self._history.finished
        return {str(number) for number in numbers[: -self._max_batches]}

    def _check_checksum(self, prefix: str, target: str, name: str) -> None:
        try:
            data, checksum = self._files.read(f"{prefix}{target}"), self._files.read(f"{prefix}{name}")
        except CheckpointError as error:
            self._findings.unknown.append(error.message)
            return
        if data is None or checksum is None:
            return
        wrong = compare_checksum(data, checksum)
        if wrong:
            needed = not prefix or not is_batch_name(target) or int(target) in self._history.begun[-2:]
            self._findings.add_finding(
                Severity.FAULT if needed else Severity.WARNING,
                "checksum",
                f"{prefix}{target}",
                f"The file does not match its checksum {name}: {wrong}. It was changed without the checksum, or is "
                "damaged. Spark refuses to read it.",
                f"If the file was changed on purpose, remove {prefix}{name}; otherwise restore both from a copy.",
            )
