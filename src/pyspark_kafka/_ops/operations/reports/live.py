"""The metrics of a running query as one plot in a notebook, which is redrawn at intervals."""

from __future__ import annotations

import json
import logging
import uuid
from html import escape
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.threads import BackgroundLoop
from pyspark_kafka._ops.operations.reports.plots import phases_plot, plot_data, rate_plot, stacked
from pyspark_kafka._ops.operations.reports.progress import progress_batches
from pyspark_kafka._ops.operations.reports.timeline import find_gaps, summarize
from pyspark_kafka.errors import CapabilityError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._ops.operations.reports.timeline import BatchStats

_LOG = logging.getLogger(__name__)

# Spark keeps the last 100 progress updates of a query (`spark.sql.streaming.numRecentProgressUpdates`); the view
# remembers more.
_MAX_BATCHES = 2_000
# At the usual 2 s about a minute: by then a server that restarts is back, unless it has lost the query.
_MAX_FAILURES = 30
# The number of rows in the table that replaces the plot.
_LISTED_BATCHES = 20
_PLOTLY = "application/vnd.plotly.v1+json"


class LiveView:
    """Shows the rates and phases of a query in a notebook, until the query ends or `stop()` is called.

    Runs on: the program of the notebook; its own thread reads the query's progress and draws. It never
    disturbs the query: a failed look-up of the progress is logged once, and tried again. If the query cannot be reached
    30 times in a row whether it is active, the view ends with a warning.

    Args:
        query: of Spark, classic or Connect, or a continuous one.
        interval_s: seconds between two drawings.
        show: draws a plot, a line of text above it, and, where plots cannot be drawn, a table in HTML instead of it;
            `notebook_display()` returns one.
    """

    def __init__(self, query: Any, interval_s: float, show: Callable[[Any, str, str], None]) -> None:
        self._query = query
        self._interval_s = interval_s
        self._show = show
        self._batches: dict[int, BatchStats] = {}
        self._has_warned = False
        self._failures = 0
        self._draw()
        self._loop = BackgroundLoop("live-view", self._draw_again, interval_s)
        self._loop.start()

    def stop(self) -> None:
        """Stop drawing. Safe to repeat."""
        self._loop.end(self._interval_s + 5)

    @property
    def is_over(self) -> bool:
        """Return whether drawing has stopped."""
        return not self._loop.is_alive()

    def _draw_again(self) -> float | None:
        # Read before the last drawing, which then has all batches.
        active = self._is_active()
        self._draw()
        return self._interval_s if active else None

    def _is_active(self) -> bool:
        try:
            active = bool(self._query.isActive)
        except Exception:  # noqa: BLE001 - logged
            self._failures += 1
            if self._failures < _MAX_FAILURES:
                self._warn()
                return True
            _LOG.warning(
                "The live view ends: the query could not be asked %d times in a row whether it is active. The query is "
                "not affected; call metrics.live(query) again to see it.",
                self._failures,
                exc_info=True,
            )
            return False
        self._failures = 0
        return active

    def _draw(self) -> None:
        try:
            told = [json.loads(each.json) for each in self._query.recentProgress]
            self._batches.update({each.batch_id: each for each in progress_batches(told)})
            for number in sorted(self._batches)[:-_MAX_BATCHES]:
                del self._batches[number]
            batches = [self._batches[number] for number in sorted(self._batches)]
            title = getattr(self._query, "name", None) or str(getattr(self._query, "id", ""))
            plot = stacked([rate_plot(batches, find_gaps(batches)), phases_plot(batches)])
            self._show(plot, _line(title, batches), _table(batches))
        except MissingDependencyError:
            raise
        except Exception:  # noqa: BLE001 - logged
            self._warn()

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            _LOG.warning("The live view cannot read the progress of the query; it tries again.", exc_info=True)


def notebook_display() -> Callable[[Any, str, str], None]:
    """Return the function that draws in the output of the notebook's cell, and replaces the former drawing.

    A plot is published as data, with the table for exported pages of the notebook. As an object, Plotly's figure
    would publish itself, each time in another place.

    Raises:
        CapabilityError: the program is not a notebook, or IPython is missing.
    """
    try:
        # Only notebooks have IPython.
        import IPython as ipython  # type: ignore[import-not-found]  # noqa: N813, PLC0415
        from IPython import display as drawing  # noqa: PLC0415
    except ImportError as error:
        raise _no_notebook() from error
    if ipython.get_ipython() is None:
        raise _no_notebook()
    names = [uuid.uuid4().hex, uuid.uuid4().hex]
    shown: list[bool] = []

    def show(figure: Any, text: str, table: str) -> None:
        heading = {"text/html": f"<p>{escape(text)}</p>", "text/plain": text}
        plot = {_PLOTLY: plot_data(figure), "text/html": table, "text/plain": text}
        for name, bundle in zip(names, (heading, plot), strict=True):
            drawing.display(bundle, raw=True, display_id=name, update=bool(shown))
        shown.append(True)

    return show


def _no_notebook() -> CapabilityError:
    return CapabilityError(
        "A live view draws in a notebook, and this program is none. The query is not affected.",
        condition="REPORT_NO_NOTEBOOK",
        hint="Call it in a notebook, or write a page with the command pyspark-kafka report.",
    )


def _table(batches: list[BatchStats]) -> str:
    rows = [
        f"<tr><td>{each.title}</td><td>{_cell(each.rows)}</td><td>{_cell(each.duration_ms)}</td></tr>"
        for each in batches[-_LISTED_BATCHES:]
    ]
    return f"<table><tr><th>batch</th><th>rows</th><th>ms</th></tr>{''.join(rows)}</table>"


def _cell(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _line(title: str, batches: list[BatchStats]) -> str:
    summary = summarize(batches)
    rate = "" if summary.rows_per_second is None else f", {summary.rows_per_second:,.0f} rows/s since the first"
    last = f", last batch {batches[-1].batch_id}" if batches else ""
    rows = "rows unknown" if summary.rows is None else f"{summary.rows:,} rows"
    return f"{title}: {summary.batches:,} batches, {rows}{rate}{last}"
