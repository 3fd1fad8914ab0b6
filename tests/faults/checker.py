"""What was sent against what a reader of committed records sees. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from faults.stamped import Stamp, from_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SHOWN = 5


@dataclass(frozen=True)
class Planned:
    """What a micro-batch was to write: of each source partition, the sequences [start, end)."""

    ranges: Mapping[int, tuple[int, int]]

    @property
    def records(self) -> int:
        """How many records that are."""
        return sum(end - start for start, end in self.ranges.values())


@dataclass(frozen=True)
class Report:
    """What was found; every number but `sent`, `visible` and `batches` should be 0.

    Attributes:
        sent: records of the source that are to be there.
        visible: records that the reader saw.
        batches: micro-batches with a marker.
        lost: sent and never seen.
        duplicated: seen more than once; every time after the first counts.
        phantom: seen, whole, and not sent.
        corrupted: values whose hash does not fit.
        inversions: records that come after one with a higher sequence of the same source partition, in one output
            partition; further copies of a record are not counted here.
        torn: micro-batches with a marker and without just the records it counts, or with records and no marker, or with
            more than one marker.
        withdrawn: records that a reader saw meanwhile, and that are not there at the end.
        examples: some of each, for people.
    """

    sent: int
    visible: int
    batches: int = 0
    lost: int = 0
    duplicated: int = 0
    phantom: int = 0
    corrupted: int = 0
    inversions: int = 0
    torn: int = 0
    withdrawn: int = 0
    examples: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def anomalies(self) -> dict[str, int]:
        """What is not 0 and should be."""
        kept = ("sent", "visible", "batches", "examples")
        found = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in kept}
        return {name: count for name, count in found.items() if count}


def check(
    sent: Iterable[Stamp],
    visible: Mapping[int, list[bytes]],
    *,
    planned: Mapping[int, Planned] | None = None,
    markers: Iterable[tuple[int, int]] = (),
    seen_before: Mapping[int, list[bytes]] | None = None,
) -> Report:
    """Compare.

    Args:
        sent: what the source has and the query was to write.
        visible: of each output partition, the values in their order.
        planned: of each micro-batch in the offset log, what it was to write; None: there are no markers to compare.
        markers: batch id and number of records of every marker, in their order.
        seen_before: as `visible`, from a reader that ran meanwhile.
    """
    wanted = set(sent)
    counts: Counter[Stamp] = Counter()
    notes: dict[str, list[str]] = {}
    corrupted = inversions = 0
    for partition, values in sorted(visible.items()):
        highest: dict[tuple[str, int], int] = {}
        of_partition: set[Stamp] = set()
        for position, value in enumerate(values):
            stamp = from_value(value)
            if stamp is None:
                corrupted += 1
                _note(notes, "corrupted", f"record {position} of output partition {partition}: {value[:80]!r}")
                continue
            counts[stamp] += 1
            source = (stamp.run, stamp.partition)
            if stamp not in of_partition and stamp.sequence < highest.get(source, -1):
                inversions += 1
                _note(notes, "inversions", f"{stamp} after {highest[source]} in output partition {partition}")
            of_partition.add(stamp)
            highest[source] = max(stamp.sequence, highest.get(source, -1))
    lost = wanted - set(counts)
    phantom = {stamp: count for stamp, count in counts.items() if stamp not in wanted}
    again = {stamp: count - 1 for stamp, count in counts.items() if count > 1}
    for name, stamps in (("lost", lost), ("phantom", phantom), ("duplicated", again)):
        for stamp in sorted(stamps):
            _note(notes, name, str(stamp))
    pairs = list(markers)
    torn = (
        []
        if planned is None
        else _torn(planned, pairs, Counter({each: counts[each] for each in counts if each in wanted}))
    )
    for text in torn:
        _note(notes, "torn", text)
    withdrawn = 0
    for partition, values in (seen_before or {}).items():
        gone = Counter(values) - Counter(visible.get(partition, []))
        withdrawn += sum(gone.values())
        for value in gone:
            _note(notes, "withdrawn", f"output partition {partition}: {value[:80]!r}")
    return Report(
        sent=len(wanted),
        visible=sum(len(values) for values in visible.values()),
        batches=len({batch for batch, _ in pairs}),
        lost=len(lost),
        duplicated=sum(again.values()),
        phantom=sum(phantom.values()),
        corrupted=corrupted,
        inversions=inversions,
        torn=len(torn),
        withdrawn=withdrawn,
        examples=notes,
    )


def _torn(planned: Mapping[int, Planned], markers: list[tuple[int, int]], counts: Counter[Stamp]) -> list[str]:
    found: list[str] = []
    batch_of = {
        (partition, sequence): batch
        for batch, plan in planned.items()
        for partition, bounds in plan.ranges.items()
        for sequence in range(*bounds)
    }
    present: Counter[int] = Counter()
    for stamp, count in counts.items():
        if (batch := batch_of.get((stamp.partition, stamp.sequence))) is not None:
            present[batch] += count
    numbers = Counter(batch for batch, _ in markers)
    for batch, records in markers:
        plan = planned.get(batch)
        if plan is None:
            found.append(f"batch {batch} has a marker and was never planned")
        elif present[batch] != records:
            found.append(f"batch {batch} has {present[batch]} records, its marker counts {records}")
        elif plan.records != records:
            found.append(f"the marker of batch {batch} counts {records} records, {plan.records} were planned")
    found += [f"batch {batch} has {count} markers" for batch, count in numbers.items() if count > 1]
    found += [f"batch {batch} has {present[batch]} records and no marker" for batch in present if batch not in numbers]
    return found


def _note(notes: dict[str, list[str]], name: str, text: str) -> None:
    kept = notes.setdefault(name, [])
    if len(kept) < _SHOWN:
        kept.append(text)
