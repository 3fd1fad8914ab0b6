"""Reading a range through faults: nothing lost, nothing twice, no endless loop, and errors that name the place."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from kit.fakes.handlers.fetch import FetchScript, LogScript
from kit.fakes.logs import batches_of, record_batch
from kit.fakes.tcp_cluster import Close, Raw, Silence, TcpCluster
from kit.reading import FAST_FETCH, read_range
from pyspark_kafka.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.client.fetch.partition_fetcher import FetchedRecords, OffsetOutOfRangeError, PartitionFetcher
from pyspark_kafka.client.fetch.response import NEWEST_VERSION, OLDEST_VERSION
from pyspark_kafka.client.wire.messages import FetchRequest, ListOffsetsRequest, MetadataRequest
from pyspark_kafka.errors import (
    AccessError,
    BrokerError,
    CorruptRecordsError,
    DataLossError,
    DeadlineError,
    ProtocolError,
)
from pyspark_kafka.model import IsolationLevel, OffsetRange, TopicPartition
from pyspark_kafka.options import ConnectionOptions, FetchOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from kit.fixtures.wire import WireTrace

T0 = TopicPartition("t", 0)


class Reading:
    """A cluster with topic t of one partition, and what a reader of it gets."""

    def __init__(self, cluster: TcpCluster, **fetch: Any) -> None:
        self.cluster = cluster
        self.fetch = FetchOptions(**(FAST_FETCH | fetch))
        self.connection: dict[str, Any] = {"request_timeout_ms": 2_000}

    def client(self) -> KafkaClient:
        return self.cluster.client(**self.connection)

    def values(self, start: int, end: int) -> list[int]:
        """Read and decode a range as a source does; values are the offsets."""
        with self.client() as client:
            found = read_range(client, OffsetRange(T0, start, end), self.fetch)
            return [int(row["value"] or b"") for rows in found for row in rows]

    def fetched(self, start: int = 0, end: int = 100) -> list[FetchedRecords]:
        with self.client() as client, PartitionFetcher(client, OffsetRange(T0, start, end), self.fetch) as fetcher:
            return list(fetcher)


@pytest.fixture
def cluster() -> Any:
    with TcpCluster(2) as cluster:
        cluster.add_topic("t")
        yield cluster


def offsets_asked(cluster: TcpCluster) -> list[int]:
    return [seen.request.topics[0].partitions[0].fetch_offset for seen in cluster.requests(FetchRequest)]


@pytest.mark.parametrize("per_answer", [1, 3, 100])
def test_a_range_is_read_completely_and_once(cluster: TcpCluster, per_answer: int) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(10), per_answer))
    assert Reading(cluster).values(0, 100) == list(range(100))


@pytest.mark.parametrize(("start", "end"), [(0, 1), (5, 6), (9, 11), (10, 20), (13, 57), (99, 100)])
def test_a_range_that_begins_and_ends_inside_batches_is_cut_exactly(cluster: TcpCluster, start: int, end: int) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(10)))
    assert Reading(cluster).values(start, end) == list(range(start, end))


def test_an_empty_range_needs_no_broker() -> None:
    client = KafkaClient(ConnectionOptions((("127.0.0.1", 1),)))
    assert list(PartitionFetcher(client, OffsetRange(T0, 7, 7), FetchOptions())) == []


def test_the_next_request_is_on_its_way_while_an_answer_is_decoded(cluster: TcpCluster, wire: WireTrace) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(3)))
    reading = Reading(cluster)
    with reading.client() as client, PartitionFetcher(client, OffsetRange(T0, 0, 30), reading.fetch) as fetcher:
        next(fetcher)
        # The response is in the caller's hands, and the request after it was sent.
        assert wire.steps("Fetch") == ["sent Fetch", "received Fetch", "sent Fetch"]
        assert fetcher._connection is not None
        assert fetcher._connection.in_flight == 1
        assert fetcher._connection.readable(5.0)
    assert offsets_asked(cluster) == [0, 10]


def test_nothing_is_asked_for_beyond_the_end(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(10)))
    assert Reading(cluster).values(0, 20) == list(range(20))
    assert offsets_asked(cluster) == [0, 10]


def test_a_fetcher_closed_early_leaves_no_answer_behind(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(3)))
    reading = Reading(cluster)
    with reading.client() as client:
        fetcher = PartitionFetcher(client, OffsetRange(T0, 0, 30), reading.fetch)
        next(fetcher)
        fetcher.close()
        fetcher.close()
        assert reading.values(0, 30) == list(range(30))


def test_two_fetchers_of_one_client_do_not_mix_their_answers(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(4)))
    reading = Reading(cluster)
    with reading.client() as client:
        first = PartitionFetcher(client, OffsetRange(T0, 0, 40), reading.fetch)
        second = PartitionFetcher(client, OffsetRange(T0, 0, 40), reading.fetch)
        pairs = [(a.start_offset, b.start_offset) for a, b in zip(first, second, strict=True)]
    assert pairs == [(0, 0), (10, 10), (20, 20), (30, 30)]


def test_the_answer_carries_watermarks_and_aborted_transactions(cluster: TcpCluster) -> None:
    script = FetchScript(
        record_batch(0, [b"0"]), high_watermark=9, last_stable_offset=8, log_start_offset=0, aborted=((5, 6), (1, 2))
    )
    cluster.script(FetchRequest, script)
    (fetched,) = Reading(cluster, isolation_level=IsolationLevel.READ_COMMITTED).fetched(0, 1)
    assert (fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset) == (9, 8, 0)
    assert fetched.aborted_transactions == ((5, 6), (1, 2))
    assert (fetched.start_offset, fetched.scanned_offset) == (0, 1)
    assert cluster.requests(FetchRequest)[0].request.isolation_level == 1


def test_requests_carry_topic_id_and_leader_epoch_and_no_session(cluster: TcpCluster) -> None:
    cluster.leaders["t", 0] = (0, 42)
    cluster.script(FetchRequest, LogScript(batches_of(1)))
    Reading(cluster).values(0, 10)
    seen = cluster.requests(FetchRequest)[0]
    assert seen.version >= 13
    assert seen.request.topics[0].topic_id == cluster.topic_ids["t"]
    assert seen.request.topics[0].partitions[0].current_leader_epoch == 42
    assert (seen.request.session_id, seen.request.session_epoch) == (0, -1)


def test_without_topic_ids_fetches_stay_at_version_12() -> None:
    with TcpCluster(versions={3: (0, 9)}) as cluster:
        cluster.add_topic("t")
        cluster.script(FetchRequest, LogScript(batches_of(2)))
        assert Reading(cluster).values(0, 20) == list(range(20))
        assert {seen.version for seen in cluster.requests(FetchRequest)} == {12}


@pytest.mark.parametrize("version", range(OLDEST_VERSION, NEWEST_VERSION + 1))
def test_every_fetch_version_reads_the_same(version: int) -> None:
    with TcpCluster(versions={1: (4, version)}) as cluster:
        cluster.add_topic("t")
        cluster.script(FetchRequest, LogScript(batches_of(2)))
        assert Reading(cluster).values(0, 20) == list(range(20))
        assert {seen.version for seen in cluster.requests(FetchRequest)} == {version}


@pytest.mark.parametrize("fault", [Close, FetchScript(error_code=6), FetchScript(error_code=56)], ids=repr)
@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_fault_between_answers_loses_and_repeats_nothing(cluster: TcpCluster, fault: Any, before: int) -> None:
    log = LogScript(batches_of(4))
    cluster.script(FetchRequest, *[log] * before, fault, fault, log)
    assert Reading(cluster).values(3, 38) == list(range(3, 38))


def test_a_frame_cut_off_in_the_middle_is_fetched_again(cluster: TcpCluster) -> None:
    log = LogScript(batches_of(3))

    def cut(_: Any) -> Any:
        cluster._open[-1].sendall(b"\x00\x00\x10\x00" + b"half of it")
        return Close()

    cluster.script(FetchRequest, log, cut, log)
    assert Reading(cluster).values(0, 30) == list(range(30))


def test_a_broker_that_hangs_is_left_after_the_request_timeout(cluster: TcpCluster) -> None:
    log = LogScript(batches_of(3))
    cluster.script(FetchRequest, log, Silence, log)
    reading = Reading(cluster)
    reading.connection["request_timeout_ms"] = 100
    assert reading.values(0, 30) == list(range(30))


def test_a_moved_leader_is_followed(cluster: TcpCluster) -> None:
    log = LogScript(batches_of(3))

    def moved(request: Any) -> Any:
        cluster.leaders["t", 0] = (1, 1)
        return FetchScript(error_code=6)(request)

    cluster.script(FetchRequest, log, moved, broker_id=0)
    cluster.script(FetchRequest, log, broker_id=1)
    assert Reading(cluster).values(0, 30) == list(range(30))
    assert [seen.broker_id for seen in cluster.requests(FetchRequest)] == [0, 0, 1, 1]
    assert cluster.requests(FetchRequest)[-1].request.topics[0].partitions[0].current_leader_epoch == 1


@pytest.mark.parametrize("code", [5, 6, 9, 56, 74, 75, 78, 100, 103])
def test_passing_errors_are_waited_out(cluster: TcpCluster, code: int) -> None:
    log = LogScript(batches_of(1))
    cluster.script(FetchRequest, FetchScript(error_code=code), FetchScript(error_code=code), log)
    assert Reading(cluster).values(0, 10) == list(range(10))


@pytest.mark.parametrize("code", [2, 76, 35])
def test_fatal_errors_name_range_and_offset_at_once(cluster: TcpCluster, code: int) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(1)), FetchScript(error_code=code))
    with pytest.raises(BrokerError, match=r"Fetching t-0 \[0, 20\) at offset 10 from 127.0.0.1:\d+ failed") as caught:
        Reading(cluster).values(0, 20)
    assert caught.value.code == code
    assert "Records of the range before 10 were handed out, none from there on." in str(caught.value)
    assert len(cluster.requests(FetchRequest)) == 2


def test_a_refused_topic_is_an_access_error_that_names_it(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, FetchScript(error_code=29))
    with pytest.raises(AccessError, match=r"\[TOPIC_AUTHORIZATION_FAILED\] Fetching t-0 ") as caught:
        Reading(cluster).values(0, 20)
    assert caught.value.facts["topic"] == "t"


@pytest.mark.parametrize("code", [-1, 12345])
def test_an_unknown_error_is_fatal_after_some_attempts(cluster: TcpCluster, code: int) -> None:
    cluster.script(FetchRequest, FetchScript(error_code=code))
    with pytest.raises(BrokerError) as caught:
        Reading(cluster).values(0, 20)
    assert caught.value.code == code
    assert len(cluster.requests(FetchRequest)) == 5


def test_an_unknown_error_that_passes_is_survived(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, *[FetchScript(error_code=-1)] * 3, LogScript(batches_of(1)))
    assert Reading(cluster).values(0, 10) == list(range(10))


def test_an_offset_below_the_log_gives_the_bounds_of_the_log(cluster: TcpCluster) -> None:
    cluster.ends["t", 0] = (50, 80)
    cluster.script(FetchRequest, FetchScript(error_code=1))
    with pytest.raises(OffsetOutOfRangeError) as caught:
        Reading(cluster).values(10, 60)
    error = caught.value
    assert (error.requested_offset, error.log_start_offset, error.log_end_offset) == (10, 50, 80)
    assert "does not have offset 10; the log is [50, 80) now" in str(error)


def test_records_trimmed_while_reading_give_the_position_reached(cluster: TcpCluster) -> None:
    cluster.ends["t", 0] = (50, 80)
    cluster.script(FetchRequest, LogScript(batches_of(2)), FetchScript(error_code=1))
    with pytest.raises(OffsetOutOfRangeError) as caught:
        Reading(cluster).values(0, 60)
    assert caught.value.requested_offset == 10


def test_an_out_of_range_answer_that_the_log_contradicts_is_tried_again(cluster: TcpCluster) -> None:
    cluster.ends["t", 0] = (0, 10)
    cluster.script(FetchRequest, FetchScript(error_code=1), LogScript(batches_of(1)))
    assert Reading(cluster).values(0, 10) == list(range(10))


def test_an_out_of_range_answer_that_the_log_goes_on_contradicting_is_no_loss(cluster: TcpCluster) -> None:
    cluster.ends["t", 0] = (0, 10)
    cluster.script(FetchRequest, *[FetchScript(error_code=1)] * 5, LogScript(batches_of(1)))
    assert Reading(cluster).values(0, 10) == list(range(10))
    cluster.script(FetchRequest, FetchScript(error_code=1))
    with pytest.raises(DeadlineError, match=r"FETCH_NO_PROGRESS.*Last failure: \[OFFSET_OUT_OF_RANGE\]"):
        Reading(cluster, poll_timeout_ms=500).values(0, 10)


@pytest.mark.parametrize("refused", [True, False])
def test_a_log_that_ends_at_the_position_is_looked_at_several_times_before_that_is_believed(
    cluster: TcpCluster, *, refused: bool
) -> None:
    cluster.ends["t", 0] = (0, 10)
    empty = FetchScript(error_code=1 if refused else 0, high_watermark=10, last_stable_offset=10)
    cluster.script(FetchRequest, LogScript(batches_of(1)), empty)
    looked_at: list[float] = []

    def look(request: Any) -> Any:
        looked_at.append(time.monotonic())
        return cluster.list_offsets(request)

    cluster.script(ListOffsetsRequest, look)
    with pytest.raises(OffsetOutOfRangeError) as caught:
        Reading(cluster, poll_timeout_ms=6_000, max_wait_ms=1).values(0, 30)
    # A twelfth of the time apart, so that a leader that lags has time to catch up.
    assert min(later - first for first, later in zip(looked_at[1::2], looked_at[2::2], strict=False)) >= 0.3
    error = caught.value
    assert (error.requested_offset, error.log_start_offset, error.log_end_offset) == (10, 0, 10)
    # First and last offset, five times.
    assert len(cluster.requests(ListOffsetsRequest)) == 10


@pytest.mark.parametrize("lagging", [1, 4])
def test_a_new_leader_that_lags_for_a_while_is_no_loss(cluster: TcpCluster, lagging: int) -> None:
    looks = 0

    def looked_at(request: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks > 2 * lagging:
            cluster.ends["t", 0] = (0, 30)
            cluster.script(FetchRequest, LogScript(batches_of(3)))
        return cluster.list_offsets(request)

    cluster.ends["t", 0] = (0, 10)
    cluster.script(ListOffsetsRequest, looked_at)
    behind = FetchScript(high_watermark=10, last_stable_offset=10)
    cluster.script(FetchRequest, LogScript(batches_of(1)), behind)
    assert Reading(cluster, poll_timeout_ms=1_200, max_wait_ms=1).values(0, 30) == list(range(30))


def test_records_behind_an_open_transaction_are_waited_for(cluster: TcpCluster) -> None:
    # The last stable offset says nothing of what the log has.
    cluster.ends["t", 0] = (0, 30)
    cluster.script(FetchRequest, FetchScript(high_watermark=0, last_stable_offset=0))
    with pytest.raises(DeadlineError, match="FETCH_NO_PROGRESS"):
        Reading(cluster, poll_timeout_ms=600, max_wait_ms=1).values(0, 30)


@pytest.mark.parametrize("code", [100, 103])
def test_a_topic_made_again_is_noticed_and_names_both_ids(cluster: TcpCluster, code: int) -> None:
    before, after = cluster.topic_ids["t"], uuid.uuid4()

    def recreated(request: Any) -> Any:
        cluster.topic_ids["t"] = after
        return FetchScript(error_code=code)(request)

    cluster.script(FetchRequest, LogScript(batches_of(1)), recreated, LogScript(batches_of(3)))
    with pytest.raises(DataLossError) as caught:
        Reading(cluster).values(0, 30)
    assert caught.value.condition == "KAFKA_DATA_LOSS.TOPIC_RECREATED"
    assert str(before) in str(caught.value)
    assert str(after) in str(caught.value)
    assert "Records before 10 were handed out; the 20 offsets [10, 30) of the former topic are gone" in str(
        caught.value
    )


def test_a_topic_deleted_while_reading_is_named(cluster: TcpCluster) -> None:
    def deleted(request: Any) -> Any:
        del cluster.topic_ids["t"]
        return FetchScript(error_code=3)(request)

    cluster.script(FetchRequest, LogScript(batches_of(1)), deleted)
    with pytest.raises(BrokerError, match=r"\[UNKNOWN_TOPIC\] Topic 't' does not exist"):
        Reading(cluster).values(0, 30)


def test_no_progress_ends_with_the_place_and_what_the_log_looked_like(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, FetchScript(high_watermark=50, last_stable_offset=0))
    with pytest.raises(DeadlineError) as caught:
        Reading(cluster, poll_timeout_ms=500).values(0, 30)
    text = str(caught.value)
    assert text.startswith("[FETCH_NO_PROGRESS] Reading t-0 [0, 30): no progress at offset 0 for 500 ms")
    assert "high watermark was 50 and its last stable offset 0" in text
    assert "an open transaction" in text
    assert caught.value.facts["broker"].startswith("127.0.0.1:")


def test_no_progress_by_failures_repeats_the_last_one(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, FetchScript(error_code=6))
    with pytest.raises(DeadlineError, match=r"FETCH_NO_PROGRESS.*Last failure: \[NOT_LEADER_OR_FOLLOWER\]"):
        Reading(cluster, poll_timeout_ms=500).values(0, 30)


def test_empty_answers_do_not_spin(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, FetchScript())
    reading = Reading(cluster, poll_timeout_ms=200, max_wait_ms=500)
    reading.connection |= {"retry_backoff_ms": 20, "retry_backoff_max_ms": 20}
    with pytest.raises(DeadlineError):
        reading.values(0, 30)
    assert len(cluster.requests(FetchRequest)) <= 14


def test_answers_that_lie_below_the_position_do_not_spin_and_are_not_given(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, FetchScript(record_batch(0, [b"0"] * 5)))
    reading = Reading(cluster, poll_timeout_ms=200)
    reading.connection |= {"retry_backoff_ms": 20, "retry_backoff_max_ms": 20}
    with pytest.raises(DeadlineError, match="no progress at offset 7"):
        reading.values(7, 30)
    assert len(cluster.requests(FetchRequest)) <= 14


def test_time_the_caller_takes_does_not_count_as_waiting(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(2)))
    now = [0.0]
    reading = Reading(cluster, poll_timeout_ms=1_000)
    with reading.client() as client:
        fetcher = PartitionFetcher(client, OffsetRange(T0, 0, 20), reading.fetch, clock=lambda: now[0])
        next(fetcher)
        now[0] += 3600
        assert next(fetcher).start_offset == 10
        fetcher.close()


def test_a_throttled_client_waits_before_it_asks_again(cluster: TcpCluster) -> None:
    batches = batches_of(2)
    cluster.script(FetchRequest, FetchScript(batches[0][2], throttle_time_ms=700), FetchScript(batches[1][2]))
    now, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    reading = Reading(cluster)
    with reading.client() as client:
        fetcher = PartitionFetcher(client, OffsetRange(T0, 0, 20), reading.fetch, clock=lambda: now[0], sleep=sleep)
        assert [fetched.start_offset for fetched in fetcher] == [0, 10]
    assert slept == [pytest.approx(0.7)]


def test_a_position_that_decoding_does_not_confirm_is_an_error(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(3)))
    reading = Reading(cluster)
    with reading.client() as client, PartitionFetcher(client, OffsetRange(T0, 0, 30), reading.fetch) as fetcher:
        next(fetcher)
        fetcher.advance(10)
        next(fetcher)
        with pytest.raises(CorruptRecordsError, match=r"\[POSITION_MISMATCH\].*end at 20 by their headers, but at 19"):
            fetcher.advance(19)


def test_a_corrupt_last_offset_delta_is_caught_before_anything_is_skipped(cluster: TcpCluster) -> None:
    damaged = bytearray(batches_of(1)[0][2])
    damaged[23:27] = (500).to_bytes(4, "big")
    cluster.script(FetchRequest, FetchScript(bytes(damaged)), LogScript(batches_of(100)))
    with pytest.raises(CorruptRecordsError, match="CRC"):
        Reading(cluster).values(0, 1000)


def test_bytes_without_one_whole_batch_reach_the_decoder_and_fail_there(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, FetchScript(batches_of(1)[0][2][:-1]))
    with pytest.raises(CorruptRecordsError, match="NO_COMPLETE_RECORD_BATCH"):
        Reading(cluster).values(0, 10)


def test_a_cut_off_last_batch_is_fetched_again(cluster: TcpCluster) -> None:
    batches = batches_of(2)
    cluster.script(FetchRequest, FetchScript(batches[0][2] + batches[1][2][:-1]), LogScript(batches))
    assert Reading(cluster).values(0, 20) == list(range(20))
    assert offsets_asked(cluster) == [0, 10]


def test_a_malformed_answer_is_a_protocol_error_not_a_retry(cluster: TcpCluster) -> None:
    # Correlation id 2 on the fetcher's own connection: ApiVersions was 1.
    cluster.script(FetchRequest, Raw(b"\x00\x00\x00\x07" + b"\x00\x00\x00\x02" + b"\x00" + b"\x00\x00"))
    with pytest.raises(ProtocolError, match="FETCH_RESPONSE_INVALID"):
        Reading(cluster).values(0, 10)


def test_r14_a_partition_or_topic_listed_twice_is_processed_once(cluster: TcpCluster) -> None:
    batches = batches_of(2)

    def doubled(request: Any) -> Any:
        answer = LogScript(batches)(request)
        answer.responses[0].partitions *= 2
        answer.responses *= 2
        return answer

    cluster.script(FetchRequest, doubled)
    assert Reading(cluster).values(0, 20) == list(range(20))


@pytest.mark.parametrize("version", [12, 17])
def test_r15_a_topic_or_partition_that_was_not_asked_for_is_ignored_and_logged(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    batches = batches_of(2)

    def with_foreign(request: Any) -> Any:
        answer = LogScript(batches)(request)
        topic, partition = (FetchScript(record_batch(0, [b"999"]))(request).responses[0] for _ in range(2))
        topic.topic, topic.topic_id = "foreign", uuid.uuid4()
        partition.partitions[0].partition_index = 7
        answer.responses = [topic, partition, *answer.responses]
        return answer

    with TcpCluster(versions={1: (4, version)}) as cluster:
        cluster.add_topic("t")
        cluster.script(FetchRequest, with_foreign)
        assert Reading(cluster).values(0, 20) == list(range(20))
    text = caplog.text
    assert "with partition 0 of topic " in text
    assert "with partition 7 of topic " in text
    assert "which was not asked for: ignored" in text


def test_an_answer_of_nothing_that_was_asked_for_is_asked_again(cluster: TcpCluster) -> None:
    def left_out(request: Any) -> Any:
        answer = FetchScript(throttle_time_ms=1)(request)
        answer.responses = []
        return answer

    cluster.script(FetchRequest, left_out, LogScript(batches_of(1)))
    assert Reading(cluster).values(0, 10) == list(range(10))


def racked(cluster: TcpCluster, **fetch: Any) -> Reading:
    reading = Reading(cluster, **fetch)
    reading.connection["client_rack"] = "r1"
    return reading


def test_a_preferred_replica_is_read_from(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, FetchScript(preferred_read_replica=1), broker_id=0)
    cluster.script(FetchRequest, LogScript(batches_of(3)), broker_id=1)
    assert racked(cluster).values(0, 30) == list(range(30))
    assert [seen.broker_id for seen in cluster.requests(FetchRequest)] == [0, 1, 1, 1]
    assert cluster.requests(FetchRequest)[0].request.rack_id == "r1"


def test_a_preferred_replica_is_kept_for_the_metadata_age_then_the_leader_is_asked(cluster: TcpCluster) -> None:
    batches = batches_of(3)
    cluster.script(FetchRequest, FetchScript(preferred_read_replica=1), LogScript(batches), broker_id=0)
    cluster.script(FetchRequest, LogScript(batches), broker_id=1)
    reading, now = racked(cluster), [0.0]
    with reading.client() as client:
        fetcher = PartitionFetcher(client, OffsetRange(T0, 0, 30), reading.fetch, clock=lambda: now[0])
        # The answer for 0, and the request for 10 sent ahead, are the follower's.
        assert next(fetcher).start_offset == 0
        now[0] += client.options.metadata_max_age_ms / 1000 + 1
        assert [fetched.start_offset for fetched in fetcher] == [10, 20]
    assert [seen.broker_id for seen in cluster.requests(FetchRequest)] == [0, 1, 1, 0]


def test_without_a_rack_no_replica_is_preferred(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(1)))
    Reading(cluster).values(0, 10)
    assert cluster.requests(FetchRequest)[0].request.rack_id == ""


def test_out_of_range_at_a_follower_is_asked_of_the_leader(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, FetchScript(preferred_read_replica=1), LogScript(batches_of(3)), broker_id=0)
    cluster.script(FetchRequest, FetchScript(error_code=1), broker_id=1)
    assert racked(cluster).values(0, 30) == list(range(30))
    assert [seen.broker_id for seen in cluster.requests(FetchRequest)] == [0, 1, 0, 0, 0]


def test_a_follower_that_lags_is_left_for_the_leader(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, FetchScript(preferred_read_replica=1), LogScript(batches_of(1)), broker_id=0)
    cluster.script(FetchRequest, FetchScript(high_watermark=0), broker_id=1)
    assert racked(cluster).values(0, 10) == list(range(10))
    assert [seen.broker_id for seen in cluster.requests(FetchRequest)] == [0, 1, 1, 1, 0]


def test_a_follower_that_dies_is_left_for_the_leader(cluster: TcpCluster) -> None:
    leader = LogScript(batches_of(3))
    cluster.script(FetchRequest, FetchScript(preferred_read_replica=1), leader, broker_id=0)
    cluster.script(FetchRequest, leader, Close, broker_id=1)
    assert racked(cluster).values(0, 30) == list(range(30))


def test_metadata_is_asked_for_once_a_range(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(10)))
    Reading(cluster).values(0, 100)
    assert len(cluster.requests(MetadataRequest)) == 1


def leader_that_names(replica_id: int) -> Callable[[Any], Any]:
    """Give a leader that sends readers of a rack to a replica, and reads to others itself."""
    log = LogScript(batches_of(3))
    return lambda request: FetchScript(preferred_read_replica=replica_id)(request) if request.rack_id else log(request)


def test_a_leader_that_keeps_naming_a_replica_that_nobody_knows_is_read_from_itself(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, leader_that_names(7), broker_id=0)
    assert racked(cluster, max_wait_ms=500).values(0, 30) == list(range(30))
    # Three times sent away, then three answers with records.
    assert len(cluster.requests(FetchRequest)) < 10
    assert len(cluster.requests(MetadataRequest)) > 1


def test_a_replica_that_is_new_in_the_cluster_is_looked_up_and_read_from(cluster: TcpCluster) -> None:
    def without_the_second(request: Any) -> Any:
        answer = cluster.metadata(request)
        answer.brokers = answer.brokers[:1]
        return answer

    cluster.script(MetadataRequest, without_the_second, cluster.metadata)
    cluster.script(FetchRequest, leader_that_names(1), broker_id=0)
    cluster.script(FetchRequest, LogScript(batches_of(3)), broker_id=1)
    assert racked(cluster).values(0, 30) == list(range(30))
    assert [seen.broker_id for seen in cluster.requests(FetchRequest)][-3:] == [1, 1, 1]


def test_a_replica_that_cannot_be_read_from_does_not_end_the_read(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, leader_that_names(1), broker_id=0)
    cluster.script(FetchRequest, Close, broker_id=1)
    assert racked(cluster).values(0, 30) == list(range(30))


def test_brokers_that_may_not_wait_are_not_asked_in_a_busy_loop(cluster: TcpCluster) -> None:
    cluster.ends["t", 0] = (0, 10)
    cluster.script(FetchRequest, FetchScript(high_watermark=0, last_stable_offset=0))
    reading = Reading(cluster, max_wait_ms=0, poll_timeout_ms=500)
    reading.connection["retry_backoff_ms"] = reading.connection["retry_backoff_max_ms"] = 50
    with pytest.raises(DeadlineError, match="FETCH_NO_PROGRESS"):
        reading.values(0, 10)
    assert len(cluster.requests(FetchRequest)) < 20
