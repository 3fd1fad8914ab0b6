"""For how long idle connections are trusted."""

from __future__ import annotations

import math

import pytest

from kit.fakes.clock import Clock
from pyspark_kafka._client.client.net.idleness import IdleTimes, doubt_after_s
from pyspark_kafka._client.options import ConnectionOptions

CLUSTER = ConnectionOptions((("a", 9092),), max_idle_ms=180_000)
OTHER_CLUSTER = ConnectionOptions((("b", 9092),))


@pytest.mark.parametrize(
    ("idle_s", "was_lent", "silent_s"), [(5.0, False, 1.0), (5.0, True, 1.0), (1.0, True, 2.0), (1.0, False, math.inf)]
)
def test_silence_raises_doubt_sooner_after_a_longer_idle_time(idle_s: float, was_lent: bool, silent_s: float) -> None:
    assert doubt_after_s(idle_s, was_lent=was_lent) == silent_s


def test_connection_is_used_until_its_idle_time_is_over() -> None:
    clock = Clock()
    times = IdleTimes(clock)
    heard_at = clock.now
    clock.now += 180
    assert times.allow(CLUSTER, heard_at)
    clock.now += 1
    assert not times.allow(CLUSTER, heard_at)


def test_connection_is_used_after_any_idle_time_if_the_option_sets_no_limit() -> None:
    clock = Clock()
    times = IdleTimes(clock)
    clock.now += 1e6
    assert times.allow(ConnectionOptions(CLUSTER.bootstrap_servers, max_idle_ms=-1), 0.0)


def test_forgotten_connection_takes_the_trust_from_those_that_were_idle_for_as_long() -> None:
    clock = Clock()
    times = IdleTimes(clock)
    longer, same, shorter = clock.now - 20, clock.now - 10, clock.now - 5
    times.note_forgotten(CLUSTER, same)
    times.note_forgotten(CLUSTER, longer)
    assert [times.allow(CLUSTER, heard_at) for heard_at in (longer, same, shorter)] == [False, False, True]
    assert times.allow(OTHER_CLUSTER, longer)
