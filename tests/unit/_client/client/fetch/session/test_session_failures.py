"""What a session does about failures: nothing lost, nothing twice, and errors that name the range."""

from __future__ import annotations

import itertools
import uuid
from collections import deque
from typing import Any

import pytest

from kit.fakes.handlers.fetch import FetchScript, LogScript
from kit.fakes.logs import batches_of
from kit.fakes.scripts import Close
from kit.fakes.simulated_cluster import Reading, SimulatedCluster
from pyspark_kafka._client.client.fetch.errors import OffsetOutOfRangeError
from pyspark_kafka.errors import AccessError, BrokerError, CorruptRecordsError, DataLossError, DeadlineError


@pytest.mark.parametrize("code", [5, 6, 9, 56, 74, 75, 78, 100, 103])
def test_passing_errors_are_waited_out(cluster: SimulatedCluster, code: int) -> None:
    log = LogScript(batches_of(1))
    cluster.script(FetchScript(error_code=code), FetchScript(error_code=code), log)
    assert Reading(cluster).values(0, 10) == list(range(10))


@pytest.mark.parametrize("code", [2, 76, 35])
def test_fatal_errors_name_range_and_offset_at_once(cluster: SimulatedCluster, code: int) -> None:
    cluster.script(LogScript(batches_of(1)), FetchScript(error_code=code))
    with pytest.raises(BrokerError, match=r"Fetching t-0 \[0, 20\) at offset 10 from 127.0.0.1:\d+ failed") as caught:
        Reading(cluster).values(0, 20)
    assert caught.value.code == code
    assert "Records of the range before 10 were handed out, none from there on." in str(caught.value)
    assert len(cluster.seen) == 2


def test_a_refused_topic_is_an_access_error_that_names_it(cluster: SimulatedCluster) -> None:
    cluster.script(FetchScript(error_code=29))
    with pytest.raises(AccessError, match=r"\[TOPIC_AUTHORIZATION_FAILED\] Fetching t-0 ") as caught:
        Reading(cluster).values(0, 20)
    assert caught.value.parameters["topic"] == "t"


@pytest.mark.parametrize("code", [-1, 12345])
def test_an_unknown_error_is_fatal_after_some_attempts(cluster: SimulatedCluster, code: int) -> None:
    cluster.script(FetchScript(error_code=code))
    with pytest.raises(BrokerError) as caught:
        Reading(cluster).values(0, 20)
    assert caught.value.code == code
    assert len(cluster.seen) == 5


def test_an_unknown_error_that_passes_is_survived(cluster: SimulatedCluster) -> None:
    cluster.script(*[FetchScript(error_code=-1)] * 3, LogScript(batches_of(1)))
    assert Reading(cluster).values(0, 10) == list(range(10))


def test_an_offset_below_the_log_gives_the_bounds_of_the_log(cluster: SimulatedCluster) -> None:
    cluster.ends["t", 0] = (50, 80)
    cluster.script(FetchScript(error_code=1))
    with pytest.raises(OffsetOutOfRangeError) as caught:
        Reading(cluster).values(10, 60)
    error = caught.value
    assert (error.requested_offset, error.log_start_offset, error.log_end_offset) == (10, 50, 80)
    assert "does not have offset 10; the log is [50, 80) now" in str(error)


def test_records_trimmed_while_reading_give_the_position_reached(cluster: SimulatedCluster) -> None:
    cluster.ends["t", 0] = (50, 80)
    cluster.script(LogScript(batches_of(2)), FetchScript(error_code=1))
    with pytest.raises(OffsetOutOfRangeError) as caught:
        Reading(cluster).values(0, 60)
    assert caught.value.requested_offset == 10


def test_an_out_of_range_response_that_the_log_contradicts_is_tried_again(cluster: SimulatedCluster) -> None:
    cluster.ends["t", 0] = (0, 10)
    cluster.script(FetchScript(error_code=1), LogScript(batches_of(1)))
    assert Reading(cluster).values(0, 10) == list(range(10))


def test_an_out_of_range_response_that_the_log_goes_on_contradicting_is_no_loss(cluster: SimulatedCluster) -> None:
    cluster.ends["t", 0] = (0, 10)
    cluster.script(*[FetchScript(error_code=1)] * 5, LogScript(batches_of(1)))
    assert Reading(cluster).values(0, 10) == list(range(10))
    cluster.script(FetchScript(error_code=1))
    with pytest.raises(DeadlineError, match=r"FETCH_NO_PROGRESS.*Last failure: \[OFFSET_OUT_OF_RANGE\]"):
        Reading(cluster, poll_timeout_ms=500).values(0, 10)


@pytest.mark.parametrize("refused", [True, False])
def test_a_log_that_ends_at_the_position_is_looked_at_several_times_before_that_is_believed(
    cluster: SimulatedCluster, *, refused: bool
) -> None:
    cluster.ends["t", 0] = (0, 10)
    empty = FetchScript(error_code=1 if refused else 0, high_watermark=10, last_stable_offset=10)
    cluster.script(LogScript(batches_of(1)), empty)
    looked_at: list[float] = []

    def look() -> None:
        looked_at.append(cluster.now)

    cluster.before_log_ends = deque([look])
    with pytest.raises(OffsetOutOfRangeError) as caught:
        Reading(cluster, poll_timeout_ms=6_000, max_wait_ms=1).values(0, 30)
    # A twelfth of the time apart, so that a leader that lags has time to catch up.
    assert min(later - first for first, later in itertools.pairwise(looked_at)) >= 0.3
    error = caught.value
    assert (error.requested_offset, error.log_start_offset, error.log_end_offset) == (10, 0, 10)
    assert len(looked_at) == 5


