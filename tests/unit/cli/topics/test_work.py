"""The sentence about a created topic."""

from __future__ import annotations

import pytest

from pyspark_kafka.cli.topics.work import creation_text
from pyspark_kafka.operations.topics import Creation, TopicSummary

ORDERS = TopicSummary("orders", 6, 3, is_internal=False, under_replicated=0, leaderless=0)


@pytest.mark.parametrize(
    ("done", "configs", "said"),
    [
        (Creation(True, ORDERS), {}, "Topic 'orders' is created: 6 partitions, replication factor 3."),
        (
            Creation(True, ORDERS),
            {"retention.ms": "1", "x": "\x1b"},
            "Topic 'orders' is created: 6 partitions, replication factor 3, retention.ms=1, x=\\x1b.",
        ),
        (
            Creation(False, ORDERS, ("It has 6 partitions, not 1.",)),
            {"a": "b"},
            (
                "Topic 'orders' exists already (6 partitions, replication factor 3), and is left as it is. It has 6 "
                "partitions, not 1. Its configuration was not compared."
            ),
        ),
    ],
)
def test_creation_says_what_there_is_now(done: Creation, configs: dict[str, str], said: str) -> None:
    assert creation_text(done, configs) == said
