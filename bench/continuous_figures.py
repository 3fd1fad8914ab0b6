"""Figures of continuous queries, and the lines that show them. Pure: no processes, no clock."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# The turns of the generator are this far apart. One that is later than that, more often than once in a hundred turns,
# means that the rate was not held.
MAX_LATE_MS = 5.0
AT_LEAST_ONCE, EXACTLY_ONCE = "pyspark-kafka, at least once", "pyspark-kafka, exactly once"
REAL_TIME = "Spark, real-time mode"
_EXACTLY_ONCE_P99_MS = 150.0
_FASTEST_RATE, _FASTEST_P99_MS = 50_000, 10.0


@dataclass(frozen=True, slots=True)
class Latency:
    """What one side did at one rate.

    Attributes:
        side: by name.
        rate: records/s that were due.
        records: that were due in the window and arrived.
        missing: that were due in the window and did not arrive.
        p50_ms, p99_ms, max_ms: from when a record was due to its arrival at a reader of the target.
        late_p99_ms: of the generator's turns: how much later than due they were sent.
        engine_us: CPU time of all processes of the side for each record.
        broker_us: CPU time of the broker for each record.
    """

    side: str
    rate: int
    records: int
    missing: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    late_p99_ms: float
    engine_us: float
    broker_us: float

    @property
    def rate_held(self) -> bool:
        """Whether the generator was in time."""
        return self.late_p99_ms <= MAX_LATE_MS


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of sorted values is; NaN without values."""
    if not ordered:
        return float("nan")
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def latency_of(
    side: str,
    rate: int,
    seconds: float,
    latencies_ms: Sequence[float],
    lateness_ms: Sequence[float],
    cpu_seconds: tuple[float, float],
) -> Latency:
    """Return the figures of a window.

    Args:
        side: by name.
        rate: records/s.
        seconds: the length of the window.
        latencies_ms: of the records, sorted.
        lateness_ms: of the generator's turns, sorted.
        cpu_seconds: of the side, and of the broker, in the window.
    """
    records = len(latencies_ms)
    engine, broker = (1e6 * each / records if records else float("nan") for each in cpu_seconds)
    return Latency(
        side,
        rate,
        records,
        max(0, round(rate * seconds) - records),
        quantile(latencies_ms, 0.5),
        quantile(latencies_ms, 0.99),
        latencies_ms[-1] if records else float("nan"),
        quantile(lateness_ms, 0.99),
        engine,
        broker,
    )


def middle_of(rounds: Sequence[Latency]) -> Latency:
    """Return the medians of rounds of one side at one rate; of the longest latency and of what is missing the most."""

    def median(name: str) -> float:
        return float(statistics.median(getattr(each, name) for each in rounds))

    return Latency(
        rounds[0].side,
        rounds[0].rate,
        sum(each.records for each in rounds),
        max(each.missing for each in rounds),
        median("p50_ms"),
        median("p99_ms"),
        max(each.max_ms for each in rounds),
        max(each.late_p99_ms for each in rounds),
        median("engine_us"),
        median("broker_us"),
    )


def goal_of(figure: Latency, real_time: Latency | None) -> tuple[str, bool | None]:
    """Return what a side is to reach at a rate, and whether it does; None if there is nothing to compare with."""
    if figure.side == EXACTLY_ONCE:
        return f"p99 < {_EXACTLY_ONCE_P99_MS:.0f}", figure.p99_ms < _EXACTLY_ONCE_P99_MS
    if figure.side != AT_LEAST_ONCE:
        return "", None
    wanted, met = [], []
    if real_time is not None:
        wanted.append("real-time mode")
        met.append(figure.p50_ms <= real_time.p50_ms and figure.p99_ms <= real_time.p99_ms)
    if figure.rate == _FASTEST_RATE:
        wanted.append(f"p99 < {_FASTEST_P99_MS:.0f}")
        met.append(figure.p99_ms < _FASTEST_P99_MS)
    return ", ".join(wanted), all(met) if met else None


LATENCY_HEADINGS = ("records/s", "", "p50 ms", "p99 ms", "max ms", "engine µs", "broker µs", "goal", "met")


def latency_rows(figures: Sequence[Latency]) -> list[tuple[str, ...]]:
    """Return the lines of the table of latencies, by rate."""
    rows: list[tuple[str, ...]] = []
    for figure in sorted(figures, key=lambda each: each.rate):
        compared = [each for each in figures if each.rate == figure.rate and each.side == REAL_TIME]
        goal, met = goal_of(figure, compared[0] if compared else None)
        rows.append(
            (
                f"{figure.rate:,}",
                figure.side,
                f"{figure.p50_ms:.1f}",
                f"{figure.p99_ms:.1f}",
                f"{figure.max_ms:.0f}",
                f"{figure.engine_us:.1f}",
                f"{figure.broker_us:.1f}",
                goal,
                _word(met),
            )
        )
    return rows


def remarks_on(figures: Sequence[Latency]) -> list[str]:
    """Return what a reader of the table must know: rates that were not held, records that did not arrive."""
    remarks = []
    for each in figures:
        where = f"{each.side} at {each.rate:,} records/s"
        if not each.rate_held:
            remarks.append(f"{where}: the rate was not held, 1 % of the turns were {each.late_p99_ms:.0f} ms late.")
        if each.missing > each.rate * 0.01:
            remarks.append(f"{where}: {each.missing:,} records of the window did not arrive in time.")
    return remarks


@dataclass(frozen=True, slots=True)
class Copy:
    """The runs of one side of a copy of a whole topic.

    Attributes:
        case: what is done with the records.
        side: by name.
        records: of the topic.
        seconds: of each run, from the call to its return.
        engine_us, broker_us: CPU time for each record, median of the runs.
    """

    case: str
    side: str
    records: int
    seconds: tuple[float, ...]
    engine_us: float
    broker_us: float

    @property
    def rate(self) -> float:
        """Records/s of the median run."""
        return self.records / statistics.median(self.seconds)


COPY_HEADINGS = ("", "side", "records/s", "runs, s", "engine µs", "broker µs", "ratio", "goal", "met")


def copy_rows(figures: Sequence[Copy], baseline: str, goals: Mapping[str, float]) -> list[tuple[str, ...]]:
    """Return the lines of the table of copies; ratios are those to the baseline of the same case."""
    rows: list[tuple[str, ...]] = []
    for figure in figures:
        compared = [each for each in figures if each.case == figure.case and each.side == baseline]
        ratio, goal, met = "", "", None
        if compared and figure.side != baseline:
            found = figure.rate / compared[0].rate
            ratio, goal = f"{found:.1f}", f">= {goals[figure.case]:g}"
            met = found >= goals[figure.case]
        rows.append(
            (
                figure.case,
                figure.side,
                f"{figure.rate / 1e6:.2f} M",
                ", ".join(f"{each:.2f}" for each in sorted(figure.seconds)),
                f"{figure.engine_us:.2f}",
                f"{figure.broker_us:.2f}",
                ratio,
                goal,
                _word(met),
            )
        )
    return rows


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a page of the docs."""
    lines = [f"| {' | '.join(headings)} |", f"|{' --- |' * len(headings)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _word(met: bool | None) -> str:
    return {None: "", True: "yes", False: "no"}[met]
