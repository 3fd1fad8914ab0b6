"""What the queries on the cluster in motion wrote, and which duplicates they may write. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from chaos.ledger import Stamp
from kit.log_checker import Copied, Findings


@dataclass(frozen=True, kw_only=True)
class TaskCopy(Copied):
    """A record of an output, and what it says of its task; see `driver.SAYS`.

    Attributes:
        read_ms: when brokers took it into the source.
        batch_ms: the time of its micro-batch, by which that is known.
        task: the number of its task.
        attempt: which attempt of the task.
        row: what tells it from other rows of that attempt.
        written_s: when brokers took it into the output.
    """

    read_ms: int
    batch_ms: int
    task: int
    attempt: str
    row: str
    written_s: float

    @property
    def writer(self) -> Hashable:
        """Its attempt of its task: two of them write side by side."""
        return self.batch_ms, self.task, self.attempt

    @classmethod
    def from_value(cls, value: bytes, written_ms: int, out: int = 0) -> TaskCopy:
        """Read an output record.

        Raises:
            ValueError: it is none, or what it says of its source contradicts itself.
        """
        topic, partition, offset, read_ms, batch_ms, task, attempt, row, stamp = value.decode(
            errors="surrogateescape"
        ).split("|")
        log = Stamp.from_value(stamp).log
        if (log.topic, log.partition) != (topic, int(partition)):
            raise ValueError(f"{stamp} was read from {topic}-{partition}")
        return cls(
            log,
            int(offset),
            out,
            read_ms=int(read_ms),
            batch_ms=int(batch_ms),
            task=int(task),
            attempt=attempt,
            row=row,
            written_s=written_ms / 1000,
        )


def is_read_twice(copied: TaskCopy, before: TaskCopy | None) -> bool:
    """Return whether the source gave a record in two micro-batches, in two tasks, or twice in an attempt of one.

    The other duplicates were written by two attempts of one task, or twice by one, as at least once allows.
    """
    if before is None:
        return False
    if before.writer == copied.writer:
        return before.row != copied.row
    return (before.batch_ms, before.task) != (copied.batch_ms, copied.task)


def check_totals(
    counts: Iterable[tuple[int, int, int]], wanted: Mapping[tuple[int, int], int], closed_before: int
) -> Findings:
    """Compare the output of the query that counts.

    Args:
        counts: window, partition and count.
        wanted: the true count of each window and partition.
        closed_before: windows before it must be there; of later ones those that are there must be right.
    """
    found = Findings()
    seen: dict[tuple[int, int], int] = {}
    for window, partition, count in counts:
        found.records += 1
        known = seen.setdefault((window, partition), count)
        if known != count:
            found.note("wrong totals", f"window {window}, partition {partition}: {known}, and then {count}")
    for window, partition in sorted(seen.keys() | {key for key in wanted if key[0] < closed_before}):
        count, true = seen.get((window, partition), 0), wanted.get((window, partition), 0)
        if count != true:
            text = f"window {window}, partition {partition}: {count} instead of {true}"
            found.note("wrong totals", text)
            found.note("lost" if count < true else "read twice", text, abs(true - count))
    return found
