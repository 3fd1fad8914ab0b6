"""What the queries wrote against what there was to read. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chaos.ledger import Extent, Log, Stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SHOWN = 5


@dataclass(frozen=True)
class Copied:
    """A record of an output, and what it says; see `driver.SAYS`.

    Attributes:
        log: where it was read, by what the record said of itself when it was first written.
        offset: where it was read there.
        read_ms: when brokers took it into the source.
        batch_ms: the time of its micro-batch, by which that is known.
        task: the number of its task.
        attempt: which attempt of the task.
        row: what tells it from other rows of that attempt.
        written_s: when brokers took it into the output.
    """

    log: Log
    offset: int
    read_ms: int
    batch_ms: int
    task: int
    attempt: str
    row: str
    written_s: float

    @classmethod
    def from_value(cls, value: bytes, written_ms: int) -> Copied:
        """Read an output record.

        Raises:
            ValueError: it is none, or what it says of its source contradicts itself.
        """
        topic, partition, offset, read_ms, batch_ms, task, attempt, row, stamp = value.decode().split("|")
        log = Stamp.from_value(stamp).log
        if (log.topic, log.partition) != (topic, int(partition)):
            raise ValueError(f"{stamp} was read from {topic}-{partition}")
        return cls(log, int(offset), int(read_ms), int(batch_ms), int(task), attempt, row, written_ms / 1000)


@dataclass
class Findings:
    """What came of one query; what is not only counted should be 0.

    Attributes:
        records: in the output.
        lost: offsets that are not there and should be.
        duplicated: records after the first of their offset.
        read_twice: of those, the ones that the source gave twice: in two micro-batches, in two tasks of one, or twice
            in one attempt of a task. The rest was written by two attempts of one task, as at least once allows.
        unreadable: records of the output that are none.
        wrong_totals: windows with another count than the source has.
        examples: some of each, for people.
    """

    records: int = 0
    lost: int = 0
    duplicated: int = 0
    read_twice: int = 0
    unreadable: int = 0
    wrong_totals: int = 0
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, what: str, text: str) -> None:
        """Keep an example."""
        kept = self.examples.setdefault(what, [])
        if len(kept) < _SHOWN:
            kept.append(text)


def check_copies(copies: Iterable[Copied], extents: Mapping[Log, Extent]) -> Findings:
    """Compare the output of a query that copies records."""
    found = Findings()
    first: dict[Log, dict[int, Copied]] = defaultdict(dict)
    for copied in copies:
        found.records += 1
        known = first[copied.log].setdefault(copied.offset, copied)
        if known is copied:
            continue
        found.duplicated += 1
        found.note("duplicated", f"{known} and {copied}")
        rerun = known.batch_ms == copied.batch_ms and known.task == copied.task and known.attempt != copied.attempt
        written_twice = known.attempt == copied.attempt and known.row == copied.row
        if not rerun and not written_twice:
            found.read_twice += 1
            found.note("read twice", f"{known} and {copied}")
    for log, extent in sorted(extents.items()):
        if extent.gone:
            continue
        missing = [offset for offset in range(extent.start, extent.end) if offset not in first[log]]
        found.lost += len(missing)
        if missing:
            found.note("lost", f"{log}: {len(missing)} of [{extent.start}, {extent.end}), such as {missing[:10]}")
    return found


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
            found.wrong_totals += 1
            found.note("wrong totals", f"window {window}, partition {partition}: {known}, and then {count}")
    for window, partition in sorted(seen.keys() | {key for key in wanted if key[0] < closed_before}):
        count, true = seen.get((window, partition), 0), wanted.get((window, partition), 0)
        if count != true:
            found.wrong_totals += 1
            found.lost += max(0, true - count)
            found.read_twice += max(0, count - true)
            found.note("wrong totals", f"window {window}, partition {partition}: {count} instead of {true}")
    return found
