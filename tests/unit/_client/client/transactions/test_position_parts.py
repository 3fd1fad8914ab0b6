"""How positions of a group are divided among requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.position_parts import split_positions


@given(
    st.dictionaries(
        st.builds(TopicPartition, st.sampled_from(["a", "b" * 249]), st.integers(0, 5_000)), st.integers(0), max_size=60
    ),
    st.integers(0, 6_000),
)
def test_parts_are_all_positions_once_and_none_is_too_large(positions: dict[TopicPartition, int], more: int) -> None:
    positions |= {TopicPartition("c", number): number for number in range(more)}
    parts = list(split_positions("group", positions))
    merged = [
        (TopicPartition(topic, number), offset)
        for part in parts
        for topic, offsets in part.items()
        for number, offset in offsets.items()
    ]
    assert len(merged) == len(positions)
    assert dict(merged) == positions
    assert all(0 < sum(map(len, part.values())) <= 2_000 for part in parts)


def test_long_names_make_smaller_parts() -> None:
    positions = {TopicPartition("t" * 249, number): 0 for number in range(10_000)}
    sizes = [len(part["t" * 249]) for part in split_positions("g" * 1_000, positions)]
    assert max(sizes) * (1_000 + 249 + 64) < 1024 * 1024
    assert sum(sizes) == 10_000


def test_long_texts_make_smaller_parts() -> None:
    positions = {TopicPartition("t", number): "x" * 1_000 for number in range(2_000)}
    sizes = [len(part["t"]) for part in split_positions("g", positions, str)]
    assert max(sizes) * (1_000 + 64) < 1024 * 1024
    assert sum(sizes) == 2_000
