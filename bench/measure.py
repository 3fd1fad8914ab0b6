"""Timing of alternatives in turns, and the peak memory of Spark's Python workers."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Timing:
    """The counted runs of one alternative.

    Attributes:
        seconds: wall time of each run.
        broker_seconds: CPU time of the broker in each run; NaN where /proc is not there.
    """

    seconds: tuple[float, ...]
    broker_seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle wall time."""
        return statistics.median(self.seconds)

    @property
    def broker_median(self) -> float:
        """The middle CPU time of the broker."""
        return statistics.median(self.broker_seconds)


def time_in_turns(
    alternatives: Mapping[str, Callable[[], object]],
    *,
    warm_ups: int,
    runs: int,
    broker_pid: int,
    on_run: Callable[[int, float], None] = lambda *_: None,
) -> dict[str, Timing]:
    """Run the alternatives in turns, A B A B …, so that a machine whose speed drifts is as unfair to one as to all.

    Args:
        alternatives: calls by name.
        warm_ups: how often each runs before it counts.
        runs: how often it counts.
        broker_pid: the process whose CPU time is measured beside.
        on_run: told after each turn how many there were, and how many seconds it took.
    """
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in alternatives}
    for run in range(warm_ups + runs):
        turn = time.perf_counter()
        for name, call in alternatives.items():
            broker, began = cpu_seconds(broker_pid), time.perf_counter()
            call()
            if run >= warm_ups:
                seconds[name].append((time.perf_counter() - began, cpu_seconds(broker_pid) - broker))
        on_run(run + 1, time.perf_counter() - turn)
    return {name: Timing(*(tuple(column) for column in zip(*values, strict=True))) for name, values in seconds.items()}


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used so far, user and system; NaN where /proc is not there."""
    try:
        fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds_below(pid: int) -> float:
    """Return the CPU time that a process and all its descendants have used so far; NaN where /proc is not there.

    That of descendants that have ended and were waited for is in it.
    """
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        process = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(process)
        used[process] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total, left = 0.0, [pid]
    while left:
        process = left.pop()
        total += used.get(process, float("nan"))
        left += children.get(process, [])
    return total


def python_worker_peaks_mib(jvm_pid: int) -> list[float]:
    """Return the peak resident memory of each Python worker below the JVM, in MiB; empty where /proc is not there."""
    peaks = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue  # ended meanwhile
        if b"pyspark" in command and b"daemon" in command and _has_ancestor(int(fields["PPid"]), jvm_pid):
            peaks.append(int(fields["VmHWM"].split()[0]) / 1024)
    return sorted(peaks)


def _has_ancestor(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            # The command name may hold spaces and brackets; the parent is the second field after its last bracket.
            pid = int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False
