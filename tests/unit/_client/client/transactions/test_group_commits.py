"""The requests that set positions of a consumer group, and what their responses mean."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.consumer import OffsetCommitResponse

from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.group_commits import build_request, parse_response
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.errors import AccessError, BrokerError, ProtocolError

ADDRESS = "broker-0:9092"
ASKED = [TopicPartition("t", number) for number in range(3)]


def response(codes: dict[int, int], topic: str = "t") -> Any:
    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    entries = [
        topic_class.OffsetCommitResponsePartition(partition_index=number, error_code=code)
        for number, code in codes.items()
    ]
    return OffsetCommitResponse(throttle_time_ms=0, topics=[topic_class(name=topic, partitions=entries)])


def test_request_is_that_of_nobody_in_the_group() -> None:
    request = build_request("lag", {"t": {0: 7, 2: 9}})
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("lag", -1, "")
    ((topic),) = request.topics
    assert topic.name == "t"
    assert [(each.partition_index, each.committed_offset) for each in topic.partitions] == [(0, 7), (2, 9)]


def test_partitions_that_are_refused_alone_are_named_with_the_missing_right() -> None:
    refused = parse_response(response({0: 0, 1: 3, 2: 29}), ASKED, "lag", ADDRESS)
    assert sorted(refused) == [TopicPartition("t", 1), TopicPartition("t", 2)]
    assert said(refused[TopicPartition("t", 1)]) == (
        "[UNKNOWN_TOPIC_OR_PARTITION] Setting the position of consumer group 'lag' in t-1 at broker-0:9092 failed: the "
        "broker answered UNKNOWN_TOPIC_OR_PARTITION (3)."
    )
    error = refused[TopicPartition("t", 2)]
    assert isinstance(error, AccessError)
    assert error.rights == (Right("Read", "topic", "t"),)


def test_missing_right_on_the_group_is_an_error_with_the_line_that_grants_it() -> None:
    with pytest.raises(AccessError) as caught:
        parse_response(response({0: ErrorCode.GROUP_AUTHORIZATION_FAILED}), ASKED[:1], "lag", ADDRESS)
    assert caught.value.rights == (Right("Read", "group", "lag"),)
    assert "--operation Read --group lag" in caught.value.hint


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS]
)
def test_group_with_members_is_not_ours(code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as caught:
        parse_response(response({0: code}), ASKED[:1], "lag", ADDRESS)
    assert said(caught.value) == (
        "[GROUP_HAS_MEMBERS] Consumer group 'lag' has members: another application reads with it. broker-0:9092 takes "
        f"positions from them only, and answered {code.name} ({code:d}). The group stays as it was. "
        "Hint: Name a group that no other application uses."
    )


def test_coordinator_that_moved_is_an_error_to_be_retried() -> None:
    with pytest.raises(BrokerError) as caught:
        parse_response(response({0: ErrorCode.NOT_COORDINATOR}), ASKED[:1], "lag", ADDRESS)
    assert caught.value.retriable


@pytest.mark.parametrize(
    ("codes", "problem"),
    [({}, "lacks t-0, t-1, t-2"), ({0: 0, 2: 0}, "lacks t-1"), ({0: 0, 1: 0, 7: 0}, "lacks t-2")],
)
def test_partition_that_a_response_leaves_out_is_not_set(codes: dict[int, int], problem: str) -> None:
    with pytest.raises(
        ProtocolError, match=rf"\[RESPONSE_INCOMPLETE\] The response of .* to OffsetCommit {problem}\."
    ) as caught:
        parse_response(response(codes), ASKED, "lag", ADDRESS)
    assert caught.value.retriable
