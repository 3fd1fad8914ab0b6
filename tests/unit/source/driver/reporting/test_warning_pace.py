"""How often a warning that comes again is logged."""

from __future__ import annotations

from pyspark_kafka.source.driver.reporting.warning_pace import WarningPace


def test_warning_is_due_at_first_and_then_once_in_a_span_for_each_subject() -> None:
    pace = WarningPace(60.0)
    assert [pace.is_due("a", now) for now in (0.0, 59.9, 60.0, 119.0, 121.0)] == [True, False, True, False, True]
    assert pace.is_due("b", 121.0)


def test_cleared_subject_is_due_again() -> None:
    pace = WarningPace(60.0)
    assert not pace.clear("a")
    assert pace.is_due("a", 0.0)
    assert pace.clear("a")
    assert pace.is_due("a", 1.0)


def test_oldest_subjects_are_forgotten_beyond_the_limit() -> None:
    pace = WarningPace(60.0, most=2)
    assert all(pace.is_due(subject, now) for now, subject in enumerate("abc"))
    assert pace.is_due("a", 3.0)
    assert not pace.is_due("c", 4.0)
