"""`pyspark-kafka lag --watch`: a report again and again, with what it was before."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.text import Text

from pyspark_kafka._ops.cli.common.pipes import is_left
from pyspark_kafka._ops.cli.lag.tables import FEW_PARTITIONS, print_report, row_key, to_table
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, RenderableType

    from pyspark_kafka._ops.operations.lag.values import LagReport, PartitionLag, TopicLag

# How many looks a sparkline has.
_LOOKS = 20
# Lines of a terminal that are not rows of the table.
_OTHER_LINES = 10


class History:
    """Records behind at the last looks, by row.

    Args:
        every: whether rows are partitions, however many there are.
    """

    def __init__(self, *, every: bool) -> None:
        self._every = every
        self.values: dict[str, deque[float]] = {}

    def add_lag_report(self, report: LagReport) -> None:
        """Record one more measurement; rows that are gone are forgotten."""
        by_partition = self._every or len(report) <= FEW_PARTITIONS
        rows: Sequence[PartitionLag | TopicLag] = report.partitions if by_partition else report.topics()
        kept = self.values
        self.values = {}
        for each in rows:
            values = kept.get(row_key(each), deque(maxlen=_LOOKS))
            # An unknown number is not 0, which would look like a query that has caught up.
            if each.records_behind is not None:
                values.append(float(each.records_behind))
            self.values[row_key(each)] = values


def watch(
    console: Console,
    look: Callable[[LagReport | None], LagReport],
    interval_s: float,
    *,
    every: bool,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Show reports until the user presses Ctrl-C, or the reader of a pipe leaves.

    A look that fails is shown as its error, and the next one follows.

    Args:
        console: where to show them: drawn in place on a terminal, one below the other elsewhere.
        look: returns a report; is given the one before.
        interval_s: seconds between the ends of two looks.
        every: whether to show each partition.
        pause: waits for seconds; tests pass their own.

    Raises:
        ConnectorError: the first look failed.
    """
    report = look(None)
    history = History(every=every)
    history.add_lag_report(report)
    if not console.is_terminal:
        while True:
            print_report(console, report, every=every, max_rows=None)
            if is_left():
                return
            pause(interval_s)
            report = _next(console, look, report)
    with Live(_drawn(console, report, history, every, ""), console=console, auto_refresh=False) as live:
        while True:
            pause(interval_s)
            failure = ""
            try:
                report = look(report)
                history.add_lag_report(report)
            except ConnectorError as error:
                failure = str(error)
            live.update(_drawn(console, report, history, every, failure), refresh=True)


def _next(console: Console, look: Callable[[LagReport | None], LagReport], report: LagReport) -> LagReport:
    try:
        return look(report)
    except ConnectorError as error:
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        return report


def _drawn(console: Console, report: LagReport, history: History, every: bool, failure: str) -> RenderableType:
    max_rows = max(1, console.height - _OTHER_LINES)
    table = to_table(report, every=every, max_rows=max_rows, history=history.values, width=console.width)
    return Group(table, Text(failure, style="red")) if failure else table
