"""ListOffsets: what is asked for each partition, and what a response means."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
from pyspark_kafka._client.client.queries.offset_messages import OffsetSpec, build_request, parse_response
from pyspark_kafka.errors import BrokerError, ProtocolError

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
SPECS: dict[TopicPartition, OffsetSpec] = {T0: Earliest(), T1: Latest(), U0: AtTimestamp(1_234)}
PARTITIONS = [PartitionMetadata(topic_partition, 0, 7) for topic_partition in SPECS]


def response(*entries: tuple[TopicPartition, int, int]) -> Any:
    """Return a response with an entry of topic-partition, code and offset each."""
    return SimpleNamespace(
        topics=[
            SimpleNamespace(
                name=tp.topic,
                partitions=[SimpleNamespace(partition_index=tp.partition, error_code=code, offset=offset)],
            )
            for tp, code, offset in entries
        ]
    )


def codes(failures: dict[TopicPartition, Any]) -> dict[TopicPartition, int]:
    assert all(isinstance(error, BrokerError) for error in failures.values())
    return {topic_partition: int(error.code) for topic_partition, error in failures.items()}


def test_request_has_the_timestamps_and_epochs_of_all_partitions() -> None:
    request = build_request(PARTITIONS, SPECS, IsolationLevel.READ_COMMITTED, 0.4)
    found = [(topic.name, [entry.timestamp for entry in topic.partitions]) for topic in request.topics]
    assert found == [("t", [-2, -1]), ("u", [1_234])]
    assert {entry.current_leader_epoch for topic in request.topics for entry in topic.partitions} == {7}
    assert (request.isolation_level, request.timeout_ms) == (1, 1)


def test_offsets_and_failures_are_told_apart() -> None:
    offsets, failures = parse_response(response((T0, 0, 4), (T1, 6, -1), (U0, 0, 9)), PARTITIONS, SPECS, "b:1")
    assert offsets == {T0: 4, U0: 9}
    assert codes(failures) == {T1: 6}


def test_partition_without_a_record_at_its_time_is_in_neither() -> None:
    offsets, failures = parse_response(response((T0, 0, 4), (T1, 0, 5), (U0, 0, -1)), PARTITIONS, SPECS, "b:1")
    assert (offsets, failures) == ({T0: 4, T1: 5}, {})


def test_end_that_is_not_known_yet_is_a_failure() -> None:
    offsets, failures = parse_response(response((T0, 0, 4), (T1, 0, -1), (U0, 0, 9)), PARTITIONS, SPECS, "b:1")
    assert T1 not in offsets
    assert codes(failures) == {T1: 78}


def test_partition_that_a_response_leaves_out_counts_as_not_led() -> None:
    offsets, failures = parse_response(response((T0, 0, 4)), PARTITIONS, SPECS, "b:1")
    assert offsets == {T0: 4}
    assert codes(failures) == {T1: 6, U0: 6}


def test_entry_that_was_not_asked_for_is_ignored() -> None:
    other = TopicPartition("other", 0)
    offsets, failures = parse_response(response((other, 0, 1), (T0, 0, 4)), PARTITIONS[:1], SPECS, "b:1")
    assert (offsets, failures) == ({T0: 4}, {})


def test_partition_that_a_response_names_twice_is_asked_for_again() -> None:
    """One of the entries is another partition's: its offset would be taken for this one's."""
    offsets, failures = parse_response(response((T0, 0, 4), (T1, 0, 9), (T0, 0, 7)), PARTITIONS, SPECS, "h:1")
    assert offsets == {T1: 9}
    assert isinstance(failures[T0], ProtocolError)
    assert failures[T0].retriable
    assert "to ListOffsets names t-0 twice" in str(failures[T0])
