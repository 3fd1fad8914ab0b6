"""Fetch requests are sessionless; topics without an id cap the version; the bytes asked for follow what was seen."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest

from kit.reading import decoded_fetch
from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._client.client.fetch.request import FetchFrame, FetchPosition, RecordSize, RecordSizes, RequestSize
from pyspark_kafka._client.options import FetchOptions

MIB = 1 << 20
TOPIC_ID = uuid.uuid4()


def position(topic: str, partition: int, topic_id: uuid.UUID | None) -> FetchPosition:
    return FetchPosition(TopicPartition(topic, partition), 5, topic_id, 3, 1000)


def test_a_request_is_sessionless_and_carries_isolation_epoch_and_rack() -> None:
    options = FetchOptions(isolation_level=IsolationLevel.READ_COMMITTED, max_wait_ms=77, min_bytes=2)
    frame = FetchFrame([position("t", 1, TOPIC_ID)], options, max_bytes=999, rack="r1")
    assert frame.max_version is None
    request = decoded_fetch(frame, 16)
    assert (request.session_id, request.session_epoch) == (0, -1)
    assert (request.isolation_level, request.max_wait_ms, request.min_bytes) == (1, 77, 2)
    assert (request.max_bytes, request.rack_id) == (999, "r1")
    partition = request.topics[0].partitions[0]
    assert (partition.partition, partition.fetch_offset, partition.current_leader_epoch) == (1, 5, 3)
    assert (partition.last_fetched_epoch, partition.partition_max_bytes) == (-1, 1000)
    assert request.topics[0].topic_id == TOPIC_ID


def test_one_topic_without_an_id_caps_the_whole_request_at_version_12() -> None:
    positions = [position("a", 0, TOPIC_ID), position("b", 0, None)]
    assert FetchFrame(positions, FetchOptions(), max_bytes=1, rack=None).max_version == 12


def test_partitions_of_a_topic_stand_together() -> None:
    positions = [position("a", 0, TOPIC_ID), position("b", 0, TOPIC_ID), position("a", 1, TOPIC_ID)]
    request = decoded_fetch(FetchFrame(positions, FetchOptions(), max_bytes=1, rack=None), 12)
    assert [(topic.topic, [p.partition for p in topic.partitions]) for topic in request.topics] == [
        ("a", [0, 1]),
        ("b", [0]),
    ]


@pytest.mark.parametrize("version", range(FetchFrame.valid_versions[0], FetchFrame.valid_versions[1] + 1))
@pytest.mark.parametrize("rack", [None, "r1", "ñ" * 200], ids=["no rack", "rack", "long rack"])
def test_request_is_decoded_by_kafka_python_as_it_was_built(version: int, rack: str | None) -> None:
    names = ["orders", "ñ" * 120, *(f"t{number}" for number in range(200))]
    ids = {name: uuid.uuid4() for name in names}
    wanted = [
        FetchPosition(TopicPartition(name, number), 2**40 + number, ids[name], number - 1, 1 << number)
        for number in range(3)
        for name in names
    ]
    options = FetchOptions(isolation_level=IsolationLevel.READ_COMMITTED, max_wait_ms=77, min_bytes=2)

    data = b"".join(FetchFrame(wanted, options, max_bytes=2**31 - 1, rack=rack).build(version, 99, "clïent"))

    request = FetchRequest.decode(data, version=version, header=True, framed=True)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    assert (request.header.correlation_id, request.header.client_id) == (99, "clïent")
    assert (request.header.request_api_key, request.header.request_api_version) == (1, version)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level) == (77, 2, 2**31 - 1, 1)
    by_id = {topic_id: name for name, topic_id in ids.items()}
    found = {
        (by_id[topic.topic_id] if version >= 13 else topic.topic, entry.partition): entry
        for topic in request.topics
        for entry in topic.partitions
    }
    assert set(found) == {(each.topic_partition.topic, each.topic_partition.partition) for each in wanted}
    for each in wanted:
        entry = found[each.topic_partition.topic, each.topic_partition.partition]
        assert (entry.fetch_offset, entry.partition_max_bytes) == (each.offset, each.max_bytes)
        assert version < 9 or entry.current_leader_epoch == each.leader_epoch
    assert version < 11 or request.rack_id == (rack or "")
    # kafka-python encodes it to the same bytes: each other field has its value for a client, nothing stands behind it.
    request.with_header(correlation_id=99, client_id="clïent")
    assert request.encode(version=version, header=True, framed=True) == data


_INT32S = st.integers(0, 2**31 - 1)


@given(
    version=st.integers(*FetchFrame.valid_versions),
    partitions=st.lists(
        st.tuples(st.sampled_from(["a", "orders", "ñ" * 120]), _INT32S), unique=True, min_size=1, max_size=20
    ),
    data=st.data(),
)
def test_request_with_random_values_is_encoded_as_kafka_python_does(
    version: int, partitions: list[tuple[str, int]], data: st.DataObject
) -> None:
    ids = {topic: data.draw(st.uuids()) for topic, _ in partitions}
    wanted = [
        FetchPosition(
            TopicPartition(*partition),
            data.draw(st.integers(0, 2**63 - 1)),
            ids[partition[0]],
            data.draw(st.integers(-1, 2**31 - 1)),
            data.draw(_INT32S),
        )
        for partition in partitions
    ]
    options = FetchOptions(max_wait_ms=data.draw(_INT32S), min_bytes=data.draw(_INT32S))
    max_bytes, correlation_id, client_id = data.draw(_INT32S), data.draw(_INT32S), data.draw(st.text(max_size=200))

    frame = FetchFrame(wanted, options, max_bytes=max_bytes, rack=data.draw(st.none() | st.text(max_size=200)))
    found = b"".join(frame.build(version, correlation_id, client_id))

    request = FetchRequest.decode(found, version=version, header=True, framed=True)
    entries = {
        (topic.topic_id if version >= 13 else topic.topic, entry.partition): (
            entry.fetch_offset, entry.partition_max_bytes, entry.current_leader_epoch,
        )
        for topic in request.topics
        for entry in topic.partitions
    }  # fmt: skip
    assert entries == {
        (each.topic_id if version >= 13 else each.topic_partition.topic, each.topic_partition.partition): (
            each.offset, each.max_bytes, each.leader_epoch if version >= 9 else -1,
        )
        for each in wanted
    }  # fmt: skip
    request.with_header(correlation_id=correlation_id, client_id=client_id)
    assert request.encode(version=version, header=True, framed=True) == found


def seen(size: RequestSize, size_bytes: int, offsets: int, batches: int) -> RequestSize:
    size.observe(size_bytes, offsets, batches)
    return size


def test_the_first_response_of_a_topic_is_small_whatever_the_range() -> None:
    assert RequestSize(FetchOptions()).next_bytes(10_000_000) == 256 << 10
    assert RequestSize(FetchOptions()).next_bytes(100) == 100 * 512


def test_a_long_range_asks_for_as_much_as_allowed_once_its_records_are_known() -> None:
    assert seen(RequestSize(FetchOptions()), 100_000, 1_000, 10).next_bytes(10_000_000) == 8 * MIB


def test_half_of_the_buffer_is_the_most_that_is_asked_for() -> None:
    assert seen(RequestSize(FetchOptions(max_buffered_bytes=2 * MIB)), 100_000, 1_000, 10).next_bytes(10_000_000) == MIB


def test_the_share_of_a_range_among_many_is_the_most_that_is_asked_for() -> None:
    assert seen(RequestSize(FetchOptions()), 100_000, 1_000, 10).next_bytes(10_000_000, 70_000) == 70_000


@pytest.mark.parametrize(("offsets_left", "batches"), [(101, 3), (150, 3), (151, 4), (200, 4)])
def test_the_end_of_a_range_is_overshot_by_the_rest_of_a_batch_and_a_twentieth(offsets_left: int, batches: int) -> None:
    # 1,000 bytes an offset, 50,000 a batch.
    size = seen(RequestSize(FetchOptions()), 1_000_000, 1_000, 20)
    assert size.next_bytes(offsets_left) == batches * 52_500


def test_the_last_batch_is_asked_for_with_the_least_for_it_comes_whole() -> None:
    assert seen(RequestSize(FetchOptions()), 1_000_000, 1_000, 20).next_bytes(50) == 16 << 10


def test_a_short_range_asks_for_one_default_batch_at_least() -> None:
    assert RequestSize(FetchOptions()).next_bytes(1) == 16 << 10
    assert seen(RequestSize(FetchOptions()), 500, 10, 5).next_bytes(1) == 16 << 10


def test_sizes_that_one_range_saw_are_known_to_the_next_of_the_topic_and_to_no_other() -> None:
    known = RecordSizes()
    seen(RequestSize(FetchOptions(), "t", known), 100_000, 100, 10)
    assert RequestSize(FetchOptions(), "t", known).next_bytes(1_000) == 1_050_000 + 10_000
    assert RequestSize(FetchOptions(), "u", known).next_bytes(1_000) == 256 << 10


def test_a_response_without_a_whole_batch_teaches_nothing() -> None:
    assert seen(RequestSize(FetchOptions()), 0, 0, 0).next_bytes(10_000_000) == 256 << 10


def test_more_is_asked_for_up_to_the_bound_if_records_are_there_and_none_came() -> None:
    size = RequestSize(FetchOptions(max_partition_fetch_bytes=100_000))
    asked = []
    for _ in range(5):
        asked.append(size.next_bytes(1, 1))
        size.starve()
    assert asked == [16 << 10, 32 << 10, 64 << 10, 100_000, 100_000]


def test_a_tiny_limit_of_the_user_is_kept() -> None:
    assert RequestSize(FetchOptions(max_partition_fetch_bytes=100)).next_bytes(10) == 100


def test_the_sizes_of_the_topics_read_longest_ago_are_forgotten() -> None:
    known = RecordSizes(kept=2)
    for topic in ("a", "b", "a", "c"):
        known.put(topic, RecordSize(1.0, 10.0))
    assert [known.get(topic) is not None for topic in "abc"] == [True, False, True]
