"""The steps of a session one by one, and what a caller may change while it runs."""

from __future__ import annotations

from typing import Any

import pytest

from kit.fakes.handlers.fetch import BrokerLog, FetchScript, LogScript
from kit.fakes.logs import batches_of
from kit.fakes.scripts import Silence
from kit.fakes.simulated_cluster import SimulatedCluster, SimulatedRead, closed
from kit.reading import decoded_fetch
from pyspark_kafka._base.model import NO_END, OffsetRange, TopicPartition
from pyspark_kafka._client.client.fetch.request import FetchFrame
from pyspark_kafka._client.client.fetch.session.session import FetchSession
from pyspark_kafka._client.client.fetch.session.steps import (
    Deliver,
    Done,
    FetchLogEnds,
    FindLeaders,
    Leave,
    LookAtSilent,
    Raise,
    Send,
    WaitUntil,
)
from pyspark_kafka.errors import DeadlineError, TransportError

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


@pytest.fixture
def cluster() -> SimulatedCluster:
    cluster = SimulatedCluster()
    cluster.add_topic("t", partitions=3)
    log = BrokerLog({("t", number): batches_of(3) for number in range(3)}, cluster.topic_ids)
    cluster.script(log)
    return cluster


def read_of(cluster: SimulatedCluster, *topic_partitions: TopicPartition, end: int = 30, **fetch: Any) -> SimulatedRead:
    return SimulatedRead(cluster, [OffsetRange(each, 0, end) for each in topic_partitions], **fetch)


def steps_until(read: SimulatedRead, kind: type) -> list[str]:
    """Do steps until one of a kind comes; return the names of all of them."""
    names: list[str] = []
    while True:
        step = read.session.next_step(read.cluster.now)
        names.append(type(step).__name__)
        if isinstance(step, kind):
            return names
        read.do(step, read.cluster.now + 100)


def fetch_of(session: FetchSession, now: float) -> Send:
    step = session.next_step(now)
    assert isinstance(step, Send)
    return step


def test_session_sends_the_next_request_before_it_delivers_a_response(cluster: SimulatedCluster) -> None:
    read = read_of(cluster, T0, max_bytes_per_fetch=10)
    read.session.begin(0.0)
    assert steps_until(read, Deliver) == ["FindLeaders", "Send", "WaitUntil", "Send", "Deliver"]
    assert cluster.asked_offsets() == [0, 10]
    assert steps_until(read, Deliver) == ["WaitUntil", "Send", "Deliver"]
    assert steps_until(read, Deliver) == ["WaitUntil", "Deliver"]
    assert steps_until(read, Done) == ["Done"]


def test_session_looks_nothing_up_while_records_are_at_hand(cluster: SimulatedCluster) -> None:
    read = read_of(cluster, T0, max_bytes_per_fetch=10)
    steps_until(read, WaitUntil)
    cluster.forget_topic("t")
    read.do(WaitUntil(1.0), 1.0)
    assert isinstance(read.session.next_step(cluster.now), Deliver)
    assert isinstance(read.session.next_step(cluster.now), FindLeaders)


def test_send_ahead_that_fails_costs_no_record_and_is_repeated_in_the_next_turn(cluster: SimulatedCluster) -> None:
    read = read_of(cluster, T0, max_bytes_per_fetch=10)
    steps_until(read, WaitUntil)
    read.do(WaitUntil(1.0), 1.0)
    send = fetch_of(read.session, cluster.now)
    read.session.on_failure(send.broker_id, closed(0))
    step = read.session.next_step(cluster.now)
    assert isinstance(step, Deliver)
    assert step.fetched.start_offset == 0
    assert read.session.ranges.last_error is None
    assert fetch_of(read.session, cluster.now).positions[0].offset == 10


def test_failure_of_a_broker_is_that_of_all_its_ranges_and_they_are_asked_for_together_again(
    cluster: SimulatedCluster,
) -> None:
    read = read_of(cluster, T0, T1, T2)
    steps_until(read, WaitUntil)
    read.session.on_failure(0, closed(0))
    wait = read.session.next_step(cluster.now)
    assert isinstance(wait, WaitUntil)
    # At most the longest pause, 5 ms.
    assert cluster.now < wait.time <= cluster.now + 0.005
    cluster.now = wait.time
    step = read.session.next_step(cluster.now)
    assert step == FindLeaders((T0, T1, T2), patient=False)


