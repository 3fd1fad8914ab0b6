"""The records that a query has copied, compared with the logs that it has read. Pure.

One vocabulary for all programs that kill queries or the cluster under them:

| Kind | What is counted |
| --- | --- |
| lost | offsets that must be in the output and are not |
| duplicated | records after the first of their offset |
| read twice | records that the source gave again though nothing that had failed made it necessary |
| out of order | records after one with a higher offset of the same log, by one writer in one output partition |
| never sent | records with an offset that the log does not have |
| damaged | records that cannot be parsed, or with another value than the log has |
| withdrawn | records that a reader saw meanwhile, and that are not there at the end |
| torn | micro-batches of which the commit markers and the records do not agree |
| gaps | epochs that are missing in the checkpoint, or that end before the one before |
| wrong totals | windows with another count than the log has |
| misdirected | good records in the dead letters, and bad ones in the output; rows on time among the late ones |
| held | records of a lane that waited for another, slow one |
| miscounted | records with another number of records of their key so far than the log has |

The last seven are counted by the programs that know of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

Kind = Literal[
    "lost",
    "duplicated",
    "read twice",
    "out of order",
    "never sent",
    "damaged",
    "withdrawn",
    "torn",
    "gaps",
    "wrong totals",
    "misdirected",
    "held",
    "miscounted",
]
_SHOWN = 5


@dataclass(frozen=True, order=True)
class Log:
    """A topic-partition. A recreated topic is another one, of the next incarnation."""

    topic: str
    partition: int
    incarnation: int = 0

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"{self.topic}-{self.partition}{f' (incarnation {self.incarnation})' if self.incarnation else ''}"


@dataclass(frozen=True)
class Extent:
    """Which records of a log every query must have read.

    Attributes:
        start: the first offset; those before were deleted while a query may not have read them.
        end: the first offset after the last one.
        values: by offset; None if outputs do not have them.
    """

    start: int = 0
    end: int = 0
    values: Mapping[int, str] | None = None

    @property
    def offsets(self) -> Collection[int]:
        """The offsets that must be in the output."""
        return range(self.start, self.end) if self.values is None else self.values.keys()

    def fault_of(self, copied: Copied) -> Kind | None:
        """Return what is wrong with a record that says that it was read here; None if nothing is."""
        if self.values is None:
            return None if copied.offset < self.end else "never sent"
        if copied.offset not in self.values:
            return "never sent"
        return None if self.values[copied.offset] == copied.value else "damaged"


@dataclass(frozen=True)
class Copied:
    """A record of an output.

    Attributes:
        log: where it was read.
        offset: its offset there.
        out: the partition of the output.
        value: its value there, if the output has it.
    """

    log: Log
    offset: int
    out: int = 0
    value: str = ""

    @property
    def writer(self) -> Hashable:
        """Who wrote it, and keeps an order; None: all writers of an output partition keep one together."""
        return None


@dataclass
class Findings:
    """What was found in one output.

    Attributes:
        expected: records that must be there.
        records: that are there.
        counts: of each kind; all of them should be 0, but duplicates under at least once.
        examples: some of each, for people.
    """

    expected: int = 0
    records: int = 0
    counts: Counter[Kind] = field(default_factory=Counter)
    examples: dict[Kind, list[str]] = field(default_factory=dict)

    def __getitem__(self, kind: Kind) -> int:
        """Return how many there are of a kind."""
        return self.counts[kind]

    def note(self, kind: Kind, text: str, count: int = 1) -> None:
        """Count some, and keep an example."""
        self.counts[kind] += count
        kept = self.examples.setdefault(kind, [])
        if len(kept) < _SHOWN:
            kept.append(text)

    def anomalies(self, *, exactly_once: bool = True) -> dict[Kind, int]:
        """Return what is not 0 and should be."""
        return {kind: count for kind, count in self.counts.items() if exactly_once or kind != "duplicated"}


AnyCopied = TypeVar("AnyCopied", bound=Copied)


def check(
    found: Findings,
    extents: Mapping[Log, Extent],
    output: Iterable[AnyCopied | bytes],
    *,
    is_gone: Callable[[Log], bool] = lambda _: False,
    is_read_twice: Callable[[AnyCopied, AnyCopied | None], bool] = lambda *_: False,
) -> None:
    """Compare.

    Args:
        found: gets what is found.
        extents: of each log that is there at the end.
        output: in the order of each of its partitions; a value that cannot be parsed as it is.
        is_gone: tells whether a log was deleted, so that nobody can know what it had.
        is_read_twice: tells, of a record and the copy before it, if there is one, whether the source should not have
            given it. The copy is by the same writer if that has written one.
    """
    found.expected += sum(len(extent.offsets) for extent in extents.values())
    first: dict[Log, dict[int, AnyCopied]] = defaultdict(dict)
    by_writer: dict[Hashable, dict[int, AnyCopied]] = defaultdict(dict)
    highest: dict[Hashable, int] = {}
    for copied in output:
        found.records += 1
        if isinstance(copied, bytes):
            found.note("damaged", repr(copied[:80]))
            continue
        if not is_gone(copied.log) and (fault := extents.get(copied.log, Extent()).fault_of(copied)):
            found.note(fault, str(copied))
        lane = (copied.writer, copied.log, copied.out)
        before = by_writer[lane].get(copied.offset)
        # Further copies are duplicates, and not counted as out of order, too.
        if before is None and copied.offset < highest.get(lane, -1):
            found.note("out of order", f"{copied} after offset {highest[lane]}")
        highest[lane] = max(copied.offset, highest.get(lane, -1))
        before = before or first[copied.log].get(copied.offset)
        if before is not None:
            found.note("duplicated", f"{before} and {copied}")
        if is_read_twice(copied, before):
            found.note("read twice", f"{before} and {copied}")
        first[copied.log].setdefault(copied.offset, copied)
        by_writer[lane].setdefault(copied.offset, copied)
    for log, extent in sorted(extents.items(), key=lambda item: item[0]):
        if missing := [offset for offset in extent.offsets if offset not in first[log]]:
            text = f"{log}: {len(missing)} of [{extent.start}, {extent.end}), such as {missing[:10]}"
            found.note("lost", text, len(missing))
