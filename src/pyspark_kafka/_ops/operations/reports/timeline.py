"""Batches of a query over time: rates, waits, gaps. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

# A pause is reported only if it is long for people and long for this query.
_LEAST_GAP_MS = 60_000
_GAP_FACTOR = 10
# A long batch with many rows is no pause, unless it is also this many times as long as its rows usually take.
_ROWS_FACTOR = 3


@dataclass(frozen=True, slots=True)
class BatchStats:
    """One micro-batch, or one epoch of a continuous query.

    Attributes:
        batch_id: its number.
        begun_ms: the time of its plan, in ms since 1970; None if unknown.
        finished_ms: the time of its commit; None if it is not finished, or the time is unknown.
        is_finished: whether it is committed.
        rows: offsets that it covers, of all partitions: records, transaction markers, and compacted offsets;
            None if its start is unknown.
        phases_ms: the duration of each phase in ms, by Spark's names; empty if unknown.
        run_id: the run of the query; None if unknown.
        first_id: the first of the merged batches; `batch_id` is the last. They differ after `thinned`.
        busy_ms: the sum of the batches' durations in ms; None if no duration is known.
        rated: for merged batches, the rows and the ms of the batches for which both are known.
        is_passed_over: whether it is not finished and never run again, because a rewind has moved the query after it.
    """

    batch_id: int
    begun_ms: int | None
    finished_ms: int | None
    is_finished: bool
    rows: int | None
    phases_ms: Mapping[str, int] = field(default_factory=dict, hash=False)
    run_id: str | None = None
    first_id: int = -1
    busy_ms: int | None = None
    rated: tuple[int, int] | None = None
    is_passed_over: bool = False

    @property
    def duration_ms(self) -> int | None:
        """Return its duration in ms; None if unknown."""
        if self.busy_ms is not None:
            return self.busy_ms
        if self.begun_ms is None or self.finished_ms is None:
            return None
        return max(0, self.finished_ms - self.begun_ms)

    @property
    def rows_and_ms(self) -> tuple[int, int] | None:
        """Return the rows, and the time of their processing in ms; None if one of the two is unknown."""
        if self.first_id != -1:
            return self.rated
        return None if self.rows is None or self.duration_ms is None else (self.rows, self.duration_ms)

    @property
    def title(self) -> str:
        """Return the numbers of its batches, such as `7` or `7 to 12`."""
        if self.first_id in (-1, self.batch_id):
            return str(self.batch_id)
        return f"{self.first_id} to {self.batch_id}"


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without work on a batch.

    Attributes:
        after: the batch before it.
        before: the batch after it; the same batch if the pause is within it, because its driver was killed.
        began_ms: its beginning, in ms since 1970.
        ended_ms: its end.
        rows: the rows of the batch after it; None if unknown.
        is_restart: whether another run of the query followed; None if unknown.
    """

    after: int
    before: int
    began_ms: int
    ended_ms: int
    rows: int | None
    is_restart: bool | None

    @property
    def is_within(self) -> bool:
        """Return whether it is within a batch, whose own time is a part of it."""
        return self.after == self.before

    @property
    def length_ms(self) -> int:
        """Return its duration in ms."""
        return self.ended_ms - self.began_ms


