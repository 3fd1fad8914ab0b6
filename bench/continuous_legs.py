"""Where records of a measured window were, by the broker's clock: before the source, in the engine, behind the target.

The topics have `message.timestamp.type=LogAppendTime`, so the log itself tells when each record was appended, to the
millisecond, and no side takes part in the measurement. Records that were due at the same moment are the same to their
reader, and are paired in the order of their times.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from load import due_times_in, open_reader

if TYPE_CHECKING:
    from load import ArrowArrivals

APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
"""The configuration of the topics."""
_SLOWEST = 0.01
_END_S = 60.0


@dataclass(frozen=True, slots=True)
class Legs:
    """The parts of the latencies of a window, in ms: to the source's log, from log to log, and to the reader.

    Attributes:
        mean: of all records, part by part.
        p99: of each part alone.
        slowest: of the slowest 1 % of the records, the mean of each part.
    """

    mean: tuple[float, float, float]
    p99: tuple[float, float, float]
    slowest: tuple[float, float, float]

    def __str__(self) -> str:
        """Return all as a line."""
        mean, p99, slowest = (", ".join(f"{part:.1f}" for part in each) for each in (self.mean, self.p99, self.slowest))
        return (
            f"ms to the source, in the engine, to the reader: mean {mean}; p99 {p99}; mean of the slowest 1 % {slowest}"
        )


def legs_of(servers: str, source: str, target: str, arrivals: ArrowArrivals, since_ns: int, until_ns: int) -> Legs:
    """Return the parts of the latencies of a window.

    Args:
        servers: of the broker.
        source: a topic with `APPEND_TIME`.
        target: its copy, likewise.
        arrivals: what the reader of the target has read.
        since_ns: the start of the window, by the monotonic clock.
        until_ns: its end.

    Raises:
        RuntimeError: the topics and the reader have not the same records.
    """
    ahead_ns = time.time_ns() - time.monotonic_ns()
    ordered = []
    for due, at in (
        _appended(servers, source, ahead_ns),
        _appended(servers, target, ahead_ns),
        (arrivals.created_ns, arrivals.arrived_ns),
    ):
        chosen = (due >= since_ns) & (due < until_ns)
        order = np.lexsort((at[chosen], due[chosen]))
        ordered.append((due[chosen][order], at[chosen][order]))
    (due, _), *others = ordered
    if any(not np.array_equal(due, other) for other, _ in others):
        raise RuntimeError(f"{source}, {target} and the reader of it have not the same records")
    times = np.stack([due, *(at for _, at in ordered)])
    parts = np.diff(times, axis=0) / 1e6
    slow = np.argsort(times[-1] - due)[-max(1, int(len(due) * _SLOWEST)) :]
    return Legs(
        _three(parts.mean(axis=1)), _three(np.quantile(parts, 0.99, axis=1)), _three(parts[:, slow].mean(axis=1))
    )


def _three(values: np.ndarray) -> tuple[float, float, float]:
    first, second, third = values.tolist()
    return first, second, third


def _appended(servers: str, topic: str, ahead_ns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each record when it was due and when it was appended, in ns of the monotonic clock."""
    due, appended = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    ends_at = time.monotonic() + _END_S
    with open_reader(servers, topic, startingOffsets="earliest") as reader:
        # A wait without rows: everything is read.
        while (is_there := reader.next()) or reader.getLatestOffset() is None:
            if time.monotonic() > ends_at:
                raise RuntimeError(f"{topic} was not read within {_END_S:.0f} s")
            if not is_there:
                continue
            rows = reader.get()
            due.append(due_times_in(rows.column("value")))
            # The clock of the log has milliseconds: a record came half of one later on average.
            appended.append(np.asarray(rows.column("timestamp").cast("int64")) * 1_000 - ahead_ns + 500_000)
    return np.concatenate(due), np.concatenate(appended)