def test_connection_that_is_being_made_holds_up_no_other_broker(cluster: SimulatedCluster) -> None:
    cluster.leaders["t", 1] = (1, 0)
    read = read_of(cluster, T0, T1)
    read.connecting[0] = 3.0
    order = [topic_partition.partition for topic_partition, _ in read]
    assert order == [1, 0]


def test_connection_that_cannot_be_made_is_tried_again_after_a_look_at_the_leader(cluster: SimulatedCluster) -> None:
    read = read_of(cluster, T0)
    steps_until(read, Send)
    read.session.on_connecting(0, cluster.now)
    assert isinstance(read.session.next_step(cluster.now), WaitUntil)
    refused = TransportError("refused", condition="CONNECTION_FAILED", retriable=True)
    read.session.on_failure(0, refused)
    before = read.session.ranges.last_error
    read.session.next_step(cluster.now)
    assert (before, read.session.ranges.last_error) == (None, refused)
    assert steps_until(read, Deliver)[0] == "WaitUntil"


def test_silent_broker_is_left_when_another_one_leads(cluster: SimulatedCluster) -> None:
    cluster.script(Silence, broker_id=0)
    read = read_of(cluster, T0, connection={"request_timeout_ms": 30_000})
    read.session.begin(0.0)
    steps_until(read, WaitUntil)
    cluster.leaders["t", 0] = (1, 1)
    assert steps_until(read, Deliver) == [
        "WaitUntil", "LookAtSilent", "Leave", "Send", "WaitUntil", "Deliver",
    ]  # fmt: skip
    assert read.left == [0]
    assert cluster.asked_brokers() == [0, 1]
    assert cluster.now < 2.1


def test_silent_broker_that_still_leads_is_waited_for(cluster: SimulatedCluster) -> None:
    cluster.script(Silence, broker_id=0)
    read = read_of(cluster, T0, connection={"request_timeout_ms": 30_000})
    read.session.begin(0.0)
    steps_until(read, LookAtSilent)
    for _ in range(5):
        assert "Leave" not in steps_until(read, LookAtSilent)
    assert isinstance(read.session.next_step(cluster.now), WaitUntil)
    assert cluster.asked_brokers() == [0]


def test_broker_is_not_silent_while_the_caller_is_away(cluster: SimulatedCluster) -> None:
    cluster.script(Silence, broker_id=0)
    read = read_of(cluster, T0)
    steps_until(read, WaitUntil)
    read.session.begin(cluster.now + 100)
    step = read.session.next_step(cluster.now + 100)
    assert isinstance(step, WaitUntil)
    assert step.time == pytest.approx(cluster.now + 102, abs=0.1)
    assert not isinstance(read.session.next_step(cluster.now + 101), (LookAtSilent, Leave))


def test_look_at_the_log_that_fails_is_put_off(cluster: SimulatedCluster) -> None:
    cluster.script(FetchScript(high_watermark=0, last_stable_offset=0))
    read = read_of(cluster, T0, poll_timeout_ms=120_000)
    assert steps_until(read, FetchLogEnds)[-1] == "FetchLogEnds"
    began_at = cluster.now
    read.session.lookups.on_lookup_failure(
        FetchLogEnds((T0,), alone=True), DeadlineError("late", condition="DEADLINE_EXCEEDED", retriable=True), began_at
    )
    steps_until(read, FetchLogEnds)
    assert cluster.now >= began_at + 2.0


def test_error_is_raised_again_until_its_range_is_resumed_or_removed(cluster: SimulatedCluster) -> None:
    cluster.ends["t", 0] = (50, 80)
    cluster.script(FetchScript(error_code=1))
    read = read_of(cluster, T0)
    steps_until(read, Raise)
    first = read.session.next_step(cluster.now)
    assert isinstance(first, Raise)
    assert read.session.next_step(cluster.now) == first
    assert read.session.ranges.remove(T0) == 0
    assert read.session.next_step(cluster.now) == Done()


