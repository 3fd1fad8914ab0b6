"""What was sent against what a reader of committed records sees, and against the markers of micro-batches. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from faults.stamped import from_value
from kit.log_checker import Copied, Extent, Findings, Log, check


@dataclass(frozen=True)
class Planned:
    """What a micro-batch was to write: of each source partition, the offsets [start, end)."""

    ranges: Mapping[int, tuple[int, int]]

    @property
    def records(self) -> int:
        """How many records that are."""
        return sum(end - start for start, end in self.ranges.values())


@dataclass
class BatchFindings(Findings):
    """What was found in the output of a query in micro-batches.

    Attributes:
        batches: micro-batches with a marker.
    """

    batches: int = 0


def check_batches(
    extents: Mapping[Log, Extent],
    visible: Mapping[int, list[bytes]],
    *,
    planned: Mapping[int, Planned] | None = None,
    markers: Sequence[tuple[int, int]] = (),
    seen_before: Mapping[int, list[bytes]] | None = None,
) -> BatchFindings:
    """Compare.

    Args:
        extents: what the source has and the query was to write.
        visible: of each output partition, the values in their order.
        planned: of each micro-batch in the offset log, what it was to write; None: there are no markers to compare.
        markers: batch id and number of records of every marker, in their order.
        seen_before: as `visible`, from a reader that ran meanwhile.
    """
    output = [from_value(value, out) or value for out, values in sorted(visible.items()) for value in values]
    found = BatchFindings(batches=len({batch for batch, _ in markers}))
    check(found, extents, output)
    if planned is not None:
        batch_of = _batches_of(planned)
        _check_order_of_batches(found, batch_of, output)
        counts = Counter((each.log, each.offset) for each in output if isinstance(each, Copied))
        _check_markers(
            found,
            planned,
            batch_of,
            markers,
            {
                (log, offset): count
                for (log, offset), count in counts.items()
                if log in extents and offset in extents[log].offsets
            },
        )
    for out, values in (seen_before or {}).items():
        gone = Counter(values) - Counter(visible.get(out, []))
        for value, count in gone.items():
            found.note("withdrawn", f"output partition {out}: {value[:80]!r}", count)
    return found


def _batches_of(planned: Mapping[int, Planned]) -> dict[tuple[int, int], int]:
    """Return the micro-batch of each partition and offset of the source."""
    return {
        (partition, offset): batch
        for batch, plan in planned.items()
        for partition, bounds in plan.ranges.items()
        for offset in range(*bounds)
    }


def _check_order_of_batches(
    found: Findings, batch_of: Mapping[tuple[int, int], int], output: Sequence[Copied | bytes]
) -> None:
    """Note records after a record of a later micro-batch of the same log, by another task: `check` has the others."""
    latest: dict[tuple[Log, int], int] = {}
    for copied in output:
        if not isinstance(copied, Copied) or copied.writer is None:
            continue
        batch = batch_of.get((copied.log.partition, copied.offset), -1)
        place = (copied.log, copied.out)
        if batch < latest.get(place, -1):
            found.note("out of order", f"{copied} of batch {batch} after batch {latest[place]}")
        latest[place] = max(batch, latest.get(place, -1))


def _check_markers(
    found: Findings,
    planned: Mapping[int, Planned],
    batch_of: Mapping[tuple[int, int], int],
    markers: Sequence[tuple[int, int]],
    counts: Mapping[tuple[Log, int], int],
) -> None:
    present: Counter[int] = Counter()
    for (log, offset), count in counts.items():
        if (batch := batch_of.get((log.partition, offset))) is not None:
            present[batch] += count
    numbers = Counter(batch for batch, _ in markers)
    for batch, records in markers:
        plan = planned.get(batch)
        if plan is None:
            found.note("torn", f"batch {batch} has a marker and was never planned")
        elif present[batch] != records:
            found.note("torn", f"batch {batch} has {present[batch]} records, its marker counts {records}")
        elif plan.records != records:
            found.note("torn", f"the marker of batch {batch} counts {records} records, {plan.records} were planned")
    for batch, count in numbers.items():
        if count > 1:
            found.note("torn", f"batch {batch} has {count} markers")
    for batch, count in present.items():
        if batch not in numbers:
            found.note("torn", f"batch {batch} has {count} records and no marker")
