"""Renders the page of a query from its batches: sentences, metrics, plots, tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark_kafka._ops.operations.reports.page import ReportPage, ReportTable, Tile
from pyspark_kafka._ops.operations.reports.plots import (
    MAX_POINTS,
    Bar,
    partitions_plot,
    phases_plot,
    rate_plot,
    rows_plot,
)
from pyspark_kafka._ops.operations.reports.timeline import find_gaps, find_standstill, summarize, thinned
from pyspark_kafka._ops.operations.text import counted, span_text
from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._ops.operations.reports.timeline import BatchStats, Gap

_MAX_GAPS = 20
_MAX_PARTITIONS = 200
_UNKNOWN = "unknown"
# A partition with at least this multiple of the others' rows delays its batch.
_SKEWED = 4


@dataclass(frozen=True, slots=True)
class ReportData:
    """The content of a page.

    Attributes:
        title: of the query.
        place: the source of the metrics.
        batches: in the order of their numbers.
        made_ms: the time at which the metrics were read, in ms since 1970.
        positions: the positions of the query, by topic-partition.
        rows: offsets that the batches cover, by topic-partition.
        behind: records behind the end of the log, by topic-partition; None without requests to brokers.
        sentences: further sentences, before the page's own.
        warnings: sentences about unknown values.
    """

    title: str
    place: str
    batches: Sequence[BatchStats]
    made_ms: int
    positions: Mapping[TopicPartition, int] = field(hash=False)
    rows: Mapping[TopicPartition, int] = field(hash=False)
    behind: Mapping[TopicPartition, int] | None = field(hash=False, default=None)
    sentences: Sequence[str] = ()
    warnings: Sequence[str] = ()


def build_page(report: ReportData) -> ReportPage:
    """Return the page. Pure, except for the time zone of the machine.

    Raises:
        MissingDependencyError: a package of the extra `report` is missing.
    """
    batches, summary = report.batches, summarize(report.batches)
    gaps = find_gaps(batches)
    shown = thinned(batches, MAX_POINTS)
    # Only batches with a time have a place on a time axis.
    plots = {"rate": rate_plot(shown, gaps), "rows": rows_plot(shown), "phases": phases_plot(shown)}
    if report.behind:
        bars = [Bar(printable(each.topic), each.partition, value) for each, value in report.behind.items()]
        plots["behind"] = partitions_plot(bars, "records behind the end of the log, by partition")
    if report.rows:
        bars = [Bar(printable(each.topic), each.partition, value) for each, value in report.rows.items()]
        plots["skew"] = partitions_plot(bars, "rows of these batches, by partition")
    # Of several unfinished batches, a restart runs the last one.
    unfinished = [each for each in batches[-1:] if not each.is_finished and not each.is_passed_over]
    headline, *sentences = _standstill_sentences(report)
    sentences += report.sentences
    if unfinished:
        sentences.append(
            f"Batch {unfinished[-1].batch_id} is begun and not finished: a restart runs it again, with the same ends."
        )
    if gaps:
        longest = gaps[0]
        sentences.append(_gap_sentence(longest))
    sentences += _skew_sentences(report.rows)
    tiles = [
        Tile("batches", f"{summary.batches:,}"),
        Tile("rows", _UNKNOWN if summary.rows is None else f"{summary.rows:,}"),
        Tile("rows per second, first to last", _rate(summary.rows_per_second)),
        Tile("median time of a batch", _UNKNOWN if summary.median_ms is None else span_text(summary.median_ms)),
        Tile("last batch", _ago(summary.to_ms, report.made_ms)),
        Tile("records behind", _behind(report)),
    ]
    zone = datetime.fromtimestamp(report.made_ms / 1000).astimezone().tzname()
    return ReportPage(
        title=printable(report.title),
        subtitle=f"{printable(report.place)} · {_moment(report.made_ms)} · times are {zone}",
        headline=headline,
        sentences=[printable(each) for each in sentences],
        warnings=[printable(each) for each in report.warnings],
        tiles=tiles,
        plots=plots,
        tables=[_gaps_table(gaps), _partitions_table(report)],
        footer="Rows are offsets: transaction markers, and records that compaction has removed, count too.",
    )


def _behind(report: ReportData) -> str:
    if report.behind is None:
        return _UNKNOWN
    total = sum(report.behind.values())
    unknown = len(report.positions.keys() - report.behind.keys())
    if not unknown:
        return f"{total:,}"
    of = "1 partition" if unknown == 1 else f"{unknown:,} partitions"
    return f"{total:,}, {of} {_UNKNOWN}" if total else _UNKNOWN


def _standstill_sentences(report: ReportData) -> list[str]:
    """Return the headline, empty if the last batch is recent, and what is known about the reason."""
    found = find_standstill(report.batches, report.made_ms)
    if found is None:
        return [""]
    length, waiting = span_text(found.length_ms), sum((report.behind or {}).values())
    is_asked = report.behind is not None and not report.positions.keys() - report.behind.keys()
    usual = "" if found.interval_ms is None else f"Usually a batch begins every {span_text(found.interval_ms)}. "
    if found.unfinished is not None:
        return [
            f"Batch {found.unfinished} has not finished for {length}",
            f"{usual}The batch is slow, or the query ended within it.",
        ]
    if is_asked and not waiting:
        return ["", f"No batch for {length}, and no records wait."]
    if found.length_ms <= found.longest_ms:
        return ["", f"No batch for {length}. {usual}The longest time was {span_text(found.longest_ms)}."]
    if waiting:
        return [
            f"The query seems to be down: no batch for {length}, and {counted(waiting, 'record')} behind",
            f"{usual}A stopped query, a finished availableNow and a wait for minOffsetsPerTrigger look the same.",
        ]
    return [
        f"No batch for {length}",
        f"{usual}The query is down, or has ended, or had no records: with a connection the page shows which wait.",
    ]


def _gap_sentence(gap: Gap) -> str:
    if gap.is_within:
        return (
            f"Batch {gap.after} took {span_text(gap.length_ms)}, from {_moment(gap.began_ms)}: far longer than usual. "
            "It was slow, or the query ended within it, as a driver that is killed does, and was started again."
        )
    after = "" if gap.rows is None else f"; batch {gap.before} then read {gap.rows:,} rows"
    length, began = span_text(gap.length_ms), _moment(gap.began_ms)
    return f"The longest pause was {length}, from {began}, after batch {gap.after}{after}."


def _skew_sentences(rows: Mapping[TopicPartition, int]) -> list[str]:
    if len(rows) < 2:
        return []
    worst = max(rows, key=lambda each: rows[each])
    others = (sum(rows.values()) - rows[worst]) / (len(rows) - 1)
    if rows[worst] < _SKEWED * max(others, 1):
        return []
    share = rows[worst] / sum(rows.values())
    return [
        f"Partition {worst.topic}-{worst.partition} has {share:.0%} of all rows: perhaps its keys are more frequent."
    ]


def _gaps_table(gaps: Sequence[Gap]) -> ReportTable:
    rows = [
        (
            _moment(each.began_ms),
            span_text(each.length_ms),
            str(each.after),
            str(each.before),
            "-" if each.rows is None else f"{each.rows:,}",
            "perhaps" if each.is_within else {None: "-", True: "yes", False: "no"}[each.is_restart],
        )
        for each in gaps[:_MAX_GAPS]
    ]
    note = f"{len(gaps) - _MAX_GAPS} more are left out." if len(gaps) > _MAX_GAPS else ""
    return ReportTable(
        "Gaps and restarts",
        ("from", "for", "after batch", "before batch", "rows after it", "restart"),
        rows,
        frozenset({2, 3, 4}),
        note if rows else "None: no pause, and no batch, was longer than a minute and ten times the usual one.",
    )


def _partitions_table(report: ReportData) -> ReportTable:
    behind = report.behind or {}
    order = sorted(report.positions, key=lambda each: (-behind.get(each, 0), -report.rows.get(each, 0), each))
    rows = [
        (
            printable(each.topic),
            str(each.partition),
            f"{report.positions[each]:,}",
            f"{report.rows[each]:,}" if each in report.rows else "-",
            f"{behind[each]:,}" if each in behind else "-",
        )
        for each in order[:_MAX_PARTITIONS]
    ]
    left = len(order) - len(rows)
    return ReportTable(
        "Partitions",
        ("topic", "partition", "position", "rows of these batches", "records behind"),
        rows,
        frozenset({1, 2, 3, 4}),
        f"{left:,} more are left out: the partitions with the least lag." if left else "",
    )


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _ago(at_ms: int | None, now_ms: int) -> str:
    return _UNKNOWN if at_ms is None else f"{span_text(max(0, now_ms - at_ms))} ago"


def _rate(per_second: float | None) -> str:
    return _UNKNOWN if per_second is None else f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.2f}"
