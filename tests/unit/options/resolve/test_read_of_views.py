"""The options of a view: whose positions it compares, and what has no meaning without it."""

from __future__ import annotations

import pytest

from pyspark_kafka.errors import OptionError
from pyspark_kafka.model import IsolationLevel
from pyspark_kafka.options import asks_for_view, parse_batch_read_options, parse_lag_view_options

SERVERS = {"kafka.bootstrap.servers": "b:9092"}
LAG = {**SERVERS, "view": "lag"}


def test_view_is_asked_for_in_any_case_of_letters() -> None:
    assert asks_for_view({"View": "lag"})
    assert not asks_for_view(SERVERS)


def test_view_has_its_positions_topics_and_isolation() -> None:
    found = parse_lag_view_options(
        {**LAG, "LAGGROUP": "g", "subscribe": "b,a", "kafka.isolation.level": "read_committed"}
    )
    assert (found.lag_group, found.lag_checkpoint, found.topics) == ("g", None, ("a", "b"))
    assert found.isolation_level is IsolationLevel.READ_COMMITTED
    assert found.notes == ()


def test_view_reads_uncommitted_of_all_topics_by_default() -> None:
    found = parse_lag_view_options({**LAG, "lagCheckpoint": "/c"})
    assert (found.lag_checkpoint, found.topics) == ("/c", ())
    assert found.isolation_level is IsolationLevel.READ_UNCOMMITTED


def test_options_of_reading_records_have_no_effect_and_are_noted() -> None:
    found = parse_lag_view_options({**LAG, "lagGroup": "g", "startingOffsets": "earliest"})
    assert found.notes == ("Option 'startingOffsets' has no effect: a view reads no records.",)


@pytest.mark.parametrize(
    ("given", "condition"),
    [
        ({}, "OPTION_MISSING"),
        ({"lagGroup": "g", "lagCheckpoint": "/c"}, "OPTION_CONFLICT"),
        ({"lagGroup": "g", "view": "leg"}, "OPTION_INVALID"),
        ({"lagGroup": "g", "topic": "t"}, "OPTION_NOT_APPLICABLE"),
    ],
)
def test_options_that_do_not_fit_are_refused(given: dict[str, str], condition: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_lag_view_options({**LAG, **given})
    assert caught.value.condition == condition


def test_positions_have_no_meaning_in_a_read_of_records() -> None:
    with pytest.raises(OptionError, match="Option 'lagGroup' has no meaning in a read of records") as caught:
        parse_batch_read_options({**SERVERS, "subscribe": "t", "lagGroup": "g"})
    assert caught.value.hint == 'To see lag as rows, set .option("view", "lag").'
