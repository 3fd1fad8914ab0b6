"""Sizes of logs, as brokers report them: refusals, broken disks, logs that move to another disk."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.admin import DescribeLogDirsResponse

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.queries.log_sizes import parse_response
from pyspark_kafka.errors import AccessError

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
Result = DescribeLogDirsResponse.DescribeLogDirsResult
Topic = Result.DescribeLogDirsTopic


def directory(*entries: tuple[int, int, bool], error_code: int = 0) -> Any:
    partitions = [
        Topic.DescribeLogDirsPartition(partition_index=number, partition_size=size, offset_lag=0, is_future_key=future)
        for number, size, future in entries
    ]
    return Result(error_code=error_code, log_dir="/d", topics=[Topic(name="t", partitions=partitions)])


def response(*directories: Any, error_code: int = 0) -> Any:
    return DescribeLogDirsResponse(throttle_time_ms=0, error_code=error_code, results=list(directories))


def test_log_sizes_come_from_all_directories_for_what_was_asked_only() -> None:
    answer = response(directory((0, 10, False), (7, 99, False)), directory((1, 20, False)))
    assert parse_response(answer, {A, B}, "kafka-1:9092") == {A: 10, B: 20}


def test_log_counts_once_while_it_moves_to_another_disk() -> None:
    assert parse_response(response(directory((0, 10, False)), directory((0, 4, True))), {A}, "x:1") == {A: 10}


def test_log_sizes_leave_out_a_broken_disk() -> None:
    answer = response(directory((0, 10, False), error_code=56), directory((1, 20, False)))
    assert parse_response(answer, {A, B}, "x:1") == {B: 20}


@pytest.mark.parametrize("answer", [response(error_code=31), response()], ids=["version 3", "older"])
def test_log_sizes_are_refused_to_a_user_who_may_not_describe_the_cluster(answer: Any) -> None:
    with pytest.raises(AccessError) as caught:
        parse_response(answer, {A}, "kafka-1:9092")
    text = str(caught.value)
    assert text.startswith("[CLUSTER_AUTHORIZATION_FAILED] Asking kafka-1:9092 for the sizes of logs failed")
    assert "Missing right: DESCRIBE on the cluster. Hint: Have an administrator run `kafka-acls " in text
    assert "--operation Describe --cluster`. A service that does not offer DescribeLogDirs" in text
