"""Verifies the logs of a checkpoint: their numbers, each of their files, and each batch against its predecessor."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark_kafka._ops.operations.checkpoints.batches import COMMITS, OFFSETS, batch_numbers
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import CheckpointKind
from pyspark_kafka._ops.operations.checkpoints.verify.file_judge import FROM_A_COPY
from pyspark_kafka._ops.operations.checkpoints.verify.findings import Severity
from pyspark_kafka.errors import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._ops.operations.checkpoints.batches import PlannedBatch
    from pyspark_kafka._ops.operations.checkpoints.verify.file_judge import FileJudge


class LogChecks:
    """Verifies the logs.

    Args:
        judge: reads the files.
    """

    def __init__(self, judge: FileJudge) -> None:
        self._judge = judge
        self._checkpoint = judge.checkpoint
        self._history = judge.checkpoint.history
        self._findings = judge.findings
        self._report = judge.report
        # The values of the last batch of the log, if it can be read.
        self._kind = judge.attempt(OFFSETS, None, judge.checkpoint.kind) or CheckpointKind.EMPTY

    def run(self, max_batches: int | None) -> None:
        """Add the faults.

        Args:
            max_batches: the maximum number of batches to read, the last ones; None for all.
        """
        self._check_numbers()
        self._check_batches(self._history.begun if max_batches is None else self._history.begun[-max_batches:])
        self._check_commits(self._history.finished if max_batches is None else self._history.finished[-max_batches:])
        self._check_still()

    def _check_numbers(self) -> None:
        """Compare the numbers of the batches in both logs; no file is read."""
        begun, finished = self._history.begun, self._history.finished
        known, done = set(begun), set(finished)
        first = begun[0] if begun else None
        orphans = [each for each in finished if each not in known]
        purged = {each for each in orphans if first is not None and each < first}
        self._add_numbers(
            Severity.NOTE,
            "purge-not-finished",
            COMMITS,
            sorted(purged),
            "finished, with their offsets removed already",
            "Old batches are removed from one log after the other.",
        )
        self._add_numbers(
            Severity.FAULT,
            "finished-without-offsets",
            COMMITS,
            [each for each in orphans if each not in purged],
            "finished without a file in offsets",
            "Their ends are unknown.",
            "Restore the files of offsets from a copy; or fork the checkpoint at a batch that both logs have.",
        )
        last = self._history.last_finished
        if last is not None:
            between = [
                each for each in begun if each < last and each not in done and each >= (finished[0] if finished else 0)
            ]
            passed = {each for each in between if self._is_passed_over(each)}
            self._add_numbers(
                Severity.NOTE,
                "passed-over",
                OFFSETS,
                sorted(passed),
                "begun and not finished when a rewind moved the query",
                "No restart runs them again.",
            )
            self._add_numbers(
                Severity.WARNING,
                "not-finished-between",
                OFFSETS,
                [each for each in between if each not in passed],
                "begun and not finished, although later ones are",
                "A restart does not run them again.",
                "Compare what the sink has of them, if files of commits were not removed by hand.",
            )
        self._check_open_end([each for each in begun if each > (-1 if last is None else last)])
        self._check_gaps(begun)

    def _is_passed_over(self, batch_id: int) -> bool:
        name = f"{OFFSETS}/{batch_id}"
        return bool(self._judge.attempt(name, None, partial(self._history.is_passed_over, batch_id)))

    def _check_open_end(self, unfinished: Sequence[int]) -> None:
        if len(unfinished) < 2:
            return
        if self._kind is CheckpointKind.SPARK_CONTINUOUS or self._is_asynchronous():
            self._add_numbers(
                Severity.NOTE,
                "several-unfinished",
                OFFSETS,
                unfinished,
                "begun and not noted as finished",
                "A query whose progress is written late may have run them.",
            )
            return
        self._add_numbers(
            Severity.FAULT,
            "several-unfinished",
            OFFSETS,
            unfinished,
            "begun and not finished",
            f"A restart runs only {unfinished[-1]} again: what the others read may be missing in the sink.",
            "If the sink lacks them, fork the checkpoint at the last finished batch; otherwise nothing.",
        )

    def _is_asynchronous(self) -> bool:
        """Return whether both logs skip the same numbers, as with asynchronous progress tracking."""
        begun, finished = self._history.begun, self._history.finished
        return len(finished) > 1 and _has_gaps(begun) and _has_gaps(finished)

    def _check_gaps(self, begun: Sequence[int]) -> None:
        if not begun or not _has_gaps(begun):
            return
        gaps = [(a + 1, b - 1) for a, b in pairwise(begun) if b != a + 1]
        asynchronous = self._is_asynchronous()
        self._findings.add_finding(
            Severity.NOTE if asynchronous else Severity.WARNING,
            "gap",
            OFFSETS,
            f"Batches are missing between {begun[0]} and {begun[-1]}: "
            f"{listed(gaps, lambda gap: str(gap[0]) if gap[0] == gap[1] else f'{gap[0]} to {gap[1]}', noun='gaps')}. "
            + (
                "Both logs skip them, as a query with asynchronous progress tracking does."
                if asynchronous
                else "Files were removed, or a copy is not complete."
            ),
        )
        if not asynchronous and self._kind is CheckpointKind.MICRO_BATCH and begun[-1] - 1 not in begun[-2:]:
            self._findings.add_finding(
                Severity.FAULT,
                "no-second-last",
                f"{OFFSETS}/{begun[-1] - 1}",
                f"The batch before the last one, {begun[-1]}, is missing. Spark reads where the last batch begins from "
                "it, and does not start without it.",
                "Restore the file from a copy, or fork the checkpoint.",
            )

    def _add_numbers(
        self,
        severity: Severity,
        code: str,
        where: str,
        numbers: Sequence[int],
        kind: str,
        effect: str,
        advice: str = "",
    ) -> None:
        if numbers:
            # A list behind a colon reads well with one number, too.
            text = f"Batches {kind}: {listed(numbers, noun='batches')}. {effect}"
            self._findings.add_finding(severity, code, where, text, advice)

    def _check_batches(self, wanted: Sequence[int]) -> None:
        before: PlannedBatch | None = None
        moved: list[int] = []
        forms: dict[bool, int] = defaultdict(int)
        # A restart reads the last batch, and the one before it for its start.
        needed = set(self._history.begun[-2:])
        for place, batch_id in enumerate(wanted):
            if place % 1000 == 0:
                self._report(f"Reading {OFFSETS}/{batch_id}, {place} of {len(wanted)} batches")
            name = f"{OFFSETS}/{batch_id}"
            severity = Severity.FAULT if batch_id in needed else Severity.WARNING
            batch = self._judge.attempt(name, severity, partial(self._history.get, batch_id), self._advice(batch_id))
            if batch is None:
                # Damaged, or removed since it was listed.
                before = None
                continue
            if batch.is_moved:
                moved.append(batch_id)
            for end in () if batch.is_moved else batch.ends.values():
                if end.offset is not None and end.text and ":" in end.text:
                    forms[": " in end.text] += 1
            if before is not None:
                self._compare(before, batch)
            before = batch
        self._add_numbers(
            Severity.NOTE,
            "moved",
            OFFSETS,
            moved,
            "written by a fork or a rewind",
            "They moved the query to where they end, and read nothing.",
        )
        if len(forms) > 1 and self._kind is CheckpointKind.MICRO_BATCH:
            self._findings.add_finding(
                Severity.NOTE,
                "both-connectors",
                OFFSETS,
                f"Spark's own connector and pyspark-kafka have both run this query: {forms[False]} offsets have the "
                f"form of Spark's, and {forms[True]} pyspark-kafka's. Each continues where the other has stopped.",
            )

    def _advice(self, batch_id: int) -> str:
        if batch_id != self._history.last_begun:
            return FROM_A_COPY
        if self._history.is_finished(batch_id):
            return f"{FROM_A_COPY} Without one, fork the checkpoint at the batch before it."
        return (
            f"{FROM_A_COPY} Without one, and if nothing of the batch is in the sink, remove the file and its .crc: the "
            "batch is planned again, with other ends."
        )

    def _compare(self, before: PlannedBatch, batch: PlannedBatch) -> None:
        name = f"{OFFSETS}/{batch.batch_id}"
        # Sources with names of their own may come and go: Spark continues the others.
        if any(source.isdigit() for source in before.ends.keys() ^ batch.ends.keys()):
            self._findings.add_finding(
                Severity.WARNING,
                "other-sources",
                name,
                f"Batch {batch.batch_id} has {len(batch.ends)} sources, and batch {before.batch_id} has "
                f"{len(before.ends)}: the query was changed, or two queries write this checkpoint.",
                "Use one checkpoint for each query.",
            )
        for source, end in batch.offsets.items():
            start = before.offsets.get(source)
            if start is None:
                continue
            positions, ends = start.partitions, end.partitions
            if positions == ends:
                continue
            back = [each for each, offset in ends.items() if offset < positions.get(each, 0) and not batch.is_moved]
            if back:
                self._findings.add_finding(
                    Severity.WARNING,
                    "backwards",
                    name,
                    f"Batch {batch.batch_id} ends before it begins in {listed(back, noun='partitions')} "
                    f"({back[0]}: from {positions[back[0]]} to {ends[back[0]]}): the topic was recreated and read from "
                    "its beginning, or two queries write this checkpoint.",
                    "If the topic was not recreated, records were read twice: use one checkpoint for each query.",
                )
            gone = [each for each in positions if each not in ends]
            if gone:
                self._findings.add_finding(
                    Severity.WARNING,
                    "partitions-gone",
                    name,
                    f"Batch {batch.batch_id} does not name {listed(gone, noun='partitions')} any more: a topic was "
                    "deleted, or the subscription was changed. If they come back, they are read from their beginning.",
                )
        earlier, later = before.planned_at_ms, batch.planned_at_ms
        if earlier is not None and later is not None and later < earlier:
            self._findings.add_finding(
                Severity.NOTE,
                "time-backwards",
                name,
                f"Batch {batch.batch_id} was planned {earlier - later} ms before batch {before.batch_id}: the clock of "
                "a driver was set back, or two drivers write this checkpoint.",
            )

    def _check_commits(self, wanted: Sequence[int]) -> None:
        for place, batch_id in enumerate(wanted):
            if place % 1000 == 0:
                self._report(f"Reading {COMMITS}/{batch_id}, {place} of {len(wanted)} batches")
            name = f"{COMMITS}/{batch_id}"
            last = batch_id == self._history.finished[-1]
            advice = (
                "Remove the file and its .crc: the batch is run again, with the same ends. With a sink that is not "
                "idempotent, its rows are written twice."
                if last and batch_id == self._history.last_begun
                else FROM_A_COPY
            )
            severity = Severity.FAULT if last else Severity.WARNING
            self._judge.attempt(name, severity, partial(self._history.get_commit, batch_id), advice)

    def _check_still(self) -> None:
        """Record a finding if the checkpoint was written to since it was listed."""
        names = self._judge.attempt(OFFSETS, None, lambda: self._checkpoint.files.scan(OFFSETS))
        if names is not None and batch_numbers(names) != self._history.begun:
            self._findings.add_finding(
                Severity.NOTE,
                "in-use",
                OFFSETS,
                "Batches were begun or removed while the checkpoint was read: the query runs. Temporary files and an "
                "unfinished batch are then as they should be.",
            )


def _has_gaps(numbers: Sequence[int]) -> bool:
    return bool(numbers) and numbers[-1] - numbers[0] + 1 != len(numbers)
