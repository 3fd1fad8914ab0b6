"""Edges of a read resolve to offsets."""

from __future__ import annotations

import pytest

from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Earliest, Latest, SpecificOffsets
from pyspark_kafka._connector.planning import (
    resolve_offsets,
)
from pyspark_kafka.errors import DataLossError, OptionError

P = [TopicPartition("orders", number) for number in range(40)]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Earliest(), {P[0]: 1, P[1]: 2}),
        (Latest(), {P[0]: 11, P[1]: 12}),
        (SpecificOffsets({P[0]: 5, P[1]: Latest()}), {P[0]: 5, P[1]: 12}),
        (SpecificOffsets({P[0]: Earliest(), P[1]: 10**12}), {P[0]: 1, P[1]: 10**12}),
        (SpecificOffsets({}, {"orders": Earliest()}), {P[0]: 1, P[1]: 2}),
    ],
)
def test_edges_resolve_to_an_offset_for_each_assigned_partition(
    limit: Earliest | Latest | SpecificOffsets, expected: dict[TopicPartition, int]
) -> None:
    assert resolve_offsets(limit, P[:2], {P[0]: 1, P[1]: 2}, {P[0]: 11, P[1]: 12}) == expected


def test_topics_and_partitions_may_be_mixed() -> None:
    other = TopicPartition("other", 0)
    limit = SpecificOffsets({P[0]: 5}, {"other": Latest()})
    assert resolve_offsets(limit, [P[0], other], {}, {other: 7}) == {P[0]: 5, other: 7}


def test_partitions_that_are_not_the_assigned_ones_are_refused() -> None:
    with pytest.raises(OptionError) as caught:
        resolve_offsets(SpecificOffsets({P[0]: 1, P[2]: 1}), P[:2], {}, {}, option="endingOffsets")
    assert said(caught.value) == (
        "[KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED] Option 'endingOffsets' must name exactly the partitions that are "
        "read: it names orders-2, which do not exist or are not read here and leaves out orders-1. Nothing was "
        "read. Hint: Name every partition, with -1 for latest and -2 for earliest if the offset does not matter, or "
        '{"<topic>":"earliest"} for a whole topic. Partitions may also have been created or deleted meanwhile.'
    )


def test_a_long_list_of_unnamed_partitions_is_cut_and_counted() -> None:
    with pytest.raises(OptionError, match="orders-19 and 20 more") as caught:
        resolve_offsets(SpecificOffsets({}), P, {}, {})
    assert "orders-20" not in str(caught.value)


def test_a_topic_without_partitions_is_refused_by_name() -> None:
    with pytest.raises(OptionError) as caught:
        resolve_offsets(SpecificOffsets({P[0]: 1}, {"gone": Earliest()}), P[:1], {}, {})
    assert caught.value.condition == "KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED"
    assert "Option 'startingOffsets' names the topics gone, of which no partition is read here." in str(caught.value)


def test_a_partition_that_disappears_meanwhile_is_data_loss() -> None:
    with pytest.raises(DataLossError, match=r"INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS.*orders-1:"):
        resolve_offsets(Earliest(), P[:2], {P[0]: 0}, {})
