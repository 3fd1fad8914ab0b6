"""The summary of a topic."""

from __future__ import annotations

from pyspark_kafka.client.cluster.metadata import PartitionMetadata, TopicMetadata
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.operations.topics import TopicSummary, summarize


def test_summary_counts_partitions_with_a_problem() -> None:
    # Leader, replicas, replicas in sync.
    partitions = [(1, 3, 3), (2, 3, 2), (-1, 2, 0)]
    topic = TopicMetadata(
        "t",
        is_internal=False,
        error_code=0,
        partitions=tuple(
            PartitionMetadata(TopicPartition("t", number), leader, 0, tuple(range(replicas)), tuple(range(in_sync)))
            for number, (leader, replicas, in_sync) in enumerate(partitions)
        ),
    )
    assert summarize(topic) == TopicSummary("t", 3, 3, is_internal=False, under_replicated=2, leaderless=1)
