"""What grew in a soak: series of figures over time, whether each stayed flat, and charts of them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from kit.marked_page import table

# Caches fill, and pools of processes and connections reach their size.
SETTLED_AFTER_S = 600.0
# A figure that moves is compared by the median of its first and of its last tenth, but never of less than this time.
_MIN_WINDOW_S = 60.0
_MAX_GROWTH = 0.1
_POINTS = 60

Sample = tuple[float, dict[str, float]]
"""Seconds since everything ran, and the figures."""


def settled(samples: Sequence[Sample], after_s: float = SETTLED_AFTER_S) -> list[Sample]:
    """Return the samples from the time when everything has reached its size."""
    return [sample for sample in samples if sample[0] >= after_s]


def ends(samples: Sequence[Sample], name: str) -> tuple[float, float]:
    """Return the median of a figure at the begin and at the end of the samples."""
    first_s, last_s = samples[0][0], samples[-1][0]
    window = max((last_s - first_s) / 10, min(_MIN_WINDOW_S, (last_s - first_s) / 2))
    begin = [figures[name] for at, figures in samples if at <= first_s + window]
    end = [figures[name] for at, figures in samples if at >= last_s - window]
    return statistics.median(begin), statistics.median(end)


def grown(samples: Sequence[Sample], slack: Mapping[str, float]) -> list[str]:
    """Return the figures that grew by more than a tenth and by more than their slack."""
    found = []
    for name, spare in slack.items():
        begin, end = ends(samples, name)
        if end - begin > max(spare, _MAX_GROWTH * begin):
            found.append(f"{name}: {begin:.0f} at first, {end:.0f} at the end")
    return found


def chart(samples: Sequence[Sample], names: Sequence[str], title: str, unit: str) -> str:
    """Return a chart for Mermaid, one line for each figure."""
    step = max(1, len(samples) // _POINTS)
    shown = samples[::step]
    lines = [
        "```mermaid",
        "xychart-beta",
        f'    title "{title}: {", ".join(names)}"',
        f'    x-axis "minutes" {shown[0][0] / 60:.0f} --> {shown[-1][0] / 60:.0f}',
        f'    y-axis "{unit}" 0 --> {max(max(f[name] for name in names) for _, f in samples) * 1.1:.0f}',
    ]
    lines += [f"    line [{', '.join(f'{figures[name]:.0f}' for _, figures in shown)}]" for name in names]
    return "\n".join([*lines, "```"])


def summary(samples: Sequence[Sample], names: Sequence[str]) -> str:
    """Return a table with the begin, the max and the end of each figure."""
    rows = []
    for name in names:
        begin, end = ends(samples, name)
        rows.append((name, f"{begin:.0f}", f"{max(figures[name] for _, figures in samples):.0f}", f"{end:.0f}"))
    return table(("figure", "at first", "max", "at the end"), rows)
