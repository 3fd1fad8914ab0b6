"""How many failures in a row a query may have, and how long an outage of its checkpoint."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyspark_kafka.continuous.epochs.messages import Failed
from pyspark_kafka.continuous.query.failures import CHECKPOINT_OUTAGE_S, FailureLimit
from pyspark_kafka.continuous.run.errors import lane_failed
from pyspark_kafka.continuous.run.plan import RestartPauses
from pyspark_kafka.errors import CheckpointError, ConnectorError, ContinuousQueryError


def raised() -> ContinuousQueryError:
    return ContinuousQueryError("a function raised", condition="CONTINUOUS_TASK_FAILED", hint="Look.")


def unwritten(condition: str = "CHECKPOINT_IO", *, retriable: bool = True) -> CheckpointError:
    return CheckpointError("no answer", condition=condition, hint="Look.", retriable=retriable)


def in_a_lane(error: ConnectorError) -> ConnectorError:
    return lane_failed(Failed(0, "…", "Traceback …", error=error.to_json()), 5)


@pytest.mark.parametrize("met_by", [lambda error: error, in_a_lane], ids=["driver", "lane"])
@pytest.mark.parametrize("condition", ["CHECKPOINT_IO", "CHECKPOINT_GONE"])
def test_outage_of_the_checkpoint_ends_a_query_by_its_length_not_by_its_failures(
    condition: str, met_by: Callable[[ConnectorError], ConnectorError]
) -> None:
    limit, now, starts = FailureLimit(3, RestartPauses()), 1_000_000.0, 0
    while (pause := limit.failed(met_by(unwritten(condition)), now)) is not None:
        starts += 1
        now += pause
    assert now == 1_000_000 + CHECKPOINT_OUTAGE_S
    assert starts > 50


def test_restarts_in_an_outage_of_the_checkpoint_slow_down_to_the_longest_pause() -> None:
    limit = FailureLimit(3, RestartPauses())
    assert [limit.failed(unwritten(), 0.0) for _ in range(5)] == [0.2, 1, 5, 10, 10]
    assert limit.describe() == "its checkpoint, for 0 s of at most 600 s"


def test_outage_that_ends_with_an_epoch_is_forgotten() -> None:
    limit = FailureLimit(3, RestartPauses())
    assert limit.failed(unwritten(), 0.0) == 0.2
    limit.advanced()
    assert limit.failed(unwritten(), CHECKPOINT_OUTAGE_S) == 0.2


def test_outage_of_the_checkpoint_between_two_failures_does_not_hide_that_they_are_in_a_row() -> None:
    limit = FailureLimit(1, RestartPauses())
    assert limit.failed(raised(), 0.0) == 0.2
    assert limit.describe() == "1 of 1 in a row"
    assert limit.failed(unwritten(), 1.0) == 0.2
    assert limit.failed(raised(), 2.0) is None


@pytest.mark.parametrize(
    ("most", "failure"),
    [(0, unwritten()), (1, unwritten(retriable=False))],
    ids=["query that never starts again", "missing right"],
)
def test_failure_of_the_checkpoint_is_no_outage(most: int, failure: CheckpointError) -> None:
    limit = FailureLimit(most, RestartPauses())
    assert [limit.failed(failure, 0.0) for _ in range(most + 1)][-1] is None


def test_checkpoint_that_the_lanes_of_a_new_query_cannot_use_is_a_failure_like_others() -> None:
    limit = FailureLimit(1, RestartPauses())
    assert [limit.failed(in_a_lane(unwritten()), 0.0, has_read=False) for _ in range(2)] == [0.2, None]
