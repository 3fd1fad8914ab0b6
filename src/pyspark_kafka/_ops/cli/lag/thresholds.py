"""Whether a report is as it should be: what the user allows, and what could not be found out. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._ops.cli.common.outcome import ExitStatus
from pyspark_kafka._ops.cli.lag.words import span
from pyspark_kafka._ops.operations.lag.values import FAULTS
from pyspark_kafka._ops.operations.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._ops.operations.lag.values import LagReport, PartitionLag

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits for each partition; None: no limit.

    Attributes:
        max_records: records behind.
        max_seconds: seconds behind.
        min_headroom_s: seconds until brokers may delete the record at the position.
    """

    max_records: int | None = None
    max_seconds: float | None = None
    min_headroom_s: float | None = None


def judge_report(report: LagReport, thresholds: Thresholds) -> tuple[ExitStatus, list[str]]:
    """Return the status of a report, and a sentence for each thing that is not as it should be.

    What is wrong for certain counts more than what could not be found out.
    """
    faults = [each for each in report.partitions if each.state in FAULTS]
    findings = [_sentence(faults, lambda each: each.state.value, "the position is of no use, or records are lost")]
    limits: list[tuple[float | None, Callable[[PartitionLag], float | None], Callable[[PartitionLag], str], str]] = [
        (
            thresholds.max_records,
            lambda each: each.records_behind,
            lambda each: f"{counted(each.records_behind or 0, 'record')} behind",
            f"more than {counted(thresholds.max_records or 0, 'record')} behind",
        ),
        (
            thresholds.max_seconds,
            lambda each: each.seconds_behind,
            lambda each: f"{span(each.seconds_behind)} behind",
            f"the record at the position is older than {span(thresholds.max_seconds)}",
        ),
        (
            None if thresholds.min_headroom_s is None else -thresholds.min_headroom_s,
            lambda each: None if each.headroom_s is None else -each.headroom_s,
            lambda each: f"headroom {span(each.headroom_s)}",
            f"brokers may delete the record at the position in less than {span(thresholds.min_headroom_s)}",
        ),
    ]
    usable = [each for each in report.worst() if each.state not in FAULTS]
    unknown = [each for each in usable if not each.is_complete]
    for limit, figure, words, what in limits:
        if limit is None:
            continue
        above = [each for each in usable if (value := figure(each)) is not None and value > limit]
        findings.append(_sentence(above, words, what))
        unknown += [each for each in usable if figure(each) is None]
    if thresholds.min_headroom_s is not None:
        # The shorter time of both limits counts, and one of them is not known.
        unknown += [each for each in usable if each.headroom_unknown]
    told = [finding for finding in findings if finding]
    status = ExitStatus.FINDING if told else ExitStatus.INCOMPLETE if unknown else ExitStatus.WELL
    return status, told


def _sentence(partitions: list[PartitionLag], words: Callable[[PartitionLag], str], what: str) -> str:
    if not partitions:
        return ""
    named = ", ".join(f"{each.topic_partition} ({words(each)})" for each in partitions[:_SHOWN])
    more = f" and {len(partitions) - _SHOWN:,} more" if len(partitions) > _SHOWN else ""
    return f"{what[0].upper()}{what[1:]}: {named}{more}."
