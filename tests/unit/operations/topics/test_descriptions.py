"""What is known of a topic, and what is not."""

from __future__ import annotations

import pytest

from pyspark_kafka.client.cluster.metadata import PartitionMetadata, TopicMetadata
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.operations.topics.descriptions import describe

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC = TopicMetadata(
    "t",
    partitions=(PartitionMetadata(ONE, 1, 0, (1, 2), (1, 2)), PartitionMetadata(TWO, 2, 0, (2, 1, 3), (2,))),
)


def test_records_are_the_offsets_between_begin_and_end() -> None:
    found = describe(TOPIC, {}, {ONE: 5, TWO: 7}, {ONE: 9, TWO: 7}, (), ())
    assert [each.records for each in found.partitions] == [4, 0]
    assert found.records == 4


@pytest.mark.parametrize(("begins", "ends"), [({ONE: 5}, {ONE: 9}), ({ONE: 5, TWO: 0}, {ONE: 9}), ({}, {})])
def test_sum_of_records_is_not_known_if_a_part_of_it_is_not(
    begins: dict[TopicPartition, int], ends: dict[TopicPartition, int]
) -> None:
    found = describe(TOPIC, {}, begins, ends, None, ("away",))
    assert found.records is None
    assert found.partitions[1].records is None


def test_replicas_that_are_behind_are_named() -> None:
    found = describe(TOPIC, {}, {}, {}, None, ())
    assert [each.behind_ids for each in found.partitions] == [(), (1, 3)]