@pytest.mark.parametrize("lagging", [1, 4])
def test_a_new_leader_that_lags_for_a_while_is_no_loss(cluster: SimulatedCluster, lagging: int) -> None:
    looks = 0

    def looked_at() -> None:
        nonlocal looks
        looks += 1
        if looks > lagging:
            cluster.ends["t", 0] = (0, 30)
            cluster.script(LogScript(batches_of(3)))

    cluster.ends["t", 0] = (0, 10)
    cluster.before_log_ends = deque([looked_at])
    behind = FetchScript(high_watermark=10, last_stable_offset=10)
    cluster.script(LogScript(batches_of(1)), behind)
    assert Reading(cluster, poll_timeout_ms=1_200, max_wait_ms=1).values(0, 30) == list(range(30))


def test_records_behind_an_open_transaction_are_waited_for(cluster: SimulatedCluster) -> None:
    # The last stable offset says nothing of what the log has.
    cluster.ends["t", 0] = (0, 30)
    cluster.script(FetchScript(high_watermark=0, last_stable_offset=0))
    with pytest.raises(DeadlineError, match="FETCH_NO_PROGRESS"):
        Reading(cluster, poll_timeout_ms=600, max_wait_ms=1).values(0, 30)


@pytest.mark.parametrize("code", [100, 103])
def test_a_topic_made_again_is_noticed_and_names_both_ids(cluster: SimulatedCluster, code: int) -> None:
    before, after = cluster.topic_ids["t"], uuid.uuid4()

    def recreated(request: Any) -> Any:
        cluster.topic_ids["t"] = after
        return FetchScript(error_code=code)(request)

    cluster.script(LogScript(batches_of(1)), recreated, LogScript(batches_of(3)))
    with pytest.raises(DataLossError) as caught:
        Reading(cluster).values(0, 30)
    assert caught.value.condition == "KAFKA_DATA_LOSS.TOPIC_RECREATED"
    assert str(before) in str(caught.value)
    assert str(after) in str(caught.value)
    assert "Records before 10 were handed out; the 20 offsets [10, 30) of the former topic are gone" in str(
        caught.value
    )


def test_a_topic_deleted_while_reading_is_named(cluster: SimulatedCluster) -> None:
    def deleted(request: Any) -> Any:
        del cluster.topic_ids["t"]
        return FetchScript(error_code=3)(request)

    cluster.script(LogScript(batches_of(1)), deleted)
    with pytest.raises(BrokerError, match=r"\[UNKNOWN_TOPIC\] Topic 't' does not exist"):
        Reading(cluster).values(0, 30)


def test_no_progress_ends_with_the_place_and_what_the_log_looked_like(cluster: SimulatedCluster) -> None:
    cluster.script(FetchScript(high_watermark=50, last_stable_offset=0))
    with pytest.raises(DeadlineError) as caught:
        Reading(cluster, poll_timeout_ms=500).values(0, 30)
    text = str(caught.value)
    assert text.startswith("[FETCH_NO_PROGRESS] Reading t-0 [0, 30): no progress at offset 0 for 500 ms")
    assert "No record of the range was handed out. Hint:" in text
    assert "high watermark was 50 and its last stable offset 0" in text
    assert "an open transaction" in text
    assert caught.value.parameters["broker"].startswith("127.0.0.1:")


def test_no_progress_by_failures_repeats_the_last_one(cluster: SimulatedCluster) -> None:
    cluster.script(FetchScript(error_code=6))
    with pytest.raises(DeadlineError, match=r"FETCH_NO_PROGRESS.*Last failure: \[NOT_LEADER_OR_FOLLOWER\]"):
        Reading(cluster, poll_timeout_ms=500).values(0, 30)


def test_no_progress_by_failures_says_what_was_handed_out_and_has_one_hint(cluster: SimulatedCluster) -> None:
    cluster.script(LogScript(batches_of(1)), FetchScript(error_code=6))
    with pytest.raises(DeadlineError) as caught:
        Reading(cluster, poll_timeout_ms=500).values(0, 30)
    text = str(caught.value)
    assert "Records of the range before 10 were handed out, none from there on. Last failure: [NOT_LEADER" in text
    assert text.count("Hint:") == 1


def test_refusal_of_the_first_records_says_that_none_were_handed_out(cluster: SimulatedCluster) -> None:
    cluster.script(FetchScript(error_code=35))
    with pytest.raises(BrokerError, match=r"failed.*\. No record of the range was handed out\."):
        Reading(cluster).values(5, 30)


@pytest.mark.parametrize("fault", [Close, FetchScript(error_code=6), FetchScript(error_code=56)], ids=repr)
@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_fault_between_responses_loses_and_repeats_nothing(
    cluster: SimulatedCluster, fault: Any, before: int
) -> None:
    log = LogScript(batches_of(4))
    cluster.script(*[log] * before, fault, fault, log)
    assert Reading(cluster).values(3, 38) == list(range(3, 38))


def test_a_corrupt_last_offset_delta_is_caught_before_anything_is_skipped(cluster: SimulatedCluster) -> None:
    damaged = bytearray(batches_of(1)[0][2])
    damaged[23:27] = (500).to_bytes(4, "big")
    cluster.script(FetchScript(bytes(damaged)), LogScript(batches_of(100)))
    with pytest.raises(CorruptRecordsError, match="CRC"):
        Reading(cluster).values(0, 1000)


def test_bytes_without_one_whole_batch_reach_the_decoder_and_fail_there(cluster: SimulatedCluster) -> None:
    cluster.script(FetchScript(batches_of(1)[0][2][:-1]))
    with pytest.raises(CorruptRecordsError, match="NO_COMPLETE_RECORD_BATCH"):
        Reading(cluster).values(0, 10)