def test_request_waits_for_records_as_long_as_the_options_say(cluster: SimulatedCluster) -> None:
    read = read_of(cluster, T0, min_bytes=7, max_wait_ms=30_000)
    steps_until(read, Send)
    frame = FetchFrame(fetch_of(read.session, cluster.now).positions, read.fetch, max_bytes=1, rack=None)
    request = decoded_fetch(frame, 12)
    assert (request.min_bytes, request.max_wait_ms) == (7, 30_000)


def test_range_without_an_end_is_read_on_when_there_is_more(cluster: SimulatedCluster) -> None:
    cluster.script(LogScript(batches_of(2)))
    read = read_of(cluster, T0, end=NO_END, poll_timeout_ms=60_000)
    assert [next(read)[1].start_offset for _ in range(2)] == [0, 10]
    fetches = len(cluster.seen)
    for _ in range(200):
        # Neither an error nor a look at the log, however long nothing comes.
        step = read.session.next_step(cluster.now)
        assert isinstance(step, (Send, WaitUntil))
        read.do(step, cluster.now + 1_000)
    assert cluster.now > 0.1
    assert len(cluster.seen) > fetches
    cluster.script(LogScript(batches_of(3)))
    assert next(read)[1].start_offset == 20


def test_caller_of_ranges_without_an_end_may_wait_longer_than_for_progress(cluster: SimulatedCluster) -> None:
    cluster.script(*[FetchScript(high_watermark=0, last_stable_offset=0)] * 30, LogScript(batches_of(1)))
    read = read_of(cluster, T0, end=NO_END, poll_timeout_ms=100, max_wait_ms=500)
    read.latency_s = lambda: 0.5
    assert next(read)[1].start_offset == 0
    assert cluster.now > 10


def test_paused_range_is_not_asked_for_and_its_records_at_hand_are_delivered(cluster: SimulatedCluster) -> None:
    read = read_of(cluster, T0, T1, max_bytes_per_fetch=10)
    topic_partition, _ = next(read)
    assert topic_partition == T0
    read.session.ranges.hold(T0, held=True)
    asked = len(cluster.seen)
    assert [found.partition for found, _ in (next(read) for _ in range(3))] == [1, 1, 1]
    # What was in flight when it was paused may name it.
    assert all(0 not in partitions for partitions in cluster.asked_partitions()[asked:])
    step = read.session.next_step(cluster.now)
    assert isinstance(step, WaitUntil)
    read.session.ranges.hold(T0, held=False)
    assert read.values() == {T0: [*range(10, 30)]}


def test_range_that_is_added_is_read_beside_the_others(cluster: SimulatedCluster) -> None:
    read = read_of(cluster, T0, max_bytes_per_fetch=10)
    next(read)
    read.session.ranges.add_range(OffsetRange(T1, 5, 15))
    with pytest.raises(ValueError, match="two ranges of t-1"):
        read.session.ranges.add_range(OffsetRange(T1, 0, 5))
    assert read.values() == {T0: [*range(10, 30)], T1: [*range(5, 15)]}


def test_range_that_is_removed_is_delivered_no_more_and_tells_how_far_it_came(cluster: SimulatedCluster) -> None:
    read = read_of(cluster, T0, T1, T2, max_bytes_per_fetch=10)
    # Three ranges: t-0 was delivered once, its next request is behind those of the others.
    next(read)
    assert read.session.ranges.remove(T0) == 10
    assert set(read.values()) == {T1, T2}


def test_removed_range_can_be_added_again_while_its_former_request_is_in_flight(cluster: SimulatedCluster) -> None:
    read = read_of(cluster, T0, max_bytes_per_fetch=10)
    next(read)
    # The request for offset 10 is in flight.
    assert cluster.asked_offsets() == [0, 10]
    assert read.session.ranges.remove(T0) == 10
    read.session.ranges.add_range(OffsetRange(T0, 10, 30))
    assert read.values() == {T0: [*range(10, 30)]}


def test_records_at_hand_of_a_removed_range_are_dropped(cluster: SimulatedCluster) -> None:
    read = read_of(cluster, T0, T1)
    assert next(read)[0] == T0
    # Both came in one response.
    assert read.session.has_records
    assert read.session.ranges.remove(T1) == 0
    assert read.session.next_step(cluster.now) == Done()
