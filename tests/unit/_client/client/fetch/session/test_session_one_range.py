"""What a session does to read one range: positions, waits, replicas, entries that were not requested."""

from __future__ import annotations

import itertools
import re
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from kit.fakes.handlers.fetch import BrokerLog, FetchScript, LogScript, epoch_end
from kit.fakes.logs import batches_of, record_batch
from kit.fakes.scripts import Close
from kit.fakes.simulated_cluster import Reading, SimulatedCluster, SimulatedRead
from pyspark_kafka._base.model import IsolationLevel, OffsetRange, TopicPartition
from pyspark_kafka._client.client.fetch.session.steps import FindLeaders
from pyspark_kafka.errors import DeadlineError


def racked(cluster: SimulatedCluster, **fetch: Any) -> Reading:
    reading = Reading(cluster, **fetch)
    reading.connection["client_rack"] = "r1"
    return reading


def leader_that_names(replica_id: int) -> Callable[[Any], Any]:
    """Return a leader that sends readers of a rack to a replica, and reads to others itself."""
    log = LogScript(batches_of(3))
    return lambda request: FetchScript(preferred_read_replica=replica_id)(request) if request.rack_id else log(request)


@pytest.mark.parametrize(("start", "end"), [(0, 1), (5, 6), (9, 11), (10, 20), (13, 57), (99, 100)])
def test_a_range_that_begins_and_ends_inside_batches_is_cut_exactly(
    cluster: SimulatedCluster, start: int, end: int
) -> None:
    cluster.script(LogScript(batches_of(10)))
    assert Reading(cluster).values(start, end) == list(range(start, end))


def test_nothing_is_asked_for_beyond_the_end(cluster: SimulatedCluster) -> None:
    cluster.script(LogScript(batches_of(10)))
    assert Reading(cluster).values(0, 20) == list(range(20))
    assert cluster.asked_offsets() == [0, 10]


def test_the_response_carries_watermarks_and_aborted_transactions(cluster: SimulatedCluster) -> None:
    script = FetchScript(
        record_batch(0, [b"0"]), high_watermark=9, last_stable_offset=8, log_start_offset=0, aborted=((5, 6), (1, 2))
    )
    cluster.script(script)
    ((_, fetched),) = Reading(cluster, isolation_level=IsolationLevel.READ_COMMITTED).of(0, 1)
    assert (fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset) == (9, 8, 0)
    assert fetched.aborted_transactions == ((5, 6), (1, 2))
    assert (fetched.start_offset, fetched.scanned_offset) == (0, 1)
    assert cluster.seen[0].request.isolation_level == 1


def test_requests_carry_topic_id_and_leader_epoch_and_no_session(cluster: SimulatedCluster) -> None:
    cluster.leaders["t", 0] = (0, 42)
    cluster.script(LogScript(batches_of(1)))
    Reading(cluster).values(0, 10)
    seen = cluster.seen[0]
    assert seen.version >= 13
    assert seen.request.topics[0].topic_id == cluster.topic_ids["t"]
    assert seen.request.topics[0].partitions[0].current_leader_epoch == 42
    assert (seen.request.session_id, seen.request.session_epoch) == (0, -1)


def test_empty_responses_do_not_spin(cluster: SimulatedCluster) -> None:
    cluster.script(FetchScript())
    reading = Reading(cluster, poll_timeout_ms=200, max_wait_ms=500)
    reading.connection |= {"retry_backoff_ms": 20, "retry_backoff_max_ms": 20}
    with pytest.raises(DeadlineError):
        reading.values(0, 30)
    assert len(cluster.seen) <= 14


def test_responses_below_the_position_do_not_spin_and_are_not_returned(cluster: SimulatedCluster) -> None:
    cluster.script(FetchScript(record_batch(0, [b"0"] * 5)))
    reading = Reading(cluster, poll_timeout_ms=200)
    reading.connection |= {"retry_backoff_ms": 20, "retry_backoff_max_ms": 20}
    with pytest.raises(DeadlineError, match="no progress at offset 7"):
        reading.values(7, 30)
    assert len(cluster.seen) <= 14


