"""Properties of planning and offsets that hold whatever the topics look like."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._connector.planning import plan_ranges, rate_limit
from pyspark_kafka.errors import CheckpointError

topic_partitions = st.builds(
    TopicPartition,
    st.text(st.characters(codec="ascii", categories=["L", "N"], include_characters="._-"), min_size=1, max_size=6),
    st.integers(0, 2**31 - 1),
)
offsets = st.integers(0, 2**63 - 1)
limits = st.integers(1, 2**63 - 1)
# Small numbers too, where shares below one offset and equal shares happen.
sizes = st.one_of(st.integers(0, 20), st.integers(0, 2**62))
# (begin, size, whether the partition is new)
logs = st.dictionaries(topic_partitions, st.tuples(st.integers(0, 2**62), sizes, st.booleans()), max_size=12)
Logs = dict[TopicPartition, tuple[int, int, bool]]
Positions = dict[TopicPartition, int]


def split(layout: Logs) -> tuple[Positions, Positions, Positions]:
    start = {tp: begin for tp, (begin, _, new) in layout.items() if not new}
    earliest = {tp: begin for tp, (begin, _, new) in layout.items() if new}
    latest = {tp: begin + size for tp, (begin, size, _) in layout.items()}
    return start, earliest, latest


@given(logs, limits)
def test_a_limited_batch_moves_every_partition_that_waits_and_none_beyond_its_end(layout: Logs, limit: int) -> None:
    start, earliest, latest = split(layout)
    ends = rate_limit(start, earliest, latest, limit)
    assert ends.keys() == latest.keys()
    for topic_partition, (begin, size, _) in layout.items():
        assert begin <= ends[topic_partition] <= latest[topic_partition]
        assert (ends[topic_partition] > begin) == (size > 0)


@given(logs, limits)
def test_a_limited_batch_takes_no_more_than_the_limit_and_one_for_each_small_partition(
    layout: Logs, limit: int
) -> None:
    start, earliest, latest = split(layout)
    ends = rate_limit(start, earliest, latest, limit)
    taken = sum(ends[tp] - begin for tp, (begin, _, _) in layout.items())
    assert taken <= limit + sum(size > 0 for _, size, _ in layout.values())


@given(logs, limits)
def test_limited_batches_one_after_the_other_read_everything_once(layout: Logs, limit: int) -> None:
    # A few batches, then the rest: the bound keeps huge logs with small limits short.
    start, earliest, latest = split(layout)
    positions = [start]
    for _ in range(5):
        positions.append(rate_limit(positions[-1], earliest, latest, limit))
    positions.append(latest)
    read: dict[TopicPartition, list[tuple[int, int]]] = {}
    for before, after in pairwise(positions):
        for offset_range in plan_ranges(before, after, earliest).ranges:
            read.setdefault(offset_range.topic_partition, []).append(
                (offset_range.start_offset, offset_range.end_offset)
            )
    for topic_partition, (begin, size, _) in layout.items():
        ranges = read.get(topic_partition, [])
        assert bool(ranges) == (size > 0)
        if ranges:
            assert (ranges[0][0], ranges[-1][1]) == (begin, begin + size)
            assert all(one[1] == other[0] for one, other in pairwise(ranges))


@given(
    st.dictionaries(topic_partitions, offsets, max_size=10),
    st.dictionaries(topic_partitions, offsets, max_size=10),
    st.dictionaries(topic_partitions, offsets, max_size=10),
)
def test_every_partition_of_a_plan_is_read_or_complete_or_reported(
    start: Positions, end: Positions, earliest: Positions
) -> None:
    plan = plan_ranges(start, end, earliest)
    ranges = {offset_range.topic_partition: offset_range for offset_range in plan.ranges}
    reported = {finding.topic_partition for finding in plan.findings}
    assert len(ranges) == len(plan.ranges)
    for topic_partition in start.keys() | end.keys():
        begin = start.get(topic_partition, earliest.get(topic_partition))
        if topic_partition in ranges:
            assert (ranges[topic_partition].start_offset, ranges[topic_partition].end_offset) == (
                begin,
                end[topic_partition],
            )
            assert ranges[topic_partition].size > 0
        else:
            assert topic_partition in reported or begin == end[topic_partition]


@given(st.dictionaries(topic_partitions, offsets, max_size=12), st.randoms(use_true_random=False))
def test_offset_json_round_trips_and_does_not_depend_on_order(partitions: Positions, random: Random) -> None:
    items = list(partitions.items())
    random.shuffle(items)
    offset, shuffled = KafkaSourceOffset(partitions), KafkaSourceOffset(dict(items))
    assert shuffled.json() == offset.json()
    assert KafkaSourceOffset.from_json(offset.json()) == offset
    assert KafkaSourceOffset.from_dict(offset.to_dict()) == offset


@given(st.text(alphabet='{}[]":,-0129atE. ', max_size=30))
def test_any_text_is_an_offset_or_a_checkpoint_error(text: str) -> None:
    try:
        offset = KafkaSourceOffset.from_json(text)
    except CheckpointError as error:
        assert error.condition == "CHECKPOINT_OFFSET_INVALID"  # noqa: PT017 - either outcome is right
    else:
        assert all(position >= 0 for position in offset.partitions.values())


@given(logs, st.integers(max_value=0))
def test_no_limit_lets_a_stream_stand_still(layout: Logs, limit: int) -> None:
    start, earliest, latest = split(layout)
    with pytest.raises(ValueError, match="at least 1 offset"):
        rate_limit(start, earliest, latest, limit)
