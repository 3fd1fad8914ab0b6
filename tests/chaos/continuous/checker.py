"""What a continuous query has written, against its source and its checkpoint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from chaos.continuous.faults import SlowLanes
from chaos.continuous.striking import DELAY_MS, WINDOW_MS, key_of, time_of
from chaos.ledger import Stamp
from kit.checkpoint_files import batches_of, end_of_batch
from kit.log_checker import Copied, Extent, Findings, Log, check

_LETTERS = 1000
# After two epochs a lane that is held up commits on its own, and then after each: a second and a half. The rest is what
# a busy machine takes; a lane that waits for a slow one waits for 20 s.
HELD_S = 12.0


@dataclass(frozen=True, kw_only=True)
class RunCopy(Copied):
    """A record of the output.

    Attributes:
        run: of the engine, which wrote it.
        planned: when the start of that run was known, in seconds.
        attempt: Spark's task attempt.
        keeps_order: whether all runs together keep an order, as with exactly once.
        count: the number of records of its key so far, if the query counts.
    """

    run: str
    planned: float
    attempt: int
    keeps_order: bool = False
    count: int | None = None

    @property
    def writer(self) -> Hashable:
        """The task attempt of its run; None if all runs keep an order together."""
        return None if self.keeps_order else (self.run, self.attempt)


@dataclass(frozen=True, kw_only=True)
class FlowRecord(RunCopy):
    """A record of a query on the cluster in motion.

    Attributes:
        read_ms: when brokers took it into the source.
        seen_s: when it could be read in the output.
        is_poison: whether it cannot be read as text.
        is_letter: whether it came out as a dead letter.
    """

    read_ms: int
    seen_s: float
    is_poison: bool
    is_letter: bool

    @classmethod
    def from_value(cls, value: bytes, out: int, seen_s: float, *, is_letter: bool, keeps_order: bool) -> FlowRecord:
        """Read an output record.

        Raises:
            ValueError: it is none, or what it says of its source contradicts itself.
        """
        run, planned, attempt, topic, partition, offset, read_ms, text = json.loads(value)
        stamp = Stamp.from_value(text)
        if (stamp.log.topic, stamp.log.partition) != (topic, partition):
            raise ValueError(f"{stamp} was read from {topic}-{partition}")
        return cls(
            stamp.log,
            offset,
            # The partitions of two topics keep an order each.
            out + _LETTERS * is_letter,
            run=run,
            planned=planned,
            attempt=attempt,
            keeps_order=keeps_order,
            read_ms=read_ms,
            seen_s=seen_s,
            is_poison=stamp.is_poison,
            is_letter=is_letter,
        )


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


def epochs_of(checkpoint: Path) -> list[CommittedEpoch]:
    """Read the epochs of a checkpoint that are committed."""
    return [
        CommittedEpoch(
            epoch,
            (checkpoint / "commits" / str(epoch)).stat().st_mtime,
            {
                Log(topic, partition): end
                for topic, ends in end_of_batch(checkpoint, epoch).items()
                for partition, end in ends.items()
            },
        )
        for epoch in batches_of(checkpoint, "commits")
    ]


@dataclass
class KillsFindings(Findings):
    """What was found in the output of a query that was killed.

    Attributes:
        runs: of the engine, that have written something.
        letters: dead letters.
        counted: records whose count was compared.
        windows: rows of windows that were compared.
        late: rows that came as late ones.
        longest_held: in seconds, the longest time that a record of a lane took while another lane was slow.
    """

    runs: int = 0
    letters: int = 0
    counted: int = 0
    windows: int = 0
    late: int = 0
    longest_held: float = 0.0


def check_runs(
    extents: Mapping[Log, Extent],
    output: Sequence[RunCopy | bytes],
    epochs: Sequence[CommittedEpoch],
    deleted: frozenset[str] = frozenset(),
    is_gone: Callable[[Log], bool] | None = None,
) -> KillsFindings:
    """Compare.

    Args:
        extents: of each partition of the source.
        output: in the order of each partition of the output.
        epochs: of the checkpoint, by number, all of them.
        deleted: topics that are gone, or were recreated: nobody can know what was left unread.
        is_gone: tells which logs are gone; without it those of `deleted`.
    """
    planned = {each.run: each.planned for each in output if isinstance(each, RunCopy)}
    committed = {run: _committed_before(epochs, moment) for run, moment in planned.items()}

    def is_read_twice(copied: RunCopy, before: RunCopy | None) -> bool:
        of_the_same = before is not None and before.writer == copied.writer
        return of_the_same or copied.offset < committed[copied.run].get(copied.log, 0)

    found = KillsFindings(runs=len(planned))
    _check_epochs(found, epochs, deleted)
    check(found, extents, output, is_gone=is_gone or (lambda log: log.topic in deleted), is_read_twice=is_read_twice)
    return found


def check_counts(
    found: KillsFindings, extents: Mapping[Log, Extent], output: Iterable[RunCopy | bytes], keys: int
) -> None:
    """Find records whose count is not the number of records of their key in the log up to them.

    Args:
        found: gets them.
        extents: of each partition of the source, with its values.
        output: in any order; records of logs that are gone are left out.
        keys: the key of a record is the rest of its offset by this number.
    """
    wanted: dict[Log, dict[int, int]] = {}
    for log, extent in extents.items():
        counts: Counter[int] = Counter()
        wanted[log] = {}
        for offset in sorted(extent.offsets):
            counts[offset % keys] += 1
            wanted[log][offset] = counts[offset % keys]
    for copied in output:
        if isinstance(copied, RunCopy) and (count := wanted.get(copied.log, {}).get(copied.offset)) is not None:
            found.counted += 1
            if copied.count != count:
                found.note("miscounted", f"{copied}, and its count is {count}")


@dataclass(frozen=True)
class WindowRow:
    """A record of the output of a query with windows.

    Attributes:
        log: where its rows were read.
        key: of the rows.
        start_ms: of the window.
        rows: how many the window has; 0 for a late row.
        total: the sum of the offsets.
        run: of the engine, which wrote it.
    """

    log: Log
    key: str
    start_ms: int
    rows: int
    total: int
    run: str

    @classmethod
    def from_value(cls, value: bytes) -> WindowRow:
        """Read an output record."""
        run, _, _, topic, partition, key, start_ms, rows, total = json.loads(value)
        return cls(Log(topic, partition), key, start_ms, rows, total, run)


def check_windows(
    extents: Mapping[Log, Extent],
    output: Sequence[WindowRow],
    epochs: Sequence[CommittedEpoch],
    deleted: frozenset[str] = frozenset(),
) -> KillsFindings:
    """Compare windows: each that has ended is there once, with all rows of the log but those that came as late ones.

    Args:
        extents: of each partition of the source, with its values.
        output: in any order; windows of logs that are gone are left out.
        epochs: of the checkpoint, by number, all of them.
        deleted: topics that are gone.
    """
    found = KillsFindings(records=len(output), runs=len({each.run for each in output}))
    _check_epochs(found, epochs, deleted)
    by_log: dict[Log, list[WindowRow]] = {log: [] for log in extents}
    for each in output:
        if each.log in by_log:
            by_log[each.log].append(each)
        elif each.log.topic not in deleted:
            found.note("never sent", str(each))
    for log, extent in extents.items():
        _check_windows_of_log(found, sorted(extent.offsets), by_log[log])
    return found


def _check_windows_of_log(found: KillsFindings, offsets: Sequence[int], output: Sequence[WindowRow]) -> None:
    found.expected += len(offsets)
    watermark = 0
    # A row is late only if the rows before it have ended its window; whether it is, depends on the batch that it is in.
    can_be_late: dict[int, bool] = {}
    on_time: dict[tuple[str, int], set[int]] = {}
    for offset in offsets:
        start_ms = time_of(offset) // WINDOW_MS * WINDOW_MS
        can_be_late[offset] = start_ms + WINDOW_MS <= watermark
        on_time.setdefault((key_of(offset).decode(), start_ms), set()).add(offset)
        watermark = max(watermark, time_of(offset) - DELAY_MS)
    seen: set[int] = set()
    for each in output:
        if each.rows:
            continue
        found.late += 1
        if each.total in seen:
            found.note("duplicated", f"late {each}")
        elif each.total not in on_time.get((each.key, each.start_ms), ()):
            found.note("never sent", f"late {each}")
        elif not can_be_late[each.total]:
            found.note("misdirected", f"late {each}")
        seen.add(each.total)
        on_time.get((each.key, each.start_ms), set()).discard(each.total)
    wanted = {
        (*window, len(rows), sum(rows))
        for window, rows in on_time.items()
        if rows and window[1] + WINDOW_MS <= watermark
    }
    windows = Counter((each.key, each.start_ms, each.rows, each.total) for each in output if each.rows)
    found.windows += windows.total()
    there = {window[:2] for window in windows}
    for window in sorted(wanted - windows.keys()):
        if window[:2] not in there:
            found.note("lost", f"window {window}", window[2])
    for window, times in sorted(windows.items()):
        if window not in wanted:
            found.note("wrong totals", f"window {window}, and the log has {sorted(on_time.get(window[:2], ()))}")
        if times > 1:
            found.note("duplicated", f"window {window}", times - 1)


def check_letters(found: Findings, output: Iterable[RunCopy | bytes]) -> int:
    """Find records that are dead letters and should be none, or the other way round; return the number of letters."""
    letters = 0
    for copied in output:
        if isinstance(copied, FlowRecord):
            letters += copied.is_letter
            if copied.is_letter != copied.is_poison:
                found.note("misdirected", str(copied))
    return letters


def check_withdrawn(
    found: Findings, seen: Collection[tuple[str, int, int]], there: Collection[tuple[str, int, int]]
) -> None:
    """Find records, by topic, partition and offset, that a reader saw meanwhile and that are not there at the end."""
    for topic, partition, offset in sorted(set(seen) - set(there)):
        found.note("withdrawn", f"{topic}-{partition} {offset}")


def check_held(found: Findings, output: Iterable[RunCopy | bytes], slow: Sequence[SlowLanes]) -> float:
    """Find records of healthy lanes that waited for a slow one; return the longest time that one took.

    Args:
        found: gets them.
        output: in any order.
        slow: of the query that wrote it.
    """
    longest = 0.0
    for copied in output:
        if not isinstance(copied, FlowRecord) or copied.is_letter:
            continue
        for each in slow:
            read_s = copied.read_ms / 1000
            is_healthy = copied.log.partition not in each.partitions and copied.out not in each.outs
            if is_healthy and each.begin <= read_s <= each.end:
                longest = max(longest, copied.seen_s - read_s)
                # One that came through while the lane was still slow did not wait for it.
                if copied.seen_s - read_s > HELD_S and copied.seen_s >= each.end:
                    found.note("held", f"{copied.seen_s - read_s:.1f} s: {copied}")
    return longest


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
