"""Plots of a report, by plotly."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

from pyspark_kafka._ops.operations.text import span_text
from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka._ops.operations.reports.timeline import BatchStats, Gap

# More bars than a screen has pixels.
MAX_POINTS = 600
_MAX_BARS = 40
# With fewer bars, each is wide enough to be visible next to a bar of any height.
_MIN_CUT = 40
# A bar is cut if it is this many times as high as the 95th of 100.
_CUT_FACTOR = 5

# Colors that differ in lightness too, and stand out on white and on black.
_COLORS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#999999")


@dataclass(frozen=True, slots=True)
class Bar:
    """One partition in a plot.

    Attributes:
        topic: of the partition.
        partition: its number.
        value: the length of the bar.
    """

    topic: str
    partition: int
    value: float


def plot_data(figure: Any) -> Any:
    """Return a plot as plain data, the content of its JSON, which notebooks draw."""
    return json.loads(figure.to_json())


def rate_plot(batches: Sequence[BatchStats], gaps: Sequence[Gap]) -> Any:
    """Return rows for each second over time, with the gaps."""
    go = _plotly()
    figure = go.Figure()
    times: list[Any] = []
    rates: list[float] = []
    for each in batches:
        if each.begun_ms is None or each.finished_ms is None or each.rows_and_ms is None:
            continue
        # The time between merged batches does not count.
        rows, busy_ms = each.rows_and_ms
        rate = rows * 1000 / max(1, busy_ms)
        # Nothing is read between the batches.
        begun, finished = _time(each.begun_ms), _time(each.finished_ms)
        times += [begun, begun, finished, finished]
        rates += [0.0, rate, rate, 0.0]
    figure.add_trace(
        go.Scatter(
            x=times, y=rates, mode="lines", fill="tozeroy", line={"color": _COLORS[0], "width": 1}, name="rows/s"
        )
    )
    for gap in gaps[:20]:
        # The longest bar comes first; the names of the others would cover each other.
        text = f"pause of {span_text(gap.length_ms)}"
        named = {"annotation_text": text, "annotation_position": "top left"} if gap is gaps[0] else {}
        figure.add_vrect(
            x0=_time(gap.began_ms),
            x1=_time(gap.ended_ms),
            fillcolor=_COLORS[1],
            opacity=0.2,
            line_width=0,
            **named,
        )
    return _dressed(figure, "rows per second, while a batch is worked on")


def rows_plot(batches: Sequence[BatchStats]) -> Any:
    """Return the rows of each batch."""
    go = _plotly()
    figure = go.Figure(
        go.Bar(
            x=[each.batch_id for each in batches],
            y=[each.rows for each in batches],
            marker_color=_COLORS[4],
            hovertext=[f"batch {each.title}" for each in batches],
        )
    )
    return _cut(_dressed(figure, "rows of each batch, by its number"), [each.rows for each in batches])


def phases_plot(batches: Sequence[BatchStats]) -> Any:
    """Return the duration of each batch: by phase where that is known, otherwise as a whole."""
    go = _plotly()
    figure = go.Figure()
    names = sorted({name for each in batches for name in each.phases_ms})
    numbers = [each.batch_id for each in batches]
    if names:
        sums = {name: sum(each.phases_ms.get(name, 0) for each in batches) for name in names}
        for position, name in enumerate(sorted(names, key=lambda name: -sums[name])):
            seconds = [each.phases_ms.get(name, 0) / 1000 for each in batches]
            color = _COLORS[position % len(_COLORS)]
            figure.add_trace(go.Bar(x=numbers, y=seconds, name=escape(name), marker_color=color))
        figure.update_layout(barmode="stack")
        sums_s: list[float | None] = [sum(each.phases_ms.values()) / 1000 for each in batches]
    else:
        values = [None if each.duration_ms is None else each.duration_ms / 1000 for each in batches]
        figure.add_trace(go.Bar(x=numbers, y=values, name="begun to committed", marker_color=_COLORS[2]))
        sums_s = values
    dressed = _dressed(figure, f"seconds of each batch{', by phase' if names else ''}, by its number")
    return _cut(dressed, sums_s)


def partitions_plot(bars: Sequence[Bar], title: str) -> Any:
    """Return the partitions with the largest values, the largest first."""
    go = _plotly()
    chosen = sorted(bars, key=lambda each: -each.value)[:_MAX_BARS]
    figure = go.Figure(
        go.Bar(
            x=[each.value for each in chosen],
            y=[f"{escape(each.topic)}-{each.partition}" for each in chosen],
            orientation="h",
            marker_color=_COLORS[3],
        )
    )
    figure.update_yaxes(autorange="reversed", type="category")
    dressed = _dressed(figure, title)
    dressed.update_layout(height=140 + 22 * max(1, len(chosen)))
    return dressed


def stacked(figures: Sequence[Any]) -> Any:
    """Return one figure with others below each other, each under its title."""
    _plotly()
    from plotly.subplots import make_subplots  # noqa: PLC0415 - of the extra report

    whole = make_subplots(rows=len(figures), cols=1, subplot_titles=[each.layout.title.text for each in figures])
    for row, figure in enumerate(figures, 1):
        for trace in figure.data:
            whole.add_trace(trace, row=row, col=1)
    whole.update_layout(height=260 * len(figures), barmode="stack", margin={"l": 8, "r": 8, "t": 44, "b": 8})
    return whole


def html_of(figures: Mapping[str, Any]) -> dict[str, str]:
    """Return each figure as a part of a page without its title, by its name. The page must have `script()` once."""
    go = _plotly()
    from plotly.io import to_html  # noqa: PLC0415 - of the extra report

    config = {"responsive": True, "displaylogo": False, "displayModeBar": False}
    parts = {}
    for name, figure in figures.items():
        untitled = go.Figure(figure).update_layout(title=None, margin_t=8)
        parts[name] = to_html(untitled, config, include_plotlyjs=False, full_html=False, div_id=f"plot-{name}")
    return parts


def script() -> str:
    """Return plotly's script, for a self-contained page."""
    _plotly()
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - of the extra report

    found: str = get_plotlyjs()
    return found


