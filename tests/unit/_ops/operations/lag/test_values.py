"""Reports: the worst first, sums by topic, JSON."""

from __future__ import annotations

import json
import math

from pyspark_kafka._ops.operations.lag.values import LagReport, LagState, PartitionLag


def partition(number: int, behind: int | None, topic: str = "t", **fields: object) -> PartitionLag:
    state = LagState.UNKNOWN if behind is None else LagState.KNOWN
    return PartitionLag(topic, number, **{"state": state, "position": 0, "records_behind": behind, **fields})  # type: ignore[arg-type]


def report(*partitions: PartitionLag, missing: tuple[str, ...] = ()) -> LagReport:
    return LagReport("consumer group 'g'", 1_000, 900, partitions, missing, 12)


def test_worst_partitions_are_faults_then_unknown_ones_then_the_oldest() -> None:
    young, old = partition(0, 10, seconds_behind=1.0), partition(1, 5, seconds_behind=60.0)
    unknown, lost = partition(2, None), partition(3, 1, state=LagState.LOST)
    found = report(young, old, unknown, lost)
    assert found.worst() == (lost, unknown, old, young)
    assert found.worst(1) == (lost,)


def test_worst_partitions_are_by_records_if_times_are_not_known() -> None:
    few, many = partition(0, 1), partition(1, 9)
    assert report(few, many).worst() == (many, few)


def test_topics_have_the_sums_of_what_is_known_and_the_least_headroom() -> None:
    found = report(
        partition(0, 10, bytes_behind=100, seconds_behind=3.0, headroom_s=50.0, produced_per_s=2.0),
        partition(1, 5, seconds_behind=9.0, headroom_s=math.inf),
        partition(2, None),
        partition(0, 20, "other"),
        partition(1, None, "other", state=LagState.GONE),
        partition(0, None, "gone", state=LagState.GONE),
        partition(0, 0, "partly"),
        partition(1, None, "partly", state=LagState.RECREATED),
    )
    gone, other, partly, first = sorted(found.topics(), key=lambda each: each.topic)
    # 0 would say that nothing is behind.
    assert (gone.records_behind, partly.records_behind) == (None, None)
    assert (other.topic, other.records_behind, other.faults, other.incomplete) == ("other", 20, 1, 0)
    assert (first.partitions, first.records_behind, first.incomplete) == (3, 15, 1)
    assert (first.bytes_behind, first.seconds_behind, first.headroom_s, first.produced_per_s) == (100, 9.0, 50.0, 2.0)
    assert (other.bytes_behind, other.seconds_behind, other.headroom_s) == (None, None, None)


def test_report_is_complete_if_it_is_known_of_each_partition_how_far_it_is_behind() -> None:
    assert report(partition(0, 1), partition(1, 0)).is_complete
    assert not report(partition(0, 1), partition(1, None, state=LagState.GONE)).is_complete
    assert not report(partition(0, 1), partition(1, None)).is_complete


def test_reasons_are_counted_once_each() -> None:
    found = report(partition(0, 1, missing=("a", "b")), partition(1, 1, missing=("a",)), missing=("c",))
    assert found.reasons() == (("c", 2), ("a", 2), ("b", 1))


def test_json_has_null_for_a_time_without_an_end() -> None:
    text = json.dumps(report(partition(0, 1, headroom_s=math.inf, missing=("a",))).to_json(), allow_nan=False)
    told = json.loads(text)
    assert (told["origin"], told["complete"], told["elapsed_ms"]) == ("consumer group 'g'", True, 12)
    (row,) = told["partitions"]
    assert (row["topic"], row["state"], row["headroom_s"], row["missing"]) == ("t", "known", None, ["a"])
    assert told["topics"][0]["headroom_s"] is None


def test_report_is_iterable_by_partition() -> None:
    found = report(partition(0, 1), partition(1, 2))
    assert [each.partition for each in found] == [0, 1]
    assert len(found) == 2
