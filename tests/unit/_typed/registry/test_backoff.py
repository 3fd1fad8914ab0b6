from __future__ import annotations

import pytest

from kit.fakes.clock import Clock
from pyspark_kafka._typed.registry.backoff import RegistryBackoff
from pyspark_kafka._typed.registry.guard import parse_retry_after


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_waits_grow_with_each_outage(clock: Clock) -> None:
    backoff = RegistryBackoff(clock)
    assert backoff.wait_s() == 0
    for longest_s in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0):
        backoff.failed()
        wait_s = backoff.wait_s()
        assert longest_s / 2 <= wait_s <= longest_s
        clock.now += wait_s + 0.001
        assert backoff.wait_s() == 0


def test_threads_that_meet_the_same_outage_count_it_once(clock: Clock) -> None:
    backoff = RegistryBackoff(clock)
    for _ in range(8):
        backoff.failed()
    assert 0.05 <= backoff.wait_s() <= 0.1
    clock.now += 0.11
    backoff.failed()
    assert 0.1 <= backoff.wait_s() <= 0.2


def test_answer_ends_the_waits(clock: Clock) -> None:
    backoff = RegistryBackoff(clock)
    backoff.failed()
    backoff.answered()
    assert backoff.wait_s() == 0
    backoff.failed()
    assert backoff.wait_s() <= 0.1


def test_registry_that_asks_for_time_is_left_alone_for_it(clock: Clock) -> None:
    backoff = RegistryBackoff(clock)
    backoff.failed(7.0)
    assert backoff.wait_s() == 7.0
    # Another thread, of which it asks for more; it cannot ask for ever.
    backoff.failed(9.0)
    assert backoff.wait_s() == 9.0
    backoff.failed(1e9)
    assert backoff.wait_s() == 60.0


@pytest.mark.parametrize(
    ("text", "expected_s"),
    [
        ("7", 7.0),
        (" 120 ", 120.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
        ("9" * 400, 999_999_999.0),
        ("-7", 0.0),
        ("\u0667", 0.0),
        ("soon", 0.0),
        ("", 0.0),
    ],
)
def test_retry_after_has_seconds_or_a_time(text: str, expected_s: float) -> None:
    assert parse_retry_after(text, now=10.0) == expected_s
