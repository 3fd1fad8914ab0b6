"""The end of a micro-batch, which an engine keeps, can be planned: by the run that returned it, and by later runs."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from kit.fixtures.offsets import install, ranges, stream_of
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka.connector import CompositeReadLimit, ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows
from pyspark_kafka.errors import DataLossError

topic_partitions = st.sampled_from([TopicPartition(topic, number) for topic in "tu" for number in range(2)])
# Most logs have all their records, and reach most positions: otherwise nearly every case is refused.
logs = st.dictionaries(topic_partitions, st.tuples(st.sampled_from([0] * 9 + [1]), st.integers(1, 6)), min_size=3)
positions = st.dictionaries(topic_partitions, st.integers(0, 2), max_size=3)
limits = st.sampled_from(
    [ReadAllAvailable(), ReadMaxRows(1), ReadMaxBytes(100), CompositeReadLimit((ReadMinRows(3, 1), ReadMaxRows(4)))]
)


@given(positions, logs, logs, limits, st.booleans())
def test_end_that_is_returned_is_never_refused_by_its_plan(
    position: dict[TopicPartition, int],
    before: dict[TopicPartition, tuple[int, int]],
    now: dict[TopicPartition, tuple[int, int]],
    limit: ReadAllAvailable,
    available_now: bool,
) -> None:
    """Any refusal belongs before the end: afterwards the engine repeats it, also when its cause is gone."""
    start = KafkaSourceOffset(position)
    with pytest.MonkeyPatch.context() as patches:
        cluster = install(patches)
        stream = stream_of("t", "u")
        if available_now:
            stream.prepareForTriggerAvailableNow()
        for cluster.logs in (before, now):
            try:
                end = stream.latestOffset(start, limit)
            except DataLossError:
                event("refused")
                return
            planned = ranges(stream, start, end)
            assert ranges(stream_of("t", "u"), start, end) == planned
            event("planned" if planned else "nothing to plan")
            if available_now:
                # The run keeps to its first look, and an engine starts it again for another.
                return
            start = end