def _dressed(figure: Any, title: str) -> Any:
    """Return a figure in the style of the page, with colors for light and dark mode."""
    figure.update_layout(
        title={"text": title, "font": {"size": 15}, "x": 0, "xref": "paper"},
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
        height=280,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        legend={"orientation": "h"},
        bargap=0.05,
        font={"family": "system-ui, sans-serif", "color": "#888"},
    )
    figure.update_traces(marker_line_width=0, selector={"type": "bar"})
    figure.update_xaxes(automargin=True, gridcolor="rgba(128,128,128,0.25)", zeroline=False)
    figure.update_yaxes(automargin=True, gridcolor="rgba(128,128,128,0.25)", zeroline=False, rangemode="tozero")
    return figure


def _cut(figure: Any, values: Sequence[float | None]) -> Any:
    """Return a figure whose axis ends above its usual bars, if a few large bars would make the others flat.

    The title has the number of cut bars, and the largest value.
    """
    known = sorted(value for value in values if value is not None)
    if len(known) < _MIN_CUT:
        return figure
    usual = known[len(known) * 95 // 100]
    shown = [value for value in known if value <= _CUT_FACTOR * usual]
    cut = len(known) - len(shown)
    if not usual or not cut:
        return figure
    bars = "1 bar is" if cut == 1 else f"{cut} bars are"
    figure.update_layout(title_text=f"{figure.layout.title.text}; {bars} cut, the largest is {known[-1]:,.0f}")
    return figure.update_yaxes(range=[0, 1.1 * shown[-1]])


def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000).astimezone().replace(tzinfo=None)


def _plotly() -> Any:
    try:
        import plotly.graph_objects as go  # noqa: PLC0415 - of the extra report
    except ImportError as error:
        raise MissingDependencyError(
            "A report needs the package plotly, which is not installed. No page was written.",
            condition="REPORT_PACKAGE_MISSING",
            hint=f"Run {install_command('report')}.",
            parameters={"package": "plotly"},
        ) from error
    return go