def test_a_throttled_client_waits_before_it_asks_again(cluster: SimulatedCluster) -> None:
    batches = batches_of(2)
    cluster.script(FetchScript(batches[0][2], throttle_time_ms=700), FetchScript(batches[1][2]))
    read = Reading(cluster).of(0, 20)
    assert [fetched.start_offset for _, fetched in read] == [0, 10]
    # The response is the first wait.
    assert read.waits[1] == pytest.approx(0.7)


MIB = 1 << 20


def endless_log(request: Any) -> Any:
    """Return a batch at whatever offset is asked for: 100,000 bytes an offset."""
    base = request.topics[0].partitions[0].fetch_offset
    return FetchScript(record_batch(base, [b"v" * 100_000]))(request)


def test_less_is_asked_for_over_a_slow_link_and_more_again_when_it_is_quick(cluster: SimulatedCluster) -> None:
    cluster.script(endless_log)
    read = Reading(cluster).of(0, 100_000)
    took_s = iter([0.0, *[1.0] * 3, 0.5, *[0.1] * 10])
    read.latency_s = lambda: next(took_s)
    # The request timeout is 2 s: more than a third of it is slow, less than a sixth is quick.
    for _ in range(9):
        next(read)
    assert [size // MIB for _, size in cluster.asked_bytes()] == [0, 8, 4, 2, 1, 1, 2, 4, 8, 8]
    assert [size for size, _ in cluster.asked_bytes()[1:]] == [size for _, size in cluster.asked_bytes()[1:]]


def test_less_is_asked_for_of_many_ranges_too(cluster: SimulatedCluster) -> None:
    cluster.add_topic("wide", partitions=100)
    batches = [(base, base + 1, record_batch(base, [b"v" * 50_000])) for base in range(100)]
    log = BrokerLog({("wide", number): batches for number in range(100)}, cluster.topic_ids)
    cluster.script(log)
    read = SimulatedRead(cluster, [OffsetRange(TopicPartition("wide", number), 0, 100) for number in range(100)])
    read.latency_s = lambda: 1.0
    while len(cluster.seen) < 10:
        next(read)
    asked = [size for size, _ in cluster.asked_bytes()]
    assert asked[1:4] == [4 * MIB, 2 * MIB, MIB]
    # One range at a time is left in the end, with what one of many may take at least.
    assert asked[-1] == 64 << 10
    assert len(cluster.asked_partitions()[-1]) == 1


def test_less_is_asked_for_after_responses_that_were_cut_off(cluster: SimulatedCluster) -> None:
    cluster.script(endless_log, *[Close] * 10, endless_log)
    read = Reading(cluster).of(0, 100_000)
    read.cuts_off = True
    next(read)
    next(read)
    sizes = [size for _, size in cluster.asked_bytes()]
    assert sizes[1:5] == [8 * MIB, 4 * MIB, 2 * MIB, MIB]
    assert min(sizes) == 64 << 10


def test_throttled_response_without_records_is_followed_by_a_smaller_request(cluster: SimulatedCluster) -> None:
    empty = FetchScript(throttle_time_ms=100)
    cluster.script(endless_log, *[empty] * 5, endless_log)
    read = Reading(cluster, poll_timeout_ms=60_000).of(0, 100_000)
    next(read)
    next(read)
    # No smaller than that, and the responses without records do not make a larger one seem necessary.
    assert [size >> 10 for _, size in cluster.asked_bytes()[1:]] == [8192, 2048, 512, 256, 256, 256, 256]
    for _ in range(5):
        next(read)
    assert cluster.asked_bytes()[-1][1] == 256 << 10
    cluster.now += 60
    next(read)
    next(read)
    assert cluster.asked_bytes()[-1][1] > 256 << 10


def test_broker_that_throttles_and_leaves_everything_out_is_asked_for_less(cluster: SimulatedCluster) -> None:
    def left_out(request: Any) -> Any:
        response = FetchScript(throttle_time_ms=100)(request)
        response.responses = []
        return response

    cluster.script(endless_log, left_out, endless_log)
    read = Reading(cluster).of(0, 100_000)
    next(read)
    next(read)
    assert [size >> 10 for _, size in cluster.asked_bytes()[1:]] == [8192, 2048, 2048]


def test_time_under_a_quota_does_not_count_up_to_five_times_the_timeout(cluster: SimulatedCluster) -> None:
    cluster.script(endless_log, *[FetchScript(throttle_time_ms=900)] * 4, endless_log)
    read = Reading(cluster, poll_timeout_ms=1_000).of(0, 2)
    assert [fetched.start_offset for _, fetched in read] == [0, 1]

    cluster.script(FetchScript(throttle_time_ms=900))
    began = cluster.now
    with pytest.raises(DeadlineError, match="FETCH_NO_PROGRESS") as caught:
        Reading(cluster, poll_timeout_ms=1_000).values(0, 2)
    # The last throttle time would have ended after the five seconds.
    assert 4.0 < cluster.now - began <= 5.0
    text = str(caught.value)
    assert "no progress at offset 0 for 4600 ms (kafkaConsumer.pollTimeoutMs, and time under a quota)" in text
    assert re.search(
        r"127.0.0.1:0 throttled this client by a quota for \d s of them, and wants no request for \d s", text
    )
    assert "consumer_byte_rate" in caught.value.hint
    assert "transaction" not in caught.value.hint


def test_throttle_time_beyond_that_is_not_waited_for(cluster: SimulatedCluster) -> None:
    cluster.script(endless_log, FetchScript(throttle_time_ms=2**31 - 1))
    with pytest.raises(DeadlineError, match=r"for 1000 ms .* and wants no request for 214748\d s more"):
        list(Reading(cluster, poll_timeout_ms=1_000).of(0, 2))
    assert cluster.now < 2


def test_leaders_that_name_each_other_are_asked_a_few_times_then_the_cluster_is(cluster: SimulatedCluster) -> None:
    epochs = itertools.count(1)

    def other(request: Any) -> Any:
        response = FetchScript(error_code=6)(request)
        epoch = next(epochs)
        part = response.responses[0].partitions[0]
        part.current_leader = type(part).LeaderIdAndEpoch(leader_id=epoch % 2, leader_epoch=epoch)
        return response

    cluster.script(other)
    reading = Reading(cluster, poll_timeout_ms=1_000)
    reading.connection |= {"retry_backoff_ms": 100, "retry_backoff_max_ms": 100}
    with pytest.raises(DeadlineError, match=r"Last failure: \[NOT_LEADER_OR_FOLLOWER\]"):
        reading.values(0, 10)
    assert len(cluster.seen) < 20
    assert len(cluster.lookups) > 3


def test_leader_that_is_named_is_asked_at_once_as_long_as_records_come(cluster: SimulatedCluster) -> None:
    epochs = itertools.count(1)
    turns = itertools.count()

    def moving(request: Any) -> Any:
        if next(turns) % 2:
            return endless_log(request)
        response = FetchScript(error_code=6)(request)
        epoch = next(epochs)
        part = response.responses[0].partitions[0]
        part.current_leader = type(part).LeaderIdAndEpoch(leader_id=epoch % 2, leader_epoch=epoch)
        return response

    cluster.script(moving)
    cluster.epoch_ends = deque([epoch_end(1 << 40, 0)])
    read = Reading(cluster).of(0, 10)
    assert [fetched.start_offset for _, fetched in read] == list(range(10))
    assert sum(isinstance(step, FindLeaders) for step in cluster.lookups) == 1


def test_a_cut_off_last_batch_is_fetched_again(cluster: SimulatedCluster) -> None:
    batches = batches_of(2)
    cluster.script(FetchScript(batches[0][2] + batches[1][2][:-1]), LogScript(batches))
    assert Reading(cluster).values(0, 20) == list(range(20))
    assert cluster.asked_offsets() == [0, 10]


def test_r14_a_partition_or_topic_listed_twice_is_processed_once(cluster: SimulatedCluster) -> None:
    batches = batches_of(2)

    def doubled(request: Any) -> Any:
        response = LogScript(batches)(request)
        response.responses[0].partitions *= 2
        response.responses *= 2
        return response

    cluster.script(doubled)
    assert Reading(cluster).values(0, 20) == list(range(20))


def test_r14_entries_of_a_partition_that_differ_are_not_taken_and_the_range_is_asked_for_again(
    cluster: SimulatedCluster,
) -> None:
    """As after a damaged partition number: the records of another partition would be read as this one's."""
    batches = batches_of(2)

    def other_first(request: Any) -> Any:
        response = LogScript(batches)(request)
        other = FetchScript(record_batch(0, [b"999"] * 10))(request).responses[0].partitions[0]
        response.responses[0].partitions.insert(0, other)
        return response

    cluster.script(other_first, LogScript(batches))
    assert Reading(cluster).values(0, 20) == list(range(20))
    assert cluster.asked_offsets() == [0, 0, 10]


def test_r14_entries_of_a_partition_that_always_differ_end_the_read_with_an_error_that_says_so(
    cluster: SimulatedCluster,
) -> None:
    def doubled(request: Any) -> Any:
        response = LogScript(batches_of(2))(request)
        response.responses += FetchScript()(request).responses
        return response

    cluster.script(doubled)
    with pytest.raises(DeadlineError) as caught:
        Reading(cluster, poll_timeout_ms=200).values(0, 20)
    assert (
        "Last failure: [RESPONSE_INVALID] 127.0.0.1:0 responded to a fetch with several entries for t-0 that differ. "
        "None of them was used. No record of the range was handed out." in str(caught.value)
    )


def test_r15_entries_that_were_not_asked_for_are_logged_once_a_minute(
    cluster: SimulatedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    def with_foreign(request: Any) -> Any:
        response = LogScript(batches_of(20))(request)
        topic = response.responses[0]
        topic.partitions += [type(topic.partitions[0])(partition_index=number) for number in range(7, 1_000)]
        return response

    cluster.script(with_foreign)
    read = Reading(cluster).of(0, 200)
    read.latency_s = lambda: 4.0
    assert len(read.values()) == 1
    lines = [record.getMessage() for record in caplog.records if "was not requested" in record.getMessage()]
    assert len(lines) == 2  # of 80 s
    assert "and 973 more, which was not requested" in lines[0]


@pytest.mark.parametrize("version", [12, 17])
def test_r15_a_topic_or_partition_that_was_not_asked_for_is_ignored_and_logged(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    batches = batches_of(2)

    def with_foreign(request: Any) -> Any:
        response = LogScript(batches)(request)
        topic, partition = (FetchScript(record_batch(0, [b"999"]))(request).responses[0] for _ in range(2))
        topic.topic, topic.topic_id = "foreign", uuid.uuid4()
        partition.partitions[0].partition_index = 7
        response.responses = [topic, partition, *response.responses]
        return response

    cluster = SimulatedCluster(version=version)
    cluster.add_topic("t")
    cluster.script(with_foreign)
    assert Reading(cluster).values(0, 20) == list(range(20))
    text = caplog.text
    assert "with partition 0 of topic " in text
    assert ", partition 7 of topic " in text
    assert "which was not requested: ignored" in text


def test_a_response_of_nothing_that_was_asked_for_is_asked_again(cluster: SimulatedCluster) -> None:
    def left_out(request: Any) -> Any:
        response = FetchScript(throttle_time_ms=1)(request)
        response.responses = []
        return response

    cluster.script(left_out, LogScript(batches_of(1)))
    assert Reading(cluster).values(0, 10) == list(range(10))


def test_a_preferred_replica_is_read_from(cluster: SimulatedCluster) -> None:
    cluster.script(FetchScript(preferred_read_replica=1), broker_id=0)
    cluster.script(LogScript(batches_of(3)), broker_id=1)
    assert racked(cluster).values(0, 30) == list(range(30))
    assert cluster.asked_brokers() == [0, 1, 1, 1]
    assert cluster.seen[0].request.rack_id == "r1"


def test_a_preferred_replica_is_kept_for_the_metadata_age_then_the_leader_is_asked(cluster: SimulatedCluster) -> None:
    batches = batches_of(3)
    cluster.script(FetchScript(preferred_read_replica=1), LogScript(batches), broker_id=0)
    cluster.script(LogScript(batches), broker_id=1)
    read = racked(cluster).of(0, 30)
    # The response for 0, and the request for 10 sent ahead, are the follower's.
    assert next(read)[1].start_offset == 0
    cluster.now += read.options.metadata_max_age_ms / 1000 + 1
    assert [fetched.start_offset for _, fetched in read] == [10, 20]
    assert cluster.asked_brokers() == [0, 1, 1, 0]


def test_no_replica_is_preferred_without_a_rack(cluster: SimulatedCluster) -> None:
    cluster.script(LogScript(batches_of(1)))
    Reading(cluster).values(0, 10)
    assert cluster.seen[0].request.rack_id == ""


def test_out_of_range_at_a_follower_is_asked_of_the_leader(cluster: SimulatedCluster) -> None:
    cluster.script(FetchScript(preferred_read_replica=1), LogScript(batches_of(3)), broker_id=0)
    cluster.script(FetchScript(error_code=1), broker_id=1)
    assert racked(cluster).values(0, 30) == list(range(30))
    assert cluster.asked_brokers() == [0, 1, 0, 0, 0]


def test_a_follower_that_lags_is_left_for_the_leader(cluster: SimulatedCluster) -> None:
    cluster.script(FetchScript(preferred_read_replica=1), LogScript(batches_of(1)), broker_id=0)
    cluster.script(FetchScript(high_watermark=0), broker_id=1)
    assert racked(cluster).values(0, 10) == list(range(10))
    assert cluster.asked_brokers() == [0, 1, 1, 1, 0]


def test_a_follower_that_dies_is_left_for_the_leader(cluster: SimulatedCluster) -> None:
    leader = LogScript(batches_of(3))
    cluster.script(FetchScript(preferred_read_replica=1), leader, broker_id=0)
    cluster.script(leader, Close, broker_id=1)
    assert racked(cluster).values(0, 30) == list(range(30))


def test_a_leader_that_keeps_naming_a_replica_that_nobody_knows_is_read_from_itself(cluster: SimulatedCluster) -> None:
    cluster.script(leader_that_names(7), broker_id=0)
    assert racked(cluster, max_wait_ms=500).values(0, 30) == list(range(30))
    # Three times sent away, then three responses with records.
    assert len(cluster.seen) < 10
    assert len(cluster.lookups) > 1


def test_a_replica_that_is_new_in_the_cluster_is_looked_up_and_read_from(cluster: SimulatedCluster) -> None:
    cluster.members = {0}
    cluster.before_metadata = deque([lambda: None, lambda: cluster.members.add(1)])
    cluster.script(leader_that_names(1), broker_id=0)
    cluster.script(LogScript(batches_of(3)), broker_id=1)
    assert racked(cluster).values(0, 30) == list(range(30))
    assert cluster.asked_brokers()[-3:] == [1, 1, 1]


def test_a_replica_that_cannot_be_read_from_does_not_end_the_read(cluster: SimulatedCluster) -> None:
    cluster.script(leader_that_names(1), broker_id=0)
    cluster.script(Close, broker_id=1)
    assert racked(cluster).values(0, 30) == list(range(30))


def test_brokers_that_may_not_wait_are_not_asked_in_a_busy_loop(cluster: SimulatedCluster) -> None:
    cluster.ends["t", 0] = (0, 10)
    cluster.script(FetchScript(high_watermark=0, last_stable_offset=0))
    reading = Reading(cluster, max_wait_ms=0, poll_timeout_ms=500)
    reading.connection["retry_backoff_ms"] = reading.connection["retry_backoff_max_ms"] = 50
    with pytest.raises(DeadlineError, match="FETCH_NO_PROGRESS"):
        reading.values(0, 10)
    assert len(cluster.seen) < 20
