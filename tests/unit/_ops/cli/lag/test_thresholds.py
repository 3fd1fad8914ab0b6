"""What a report means for the exit status."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_kafka._ops.cli.common.outcome import ExitStatus
from pyspark_kafka._ops.cli.lag.thresholds import Thresholds, judge_report
from pyspark_kafka._ops.operations.lag.values import LagReport, LagState, PartitionLag

BEHIND = PartitionLag("t", 0, LagState.KNOWN, 0, 0, 100, 100, 0, seconds_behind=60.0, headroom_s=3_600.0)
UNKNOWN = PartitionLag("t", 1, missing=("its log: away",))
LOST = PartitionLag("t", 2, LagState.LOST, 0, 5, 100, 95, 5)


def status(thresholds: Thresholds, *partitions: PartitionLag) -> ExitStatus:
    return judge_report(LagReport("g", 0, None, partitions), thresholds)[0]


@pytest.mark.parametrize(
    ("thresholds", "expected"),
    [
        (Thresholds(), ExitStatus.WELL),
        (Thresholds(max_records=100, max_seconds=60.0, min_headroom_s=3_600.0), ExitStatus.WELL),
        (Thresholds(max_records=99), ExitStatus.FINDING),
        (Thresholds(max_seconds=59.9), ExitStatus.FINDING),
        (Thresholds(min_headroom_s=3_600.1), ExitStatus.FINDING),
    ],
)
def test_figure_beyond_what_is_allowed_is_a_finding(thresholds: Thresholds, expected: ExitStatus) -> None:
    assert status(thresholds, BEHIND) is expected


def test_partition_that_is_not_known_makes_the_report_incomplete() -> None:
    assert status(Thresholds(), BEHIND, UNKNOWN) is ExitStatus.INCOMPLETE


def test_figure_that_is_not_known_counts_only_if_it_is_asked_for() -> None:
    timeless = PartitionLag("t", 0, LagState.KNOWN, 0, 0, 9, 9, 0)
    assert status(Thresholds(max_records=9), timeless) is ExitStatus.WELL
    assert status(Thresholds(max_seconds=1.0), timeless) is ExitStatus.INCOMPLETE
    assert status(Thresholds(min_headroom_s=1.0), timeless) is ExitStatus.INCOMPLETE


def test_headroom_of_which_a_limit_is_not_known_is_not_enough() -> None:
    partly = replace(BEHIND, headroom_unknown=("retention.bytes",))
    assert status(Thresholds(max_seconds=60.0), partly) is ExitStatus.WELL
    assert status(Thresholds(min_headroom_s=3_600.0), partly) is ExitStatus.INCOMPLETE
    assert status(Thresholds(min_headroom_s=3_601.0), partly) is ExitStatus.FINDING


def test_finding_counts_more_than_what_is_not_known() -> None:
    assert status(Thresholds(max_records=1), BEHIND, UNKNOWN) is ExitStatus.FINDING


@pytest.mark.parametrize("state", [LagState.LOST, LagState.GONE, LagState.RECREATED, LagState.BEYOND_END])
def test_fault_is_a_finding_without_any_threshold(state: LagState) -> None:
    found, (sentence,) = judge_report(LagReport("g", 0, None, (PartitionLag("t", 4, state),)), Thresholds())
    assert found is ExitStatus.FINDING
    assert sentence == f"The position is of no use, or records are lost: t-4 ({state.value})."


def test_sentences_name_the_worst_partitions_and_count_the_others() -> None:
    many = [PartitionLag("t", number, LagState.KNOWN, 0, 0, 9, number, 0) for number in range(1, 6)]
    _, (sentence,) = judge_report(LagReport("g", 0, None, tuple(many)), Thresholds(max_records=0))
    assert sentence == (
        "More than 0 records behind: t-5 (5 records behind), t-4 (4 records behind), t-3 (3 records behind) and 2 more."
    )


def test_fault_is_not_judged_by_figures_as_well() -> None:
    assert len(judge_report(LagReport("g", 0, None, (LOST,)), Thresholds(max_records=1, max_seconds=1.0))[1]) == 1
