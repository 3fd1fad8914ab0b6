"""Which topics are chosen, and the line of each."""

from __future__ import annotations

import re

import pytest

from pyspark_kafka.client.cluster.metadata import PartitionMetadata, TopicMetadata
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.operations.topics.summaries import TopicChoice, summarize


def topic(name: str, *partitions: tuple[int, int, int], internal: bool = False, error_code: int = 0) -> TopicMetadata:
    """Return a topic of partitions with leader, number of replicas, number of those in sync."""
    return TopicMetadata(
        name,
        is_internal=internal,
        error_code=error_code,
        partitions=tuple(
            PartitionMetadata(TopicPartition(name, number), leader, 0, tuple(range(replicas)), tuple(range(in_sync)))
            for number, (leader, replicas, in_sync) in enumerate(partitions)
        ),
    )


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (TopicChoice(), ["a-orders", "orders", "orders-eu"]),
        (TopicChoice(internal=True), ["__offsets", "a-orders", "orders", "orders-eu"]),
        (TopicChoice(prefix="orders"), ["orders", "orders-eu"]),
        (TopicChoice(pattern=re.compile("s-|a-")), ["a-orders", "orders-eu"]),
        (TopicChoice(prefix="o", pattern=re.compile("eu$")), ["orders-eu"]),
        (TopicChoice(names=frozenset({"__offsets", "missing"})), ["__offsets"]),
    ],
)
def test_choice_takes_topics_by_their_names(choice: TopicChoice, expected: list[str]) -> None:
    topics = [topic("orders-eu"), topic("orders"), topic("a-orders"), topic("__offsets", internal=True)]
    assert [each.name for each in summarize([*topics, topic("refused", error_code=29)], choice)] == expected


def test_summary_counts_partitions_that_are_not_well() -> None:
    (found,) = summarize([topic("t", (1, 3, 3), (2, 3, 2), (-1, 2, 0))], TopicChoice())
    assert (found.partitions, found.replication_factor) == (3, 3)
    assert (found.under_replicated, found.leaderless) == (2, 1)
