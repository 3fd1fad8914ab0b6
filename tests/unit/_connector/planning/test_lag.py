"""What waits to be read, and how far a query is behind."""

from __future__ import annotations

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.planning import lag_metrics, most_behind, offsets_behind

A, B, C = (TopicPartition("t", number) for number in range(3))


@pytest.mark.parametrize(
    ("position", "latest", "expected"),
    [
        ({A: 3, B: 5}, {A: 10, B: 5}, 7),
        ({}, {}, 0),
        # Counted from 0, whatever its first offset is.
        ({A: 3}, {A: 3, B: 100}, 100),
        ({A: 3, B: 50}, {A: 13, B: 45}, 5),
        # What is gone does not wait.
        ({A: 3, C: 5}, {A: 10}, 7),
    ],
)
def test_waiting_offsets_are_the_sum_of_all_partitions(
    position: dict[TopicPartition, int], latest: dict[TopicPartition, int], expected: int
) -> None:
    assert sum(offsets_behind(position, latest).values()) == expected


def figures(consumed: dict[TopicPartition, int] | None, latest: dict[TopicPartition, int] | None) -> list[str]:
    found = lag_metrics(consumed, latest)
    assert list(found) in ([], ["minOffsetsBehindLatest", "maxOffsetsBehindLatest", "avgOffsetsBehindLatest"])
    return list(found.values())


def test_lags_are_formatted_as_text() -> None:
    assert figures({A: 3, B: 5}, {A: 9, B: 5}) == ["0", "6", "3.0"]
    assert figures({A: 0, B: 0, C: 0}, {A: 1, B: 0, C: 0}) == ["0", "1", "0.3333333333333333"]


def test_unread_partition_lags_by_its_whole_log() -> None:
    assert figures({A: 3}, {A: 3, B: 7}) == ["0", "7", "3.5"]


@pytest.mark.parametrize(
    ("consumed", "latest"), [(None, {A: 1}), ({A: 1}, None), (None, None), ({A: 1}, {}), ({}, {A: 1})]
)
def test_figures_are_left_out_if_an_end_is_unknown(
    consumed: dict[TopicPartition, int] | None, latest: dict[TopicPartition, int] | None
) -> None:
    assert lag_metrics(consumed, latest) == {}


def test_most_behind_leaves_out_partitions_that_are_not_behind() -> None:
    assert most_behind({A: 3, B: 0, C: 7}, 5) == {C: 7, A: 3}
    assert most_behind({A: 3, B: -2, C: 7}, 1) == {C: 7}
