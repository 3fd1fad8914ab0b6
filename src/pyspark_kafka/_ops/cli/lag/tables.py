"""A report of lag on a terminal, as lines elsewhere, and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from pyspark_kafka._base.offsets import timestamp_text
from pyspark_kafka._ops.cli.lag import words
from pyspark_kafka._ops.operations.lag.values import FAULTS, LagState, PartitionLag
from pyspark_kafka._ops.operations.text import counted
from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console, RenderableType

    from pyspark_kafka._ops.operations.lag.values import LagReport, TopicLag

# More partitions are summed by topic, unless all are requested.
FEW_PARTITIONS = 20
_BAR_CELLS = 12
# A reason is a sentence with a broker's words; a report has few of them.
_SHOWN_REASONS = 5
_NUMBERS = ("behind", "bytes", "oldest", "written", "read", "caught up in", "headroom")
# Left out of a terminal with less columns than this: a number that is cut is worse than none.
_RATES = ("written", "read", "caught up in")
_WIDE = 110


def print_report(console: Console, report: LagReport, *, every: bool, max_rows: int | None) -> None:
    """Print a report: a table on a terminal, a line for each topic or partition elsewhere."""
    if console.is_terminal:
        console.print(to_table(report, every=every, max_rows=max_rows, width=console.width))
        return
    console.print(heading(report), soft_wrap=True, markup=False, highlight=False)
    for line in to_lines(report, every=every):
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def to_json(report: LagReport, findings: Sequence[str]) -> str:
    """Return a report as JSON, with what is not as it should be."""
    return json.dumps({**report.to_json(), "findings": list(findings)}, indent=2, ensure_ascii=True)


def heading(report: LagReport) -> str:
    """Return whose positions they are, and of when."""
    since = "" if report.positions_at_ms is None else f", positions of {timestamp_text(report.positions_at_ms)}"
    return f"Lag of {printable(report.origin)}: {counted(len(report), 'partition')}{since}."


def to_lines(report: LagReport, *, every: bool) -> list[str]:
    """Return topics first, then the partitions if they are few or requested; the worst first; then what is missing."""
    lines = [words.topic_line(each) for each in report.topics()]
    if every or len(report) <= FEW_PARTITIONS:
        lines += [f"  {words.partition_line(each)}" for each in report.worst()]
    return [*lines, *waiting_lines(report), *reason_lines(report)]


def waiting_lines(report: LagReport) -> list[str]:
    """Return a line for each step with open windows: the topic-partition that holds it back most."""
    return [
        f"Step {each.step} ({printable(each.operator)}) waits for {printable(each.key_group)}: its watermark is "
        f"{timestamp_text(each.watermark_ms)}, and its first timer {timestamp_text(each.timer_ms)}."
        for each in report.waiting
    ]


def reason_lines(report: LagReport) -> list[str]:
    """Return the reasons for missing figures, each once."""
    reasons = report.reasons()
    lines = [
        f"Not known of {counted(number, 'partition')}: {printable(reason)}"
        for reason, number in reasons[:_SHOWN_REASONS]
    ]
    if len(reasons) > _SHOWN_REASONS:
        lines.append(f"… and {len(reasons) - _SHOWN_REASONS:,} more reasons; --json has all of them.")
    return lines


def to_table(
    report: LagReport,
    *,
    every: bool,
    max_rows: int | None = None,
    history: Mapping[str, Sequence[float]] | None = None,
    width: int = _WIDE,
) -> RenderableType:
    """Return a report for a terminal: by partition if they are few or requested, otherwise by topic.

    The sum of each topic with several partitions is below them.

    Args:
        report: what to show.
        every: whether to show each partition.
        max_rows: the number of rows that fit; None: all.
        history: records behind at earlier looks, by topic or topic-partition, the newest last; shown as sparklines.
        width: the columns of the terminal; a narrow one has no rates, and of bars and sparklines only one.
    """
    by_partition = every or len(report) <= FEW_PARTITIONS
    title = Text(heading(report), style="bold")
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("partition" if by_partition else "topic", no_wrap=True, overflow="ellipsis")
    is_wide = width >= _WIDE
    for _ in range(1 + (history is not None and is_wide)):
        table.add_column("", no_wrap=True)
    names = [name for name in _NUMBERS if is_wide or name not in _RATES]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    rows: Sequence[PartitionLag | TopicLag] = report.worst() if by_partition else report.topics()
    highest = max((each.records_behind or 0 for each in rows), default=0)
    for each in rows[:max_rows]:
        drawn = [_bar(each, highest)] if history is None or is_wide else []
        drawn += [] if history is None else [_course(each, history)]
        numbers = _figures(each)
        table.add_row(Text(row_key(each)), *drawn, *(numbers[name] for name in names))
    notes: list[RenderableType] = []
    if max_rows is not None and len(rows) > max_rows:
        notes.append(Text(f"… and {len(rows) - max_rows:,} more", style="dim"))
    if by_partition:
        notes += [Text(words.topic_line(each)) for each in report.topics() if each.partitions > 1]
    notes += [Text(line) for line in waiting_lines(report)]
    notes += [Text(line, style="yellow") for line in reason_lines(report)]
    return Group(table, *notes)


def row_key(each: PartitionLag | TopicLag) -> str:
    """Return the key of a row in a history."""
    return printable(str(each.topic_partition) if isinstance(each, PartitionLag) else each.topic)


def _bar(each: PartitionLag | TopicLag, highest: int) -> Text:
    return Text(words.bar(each.records_behind or 0, highest, _BAR_CELLS), style=_style(each))


def _course(each: PartitionLag | TopicLag, history: Mapping[str, Sequence[float]]) -> Text:
    return Text(words.sparkline(history.get(row_key(each), ())), style="cyan")


def _figures(each: PartitionLag | TopicLag) -> dict[str, Text]:
    """Return the cells of a row by the names of their columns."""
    style, behind, catch_up = _style(each), words.count(each.records_behind), ""
    if isinstance(each, PartitionLag):
        catch_up = words.span(each.catch_up_s)
        if not each.is_complete:
            behind = each.state.value
        elif each.state in FAULTS:
            behind = f"{behind} ({each.state.value})"
    return {
        "behind": Text(behind, style=style),
        "bytes": Text(words.size(each.bytes_behind)),
        "oldest": Text(words.span(each.seconds_behind)),
        "written": Text(words.rate(each.produced_per_s)),
        "read": Text(words.rate(each.consumed_per_s)),
        "caught up in": Text(catch_up),
        "headroom": Text(words.span(each.headroom_s, endless="unlimited"), style=style),
    }


def _style(each: PartitionLag | TopicLag) -> str:
    if isinstance(each, PartitionLag):
        at_fault, unknown = each.state in FAULTS, each.state is LagState.UNKNOWN
    else:
        at_fault, unknown = each.faults > 0, each.incomplete > 0
    return "red" if at_fault else "yellow" if unknown else "green"
