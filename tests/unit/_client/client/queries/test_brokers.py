"""The clock of the brokers, out of the state of the controllers, and their release, by their versions of requests."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.admin import DescribeQuorumResponse

from pyspark_kafka._client.client.queries.brokers import guess_release, probe_clock
from pyspark_kafka._client.client.waiting.deadline import Deadline


class Quorum:
    """A connection whose broker describes a quorum."""

    def __init__(self, leader_time_ms: int, error_code: int = 0, supported: bool = True) -> None:
        self._leader_time_ms, self._error_code, self._supported = leader_time_ms, error_code, supported

    def supports(self, _: Any, min_version: int) -> bool:
        return self._supported and min_version == 1

    def call(self, _request: Any, _deadline: Deadline) -> Any:
        topic = DescribeQuorumResponse.TopicData
        partition = topic.PartitionData
        replicas = [
            partition.ReplicaState(
                replica_id=number, log_end_offset=1, last_fetch_timestamp=-1, last_caught_up_timestamp=time_ms
            )
            for number, time_ms in ((1, 5), (2, self._leader_time_ms))
        ]
        described = partition(
            partition_index=0,
            error_code=0,
            leader_id=2,
            leader_epoch=1,
            high_watermark=1,
            current_voters=replicas,
            observers=[],
        )
        return DescribeQuorumResponse(
            error_code=self._error_code, topics=[topic(topic_name="__cluster_metadata", partitions=[described])]
        )


def probe(connection: Any) -> tuple[float, float] | None:
    times = iter([1_000.0, 1_040.0])
    return probe_clock(connection, Deadline(1_000), now_ms=lambda: next(times))


def test_clock_of_the_leader_is_compared_with_the_middle_of_the_request() -> None:
    assert probe(Quorum(9_020)) == (8_000, 20)


@pytest.mark.parametrize(
    "silent", [Quorum(9_020, error_code=31), Quorum(9_020, supported=False), Quorum(-1)], ids=["right", "old", "none"]
)
def test_clock_is_unknown_if_brokers_do_not_return_it(silent: Quorum) -> None:
    assert probe(silent) is None


@pytest.mark.parametrize(
    ("offered", "release"),
    [
        ({1: (4, 17), 2: (1, 9), 0: (3, 11)}, "3.9"),
        ({1: (0, 11), 2: (0, 5), 0: (0, 8)}, "2.4"),
        ({35: (1, 5), 1: (4, 18)}, "4.3"),
        ({1: (0, 8)}, "older than 2.1"),
        ({}, "older than 2.1"),
    ],
)
def test_release_is_the_newest_whose_requests_are_offered(offered: dict[int, tuple[int, int]], release: str) -> None:
    assert guess_release(offered) == release