@dataclass(frozen=True, slots=True)
class Standstill:
    """The time since the last batch, long for this query.

    Attributes:
        length_ms: from the end of the last batch until now; if it is not finished, from its beginning.
        unfinished: the number of the last batch if it is not finished; otherwise None.
        interval_ms: the median time from one batch's beginning to the next; None if unknown.
        longest_ms: the longest such time; 0 if unknown.
    """

    length_ms: int
    unfinished: int | None
    interval_ms: int | None
    longest_ms: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Metrics of several batches.

    Attributes:
        batches: their number.
        rows: offsets that they cover, as far as known; None if no batch has a known number.
        to_ms: the last known time, in ms since 1970; None if none is known.
        rows_per_second: rows for each second from first to last; None if no time is between them, or no rows are
            known.
        median_ms: the median duration of a batch; None if unknown.
    """

    batches: int
    rows: int | None
    to_ms: int | None
    rows_per_second: float | None
    median_ms: float | None


def summarize(batches: Sequence[BatchStats]) -> Summary:
    """Return the metrics of batches, which are in the order of their numbers."""
    times = [time for each in batches for time in (each.begun_ms, each.finished_ms) if time is not None]
    known = [each.rows for each in batches if each.rows is not None]
    rows = sum(known) if known or not batches else None
    durations = [each.duration_ms for each in batches if each.duration_ms is not None]
    span_ms = max(times) - min(times) if times else 0
    return Summary(
        batches=len(batches),
        rows=rows,
        to_ms=max(times, default=None),
        rows_per_second=rows * 1000 / span_ms if span_ms and rows is not None else None,
        median_ms=statistics.median(durations) if durations else None,
    )


def find_standstill(batches: Sequence[BatchStats], now_ms: int) -> Standstill | None:
    """Return the time since the last batch, if it is at least a minute and ten times the usual time between batches.

    Args:
        batches: in the order of their numbers.
        now_ms: in ms since 1970.
    """
    batches = [each for each in batches if not each.is_passed_over]
    last = batches[-1] if batches else None
    since_ms = None if last is None else last.begun_ms if last.finished_ms is None else last.finished_ms
    if last is None or since_ms is None:
        return None
    begun = [each.begun_ms for each in batches if each.begun_ms is not None]
    intervals = [max(0, after - before) for before, after in pairwise(begun)]
    usual = int(statistics.median(intervals)) if intervals else None
    length = now_ms - since_ms
    if length < max(_LEAST_GAP_MS, _GAP_FACTOR * (usual or 0)):
        return None
    return Standstill(length, None if last.is_finished else last.batch_id, usual, max(intervals, default=0))


def find_gaps(batches: Sequence[BatchStats]) -> list[Gap]:
    """Return the long pauses of this query, the longest first, and every change of the run.

    A pause is long if it takes at least a minute and ten times the usual pause. Batches alone do not show whether the
    query had no data or did not run; the rows of the batch after the pause are a hint. If a driver is killed
    within a batch and started again, the batch includes the pause. By the same measure it counts as a pause, if
    only the files of the checkpoint have its duration, and if it is far longer than its rows take at the usual rate.

    Args:
        batches: in the order of their numbers.
    """
    pauses = []
    for before, after in pairwise(batches):
        if before.finished_ms is None or after.begun_ms is None:
            continue
        restarted = None if before.run_id is None or after.run_id is None else before.run_id != after.run_id
        pauses.append(
            Gap(
                before.batch_id,
                after.batch_id if after.first_id == -1 else after.first_id,
                before.finished_ms,
                max(before.finished_ms, after.begun_ms),
                after.rows,
                restarted,
            )
        )
    # The longest pause must not be part of its own measure.
    usual = sorted(each.length_ms for each in pauses)[:-1]
    least = max(_LEAST_GAP_MS, _GAP_FACTOR * int(statistics.median(usual)) if usual else 0)
    found = [each for each in pauses if each.length_ms >= least or each.is_restart]
    found += _long_batches(batches)
    return sorted(found, key=lambda each: -each.length_ms)


def _long_batches(batches: Sequence[BatchStats]) -> list[Gap]:
    # A run with progress reports has measured the time of its work on the batch.
    timed = [each for each in batches if each.run_id is None and each.first_id == -1 and each.duration_ms is not None]
    usual = sorted(each.duration_ms or 0 for each in timed)[:-1]
    least = max(_LEAST_GAP_MS, _GAP_FACTOR * int(statistics.median(usual)) if usual else 0)
    rows_ms = [(each.duration_ms or 0) / each.rows for each in timed if each.rows]
    row_ms = statistics.median(rows_ms) if rows_ms else 0
    return [
        Gap(each.batch_id, each.batch_id, each.begun_ms or 0, (each.begun_ms or 0) + each.duration_ms, each.rows, None)
        for each in timed
        if usual
        and each.duration_ms is not None
        and each.duration_ms >= max(least, _ROWS_FACTOR * row_ms * (each.rows or 0))
    ]


def thinned(batches: Sequence[BatchStats], max_batches: int) -> list[BatchStats]:
    """Return at most `max_batches` entries for all batches: neighbors are merged, and their rows summed.

    Merged batches have the first beginning, the last end, the sum of their durations, and the last run.

    Args:
        batches: in the order of their numbers.
        max_batches: the maximum number; at least one.
    """
    size = -(-len(batches) // max_batches)
    if size <= 1:
        return list(batches)
    return [_together(batches[start : start + size]) for start in range(0, len(batches), size)]


def _together(batches: Sequence[BatchStats]) -> BatchStats:
    first, last = batches[0], batches[-1]
    phases: dict[str, int] = {}
    for each in batches:
        for name, taken in each.phases_ms.items():
            phases[name] = phases.get(name, 0) + taken
    durations = [each.duration_ms for each in batches if each.duration_ms is not None]
    rated = [each.rows_and_ms for each in batches if each.rows_and_ms is not None]
    known = [each.rows for each in batches if each.rows is not None]
    return BatchStats(
        batch_id=last.batch_id,
        begun_ms=next((each.begun_ms for each in batches if each.begun_ms is not None), None),
        finished_ms=next((each.finished_ms for each in reversed(batches) if each.finished_ms is not None), None),
        is_finished=all(each.is_finished for each in batches),
        rows=sum(known) if known else None,
        phases_ms=phases,
        run_id=last.run_id,
        first_id=first.batch_id if first.first_id == -1 else first.first_id,
        busy_ms=sum(durations) if durations else None,
        rated=(sum(rows for rows, _ in rated), sum(ms for _, ms in rated)) if rated else None,
    )
