"""How often a warning that comes again is logged."""

from __future__ import annotations

from pyspark_kafka._connector.source.driver.reporting.log_rate_limiter import LogRateLimiter


def test_warning_is_due_at_first_and_then_once_in_a_span_for_each_subject() -> None:
    limiter = LogRateLimiter(60.0)
    assert [limiter.is_due("a", now) for now in (0.0, 59.9, 60.0, 119.0, 121.0)] == [True, False, True, False, True]
    assert limiter.is_due("b", 121.0)


def test_cleared_subject_is_due_again() -> None:
    limiter = LogRateLimiter(60.0)
    assert not limiter.clear("a")
    assert limiter.is_due("a", 0.0)
    assert limiter.clear("a")
    assert limiter.is_due("a", 1.0)


def test_oldest_subjects_are_forgotten_beyond_the_limit() -> None:
    limiter = LogRateLimiter(60.0, max_subjects=2)
    assert all(limiter.is_due(subject, now) for now, subject in enumerate("abc"))
    assert limiter.is_due("a", 3.0)
    assert not limiter.is_due("c", 4.0)
