"""A summary of a checkpoint: its query, and its last batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka._ops.operations.checkpoints.batches import COMMITS, OFFSETS, rows_between
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark_kafka._base.offsets import KafkaSourceOffset
    from pyspark_kafka._ops.operations.checkpoints.batches import PlannedBatch
    from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import (
        CheckpointKind,
        QueryCheckpoint,
        StateOperator,
    )

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """One batch; of a continuous query, an epoch.

    Attributes:
        batch_id: its number.
        finished: whether the commit log has it.
        planned_at_ms: the time of its plan, milliseconds since 1970-01-01 UTC; None if the checkpoint lacks it.
        finished_at_ms: the time of its file of the commit log; None if it is not finished, or if the file was copied:
            a copy of a checkpoint has the time of the copy.
        watermark_ms: the watermark of the batch; None if it had no watermark.
        offsets_by_topic: the number of its offsets of each topic, an upper bound of the records; partitions with an
            unknown start are left out. None if the start of the batch is not known.
        new_partitions: the number of partitions that it reads for the first time.
        problem: the reason why the batch cannot be read; empty if it can.
        moved: whether a fork or a rewind has written it: it reads nothing, and the query continues from its end.
    """

    batch_id: int
    finished: bool
    planned_at_ms: int | None = None
    finished_at_ms: int | None = None
    watermark_ms: int | None = None
    offsets_by_topic: Mapping[str, int] | None = None
    new_partitions: int = 0
    problem: str = ""
    moved: bool = False

    @property
    def offsets(self) -> int | None:
        """Return the number of its offsets; None if its start is not known."""
        return None if self.offsets_by_topic is None else sum(self.offsets_by_topic.values())

    @property
    def took_ms(self) -> int | None:
        """Return the time from its plan to its end; None if one of the two times is not known."""
        if self.planned_at_ms is None or self.finished_at_ms is None:
            return None
        return self.finished_at_ms - self.planned_at_ms


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """One source of the query.

    Attributes:
        source: its name.
        other: the text of its offset, if it is another program's source; None if it is a Kafka source.
        position: the end of the last finished batch; None without a finished batch, or if it is not a Kafka source.
        end: the end of the unfinished batch; None without an unfinished batch.
        spaced: whether the offsets have blanks, as Python data sources write them; None if the offsets do not show it.
        topic_ids: the ids of topics that the source keeps.
    """

    source: str
    other: str | None
    position: KafkaSourceOffset | None
    end: KafkaSourceOffset | None
    spaced: bool | None
    topic_ids: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DirectorySummary:
    """The contents of a checkpoint's directory, without its subdirectories.

    Attributes:
        directory: below the checkpoint; "." is the checkpoint itself.
        files: the number of files.
        checksums: the number of Hadoop's checksum files.
        temporary: the number of other hidden files: files that are being written, or were left over.
        directories: the number of directories.
    """

    directory: str
    files: int
    checksums: int
    temporary: int
    directories: int


@dataclass(frozen=True, slots=True)
class CheckpointSummary:
    """The query of a checkpoint, and its batches.

    Attributes:
        location: its location, without passwords.
        query_id: the id of the query; None if the checkpoint has none.
        kind: the program that wrote the last batch; None if the batch cannot be read.
        begun: the number of batches in the offset log.
        finished: the number of batches in the commit log.
        first: the first batch of the offset log; None if it is empty.
        last_begun: the last batch of the offset log; None if it is empty.
        last_finished: the last batch in both logs; None if no batch is in both.
        sources: the sources of the query, as far as a batch names them.
        batches: the requested batches, oldest first.
        states: the stateful operators.
        prepared_epochs: the epochs with kept commit messages.
        owner: the start of a continuous query that writes the checkpoint; empty if no continuous query wrote it.
        transactions: prefix of the transactional ids, group and number of lanes of an exactly-once continuous query, as
            text; empty if it never was one.
        problems: the unreadable parts, one sentence each.
        not_whole: the step that is necessary before a query starts here, because a fork, a rewind or a restore was
            interrupted; empty if none was.
    """

    location: str
    query_id: str | None
    kind: CheckpointKind | None
    begun: int
    finished: int
    first: int | None
    last_begun: int | None
    last_finished: int | None
    sources: tuple[SourceSummary, ...]
    batches: tuple[BatchSummary, ...]
    states: tuple[StateOperator, ...]
    prepared_epochs: tuple[int, ...]
    owner: str
    transactions: str
    problems: tuple[str, ...]
    not_whole: str = ""

    @property
    def unfinished(self) -> int | None:
        """Return the last batch if it is not finished."""
        return self.last_begun if self.last_begun != self.last_finished else None


def read_summary(
    checkpoint: QueryCheckpoint, *, max_batches: int | None = 10, report: Callable[[str], object] = str
) -> CheckpointSummary:
    """Summarize a checkpoint; an unreadable file is a problem in the summary, not an error.

    Runs on: any program; reads the last batches; blocks on the file system.

    Args:
        checkpoint: the checkpoint to read.
        max_batches: the maximum number of batches to read, the last ones; None for all.
        report: called with the name of the current step, if a step takes a while.
    """
    return _Account(checkpoint, report).build(max_batches)


def list_directories(checkpoint: QueryCheckpoint) -> tuple[tuple[DirectorySummary, ...], tuple[str, ...]]:
    """Return the contents of a checkpoint's directory and its direct subdirectories, by one listing each.

    Returns:
        The directories, and sentences about unlistable directories.
    """
    found, problems = [], []
    for directory in ("", *sorted(checkpoint.names.directories)):
        try:
            names = checkpoint.files.scan(directory) if directory else checkpoint.names
        except CheckpointError as error:
            problems.append(error.message)
            continue
        checksums = sum(name.endswith(".crc") for name in names.hidden)
        found.append(
            DirectorySummary(
                directory or ".",
                len(names.files),
                checksums,
                len(names.hidden) - checksums,
                len(names.directories),
            )
        )
    return tuple(found), tuple(problems)


class _Account:
    def __init__(self, checkpoint: QueryCheckpoint, report: Callable[[str], object]) -> None:
        self._checkpoint = checkpoint
        self._history = checkpoint.history
        self._report = report
        self._problems: dict[str, None] = {}
        self._not_whole = ""

    def build(self, max_batches: int | None) -> CheckpointSummary:
        checkpoint, history = self._checkpoint, self._history
        record = self._try(checkpoint.lane_record)
        wanted = history.begun if max_batches is None else history.begun[-max_batches:] if max_batches else ()
        return CheckpointSummary(
            location=checkpoint.location,
            query_id=self._try(checkpoint.query_id),
            kind=self._try(checkpoint.kind),
            begun=len(history.begun),
            finished=len(history.finished),
            first=history.begun[0] if history.begun else None,
            last_begun=history.last_begun,
            last_finished=history.last_finished,
            sources=self._sources(),
            batches=self._batches(wanted),
            states=self._try(checkpoint.state_operators) or (),
            prepared_epochs=self._try(checkpoint.prepared_epochs) or (),
            owner=self._owner(),
            transactions=""
            if record is None
            else f"transactional ids {record.prefix}-0 to -{record.lanes - 1}, consumer group {record.group_id}",
            # Last: what the fields above could not read.
            problems=tuple(self._problems),
            not_whole=self._not_whole,
        )

    def _try(self, read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except CheckpointError as error:
            self._problems[error.message] = None
            if error.condition == "CHECKPOINT_REWIND_UNFINISHED":
                self._not_whole = error.hint
            return None

    def _owner(self) -> str:
        try:
            return self._checkpoint.owner() or ""
        except CheckpointError as error:
            self._problems[error.message] = None
            return ""

    def _sources(self) -> tuple[SourceSummary, ...]:
        finished = self._try(self._checkpoint.last_finished)
        last = self._try(self._checkpoint.last_begun)
        shown = last or finished
        position = self._try(self._checkpoint.position) or {}
        found = []
        for name, end in ({} if shown is None else shown.ends).items():
            text = end.text or ""
            spaced = (": " in text) if end.offset is not None and ":" in text else None
            ids = self._try(partial(self._checkpoint.topic_ids, name))
            found.append(
                SourceSummary(
                    name,
                    end.text if end.is_other else None,
                    position.get(name),
                    None if last is None or last.finished else last.offsets.get(name),
                    spaced,
                    {} if ids is None else ids.ids,
                )
            )
        return tuple(found)

    def _batches(self, wanted: Sequence[int]) -> tuple[BatchSummary, ...]:
        found: list[BatchSummary] = []
        if not wanted:
            return ()
        start = self._try(partial(self._checkpoint.start_of, wanted[0]))
        for place, batch_id in enumerate(wanted):
            if place % 1000 == 0:
                self._report(f"Reading batch {batch_id}, {place} of {len(wanted)}")
            try:
                batch = self._history.get(batch_id)
            except CheckpointError as error:
                self._problems[error.message] = None
                found.append(BatchSummary(batch_id, self._history.is_finished(batch_id), problem=error.message))
                start = None
                continue
            if batch is None:
                # Removed since the log was listed.
                start = None
                continue
            account = self._one(batch, start)
            if found and account.planned_at_ms is not None:
                found[-1] = _without_later_end(found[-1], account.planned_at_ms)
            found.append(account)
            start = batch.offsets
        return tuple(found)

    def _one(self, batch: PlannedBatch, start: Mapping[str, KafkaSourceOffset] | None) -> BatchSummary:
        by_topic: Counter[str] | None = Counter() if start or batch.is_moved else None
        new = 0
        for source, end in ({} if batch.is_moved else batch.offsets).items():
            # The end of the first batch may carry where it begins.
            begin = end.starts if start is not None and source not in start else None
            if begin is None and start is not None and source in start:
                begin = start[source].partitions
            if begin is None or by_topic is None:
                continue
            for topic_partition, rows in rows_between(begin, end.partitions).items():
                by_topic[topic_partition.topic] += rows
            new += sum(topic_partition not in begin for topic_partition in end.partitions)
        finished_at = self._try(partial(self._history.written_ms, batch.batch_id, COMMITS)) if batch.finished else None
        planned_at = batch.planned_at_ms or self._try(partial(self._history.written_ms, batch.batch_id, OFFSETS))
        account = BatchSummary(
            batch.batch_id,
            batch.finished,
            planned_at,
            finished_at,
            batch.watermark_ms,
            None if by_topic is None else dict(by_topic),
            new,
            moved=batch.is_moved,
        )
        return account if (account.took_ms or 0) >= 0 else replace(account, finished_at_ms=None)


def _without_later_end(account: BatchSummary, next_planned_ms: int) -> BatchSummary:
    """Return an account without an end after the plan of the next batch, which Spark makes after that end."""
    if account.finished_at_ms is None or account.finished_at_ms <= next_planned_ms + _CLOCKS_DIFFER_MS:
        return account
    return replace(account, finished_at_ms=None)


# File systems have clocks of their own.
_CLOCKS_DIFFER_MS = 5_000
