"""The meaning of a broker's codes for the owner of a transactional id."""

from __future__ import annotations

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.errors import (
    TransactionInDoubtError,
    TransactionLostError,
    raise_for_code,
    raise_if_in_doubt,
)
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.errors import AccessError, BrokerError

FENCED = ErrorCode.PRODUCER_FENCED
RIGHTS = (Right("Write", "transactional-id", "sink"), Right("Write", "topic", "t"))


def test_no_error_is_raised_without_a_code() -> None:
    raise_for_code(0, "Taking over", "sink", "broker-0:9092", rights=RIGHTS)
    raise_if_in_doubt(0, "sink", "broker-0:9092")


def test_owner_has_lost_its_transaction_when_it_is_fenced() -> None:
    with pytest.raises(
        TransactionLostError, match="Taking over transactional id 'sink' at broker-0:9092 failed"
    ) as lost:
        raise_for_code(FENCED, "Taking over", "sink", "broker-0:9092", rights=RIGHTS, owned=True)
    assert lost.value.parameters["cause"] == "PRODUCER_FENCED"


def test_code_is_a_broker_error_when_the_request_named_no_owner() -> None:
    with pytest.raises(BrokerError) as caught:
        raise_for_code(FENCED, "Taking over", "sink", "broker-0:9092", rights=RIGHTS)
    assert caught.value.code == FENCED


def test_refused_right_is_an_access_error_with_its_topic_partition() -> None:
    with pytest.raises(AccessError) as caught:
        raise_for_code(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "Joining t-0 to the transaction of",
            "sink",
            "broker-0:9092",
            rights=RIGHTS,
            topic_partition=TopicPartition("t", 0),
            owned=True,
        )
    assert caught.value.parameters["topic_partition"] == "t-0"
    assert caught.value.rights == (Right("Write", "topic", "t"),)
    assert "Missing right: WRITE on topic 't'." in str(caught.value)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, FENCED, ErrorCode.INVALID_TXN_STATE])
def test_end_is_in_doubt_when_its_code_may_follow_a_commit(code: int) -> None:
    with pytest.raises(TransactionInDoubtError, match="the transaction of 'sink' was committed is not known"):
        raise_if_in_doubt(code, "sink", "broker-0:9092")
