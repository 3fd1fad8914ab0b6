"""When a read without progress is an outage of brokers, and gets the longer time."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from kit.fakes.clock import Clock
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.fetch.cursor import Cursor
from pyspark_kafka._client.client.fetch.progress_timeout import ProgressTimeout
from pyspark_kafka._client.client.fetch.request import RecordSizes
from pyspark_kafka._client.client.fetch.session.brokers import Throttle
from pyspark_kafka._client.client.fetch.session.session import FetchSession
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka.errors import DeadlineError, TransportError

FETCH = FetchOptions(max_wait_ms=500, poll_timeout_ms=10_000, outage_timeout_ms=60_000)


class Scene:
    """A read with one request in flight, and records to come."""

    def __init__(self, in_flight_s: float, fetch: FetchOptions = FETCH) -> None:
        self.clock = Clock()
        options = ConnectionOptions((("b", 9092),))
        cursor = Cursor(OffsetRange(TopicPartition("t", 0), 0, 9), fetch, options, RecordSizes())
        self.ranges = SimpleNamespace(
            active=[cursor], last_error=None, last_was_cut_short=False, must_progress=True, forget_errors=lambda: True
        )
        self.brokers = SimpleNamespace(oldest_request_s=lambda _: in_flight_s, throttle=Throttle())
        session = SimpleNamespace(ranges=self.ranges, brokers=self.brokers)
        self.timeout = ProgressTimeout(options, fetch, cast("FetchSession", session), self.clock, self.clock.sleep)


def test_broker_that_is_late_by_more_than_a_second_is_an_outage() -> None:
    scene = Scene(in_flight_s=1.6)
    progress = scene.timeout.begin()
    scene.clock.now += 11
    assert scene.timeout.check(progress).timeout_ms == 60_000
    assert not scene.timeout.rest()


def test_broker_that_waits_for_records_as_long_as_it_may_is_no_outage() -> None:
    scene = Scene(in_flight_s=1.4)
    progress = scene.timeout.begin()
    scene.clock.now += 11
    with pytest.raises(DeadlineError, match="FETCH_NO_PROGRESS"):
        scene.timeout.check(progress)
    assert scene.timeout.rest()


@pytest.mark.parametrize(
    ("cut_short", "hint"), [(False, "Look at the broker."), (True, "Look for an open transaction")]
)
def test_hint_of_a_failure_counts_unless_the_end_of_the_read_was_the_failure(cut_short: bool, hint: str) -> None:
    """A broker that has nothing visible keeps its response until then; one that was silent before is its own matter."""
    scene = Scene(in_flight_s=0.0)
    scene.ranges.active[0].log = (0, 9, 0)
    scene.ranges.last_error = DeadlineError(
        "b:9092 is silent.", condition="X", hint="Look at the broker.", retriable=True
    )
    scene.ranges.last_was_cut_short = cut_short
    progress = scene.timeout.begin()
    scene.clock.now += 11
    with pytest.raises(DeadlineError) as caught:
        scene.timeout.check(progress)
    assert caught.value.hint.startswith(hint)


def test_bytes_that_arrive_start_the_time_again() -> None:
    scene = Scene(in_flight_s=0.0)
    progress = scene.timeout.begin()
    scene.clock.now += 9
    scene.timeout.start_again()
    progress = scene.timeout.check(progress)
    scene.clock.now += 9
    assert scene.timeout.check(progress) is progress
    scene.clock.now += 2
    with pytest.raises(DeadlineError, match="for 10000 ms"):
        scene.timeout.check(progress)


@pytest.mark.parametrize("failing", [False, True], ids=["quiet", "failing"])
def test_time_that_has_expired_by_a_hair_is_not_extended_by_nothing(failing: bool) -> None:
    for timeout_ms in range(300, 1_300, 7):
        fetch = replace(FETCH, poll_timeout_ms=timeout_ms, outage_timeout_ms=timeout_ms)
        scene = Scene(in_flight_s=9.0 if failing else 0.0, fetch=fetch)
        scene.clock.now = 0.1
        progress = scene.timeout.begin()
        # By this clock, the whole milliseconds are sometimes one less than the time.
        scene.clock.now += timeout_ms / 1000
        if progress.expired:
            with pytest.raises(DeadlineError):
                scene.timeout.check(progress)


def test_throttle_times_of_several_brokers_at_a_time_count_once() -> None:
    throttle = Throttle()
    throttle.note("a:1", 100.0, 104.0)
    throttle.note("b:1", 101.0, 103.0)
    throttle.note("b:1", 103.0, 106.0)
    assert (throttle.total_s, throttle.until, throttle.address) == (6.0, 106.0, "b:1")
    assert throttle.describe(6.0, 104.0) == (
        "b:1 throttled this client by a quota for 4 s of them, and wants no request for 2 s more"
    )
    assert throttle.describe(6.0, 107.0) == "b:1 throttled this client by a quota for 6 s of them"
    assert throttle.describe(0.0, 107.0) == ""


def test_long_wait_under_a_quota_says_so_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(in_flight_s=0.0)
    scene.brokers.throttle.note("a:1", scene.clock(), scene.clock() + 3_600)
    scene.timeout.begin()
    with scene.timeout.wait:
        scene.clock.now += 20
        # A wait without an end that the caller leaves is none of the caller's, unless somebody throttles.
        assert scene.timeout.rest()
        scene.timeout.wait.warn()
        assert scene.timeout.rest(fed=True)
        assert scene.timeout.wait.warned_at is None
    assert "Last failure: a:1 throttled this client by a quota for 20 s of them, and wants no request for 3580 s" in (
        caplog.text
    )


def test_read_that_fails_has_the_hint_of_the_last_failure_alone() -> None:
    scene = Scene(in_flight_s=0.0)
    scene.ranges.last_error = TransportError("It failed.", condition="CONNECTION_LOST", hint="Correct it.")
    progress = scene.timeout.begin()
    scene.clock.now += 11
    with pytest.raises(DeadlineError, match=r"failure: \[CONNECTION_LOST\] It failed\. Hint: Correct it\. See \S+$"):
        scene.timeout.check(progress)
