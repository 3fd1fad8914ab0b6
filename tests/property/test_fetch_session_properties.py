"""A fetch session under any order of responses and faults: every offset once, in order, and it always ends."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kit.fakes.handlers.fetch import BrokerLog
from kit.fakes.scripts import Close, Silence
from kit.fakes.simulated_cluster import SimulatedCluster, SimulatedRead, batches_of
from pyspark_kafka._base.model import OffsetRange, TopicPartition

BATCHES = 3
END = 10 * BATCHES
# Codes that pass: the leader moved, epochs differ, storage, elections, topic ids that brokers do not know yet.
PASSING = [5, 6, 9, 56, 74, 75, 78, 100, 103]

faults = st.one_of(
    st.tuples(st.just("none"), st.just(0), st.just(0)),
    st.tuples(st.just("refuse"), st.integers(0, 3), st.sampled_from(PASSING)),
    st.tuples(st.just("refuse all"), st.just(0), st.sampled_from(PASSING)),
    st.tuples(st.just("move"), st.integers(0, 3), st.sampled_from([6, 74])),
    st.tuples(st.just("hint"), st.integers(0, 3), st.sampled_from([6, 74])),
    st.tuples(st.just("cut"), st.integers(0, 3), st.integers(1, 300)),
    st.tuples(st.just("empty"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("leave out"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("twice"), st.just(0), st.just(0)),
    st.tuples(st.just("throttle"), st.just(0), st.integers(1, 5_000)),
    st.tuples(st.just("close"), st.just(0), st.just(0)),
    st.tuples(st.just("silence"), st.just(0), st.just(0)),
)
bounds = st.tuples(st.integers(0, END), st.integers(0, END)).map(sorted)


class Brokers:
    """Responds as a broker does, with one fault of a list in each response while there are some left."""

    def __init__(self, cluster: SimulatedCluster, left: list[tuple[str, int, int]]) -> None:
        self.cluster = cluster
        self.left = left

    def __call__(self, request: Any) -> Any:
        kind, number, detail = self.left.pop() if self.left else ("none", 0, 0)
        partitions = [key[1] for key in self.cluster.leaders]
        number %= len(partitions)
        log = BrokerLog({("t", each): batches_of(BATCHES) for each in partitions}, self.cluster.topic_ids)
        if kind in ("refuse", "refuse all"):
            log.errors = {("t", each): (detail, -1, -1) for each in partitions if kind != "refuse" or each == number}
        elif kind in ("move", "hint"):
            leader, epoch = self.cluster.leaders["t", number]
            self.cluster.leaders["t", number] = (1 - leader, epoch + 1)
            hint = (detail, 1 - leader, epoch + 1) if kind == "hint" else (detail, -1, -1)
            log.errors = {("t", number): hint}
            log.nodes = [(1 - leader, f"broker-{1 - leader}", 9092)]
        if kind in ("close", "silence"):
            return Close() if kind == "close" else Silence()
        response = log(request)
        entries = response.responses[0].partitions
        for place, entry in enumerate(entries):
            if entry.partition_index == number and kind == "cut" and place > 0:
                entry.records = entry.records[:-detail]
            elif entry.partition_index == number and kind == "empty":
                entry.records = b""
        if kind == "leave out":
            response.responses[0].partitions = [entry for entry in entries if entry.partition_index != number]
        elif kind == "twice":
            response.responses[0].partitions = [*entries, *entries]
        elif kind == "throttle":
            response.throttle_time_ms = detail
        return response


@given(
    ranges=st.lists(bounds, min_size=1, max_size=4),
    leaders=st.lists(st.integers(0, 1), min_size=4, max_size=4),
    left=st.lists(faults, min_size=12, max_size=12),
    latencies=st.lists(st.integers(0, 400), max_size=20),
    max_bytes=st.sampled_from([1, 500, 8 << 20]),
)
def test_session_delivers_every_offset_once_and_in_order(
    ranges: list[list[int]],
    leaders: list[int],
    left: list[tuple[str, int, int]],
    latencies: list[int],
    max_bytes: int,
) -> None:
    cluster = SimulatedCluster()
    cluster.add_topic("t", partitions=len(ranges))
    for number in range(len(ranges)):
        cluster.leaders["t", number] = (leaders[number], 3)
        cluster.ends["t", number] = (0, END)
    cluster.script(Brokers(cluster, left))
    wanted = [OffsetRange(TopicPartition("t", number), *bound) for number, bound in enumerate(ranges)]
    read = SimulatedRead(cluster, wanted, poll_timeout_ms=600_000, max_bytes_per_fetch=max_bytes)
    read.latency_s = lambda: latencies.pop() / 1000 if latencies else 0.001
    expected = {each.topic_partition: [*range(each.start_offset, each.end_offset)] for each in wanted if each.size}
    assert read.values() == expected
    assert read.session.ranges.active == []
