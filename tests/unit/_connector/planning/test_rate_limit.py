"""The share of each partition in a micro-batch with a limit of offsets."""

from __future__ import annotations

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.planning import (
    rate_limit,
)

P = [TopicPartition("orders", number) for number in range(40)]


def test_shares_are_those_of_sparks_connector() -> None:
    # Measured on spark-sql-kafka-0-10 4.2.0: 101, 11 and 1 waiting with a limit of 10.
    latest = {P[0]: 101, P[1]: 11, P[2]: 1}
    first = rate_limit({}, dict.fromkeys(latest, 0), latest, 10)
    assert first == {P[0]: 8, P[1]: 1, P[2]: 1}
    assert rate_limit(first, {}, latest, 10) == {P[0]: 17, P[1]: 2, P[2]: 1}


def test_a_limit_above_what_is_there_takes_all_of_it() -> None:
    assert rate_limit({P[0]: 5}, {}, {P[0]: 10}, 2**63 - 1) == {P[0]: 10}


def test_latest_offsets_are_kept_if_no_records_wait() -> None:
    assert rate_limit({P[0]: 5, P[1]: 9}, {}, {P[0]: 5, P[1]: 3}, 10) == {P[0]: 5, P[1]: 3}


def test_a_new_partition_begins_at_its_earliest_offset() -> None:
    assert rate_limit({P[0]: 0}, {P[1]: 100}, {P[0]: 100, P[1]: 200}, 10) == {P[0]: 5, P[1]: 105}


def test_a_known_partition_begins_at_its_start_whatever_its_earliest_offset() -> None:
    assert rate_limit({P[0]: 50}, {P[0]: 10}, {P[0]: 100}, 10) == {P[0]: 60}


def test_partition_without_start_and_earliest_offset_keeps_its_latest() -> None:
    assert rate_limit({P[0]: 0}, {}, {P[0]: 100, P[1]: 200}, 10) == {P[0]: 10, P[1]: 200}


def test_a_partition_that_went_back_keeps_its_end_for_planning_to_report() -> None:
    assert rate_limit({P[0]: 0, P[1]: 50}, {}, {P[0]: 100, P[1]: 20}, 10) == {P[0]: 10, P[1]: 20}


def test_many_small_partitions_take_more_than_the_limit_and_all_move_on() -> None:
    latest = dict.fromkeys(P, 1)
    assert rate_limit(dict.fromkeys(P, 0), {}, latest, 3) == latest


def test_a_deleted_partition_is_not_in_the_result() -> None:
    assert rate_limit({P[0]: 0, P[1]: 0}, {}, {P[0]: 9}, 3) == {P[0]: 3}


def test_shares_are_exact_beyond_64_bits_and_where_floating_point_is_not() -> None:
    ends = rate_limit({}, {P[0]: 0, P[1]: 0}, {P[0]: 2**62, P[1]: 2**62}, 2**63 - 1)
    assert ends == {P[0]: 2**62 - 1, P[1]: 2**62 - 1}
    # 0.29 * 100 is 28.999… in doubles.
    assert rate_limit({P[0]: 0, P[1]: 0}, {}, {P[0]: 29, P[1]: 71}, 100) == {P[0]: 29, P[1]: 71}


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_without_progress_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="at least 1 offset"):
        rate_limit({P[0]: 0}, {}, {P[0]: 1}, limit)
