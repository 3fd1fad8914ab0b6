"""Broker codes become errors of this package that keep number and name."""

from __future__ import annotations

import pickle

import pytest

from pyspark_kafka.client.fetch.errors import OffsetOutOfRangeError
from pyspark_kafka.client.wire.messages import ErrorCode, broker_error, error_kind
from pyspark_kafka.errors import AccessError, BrokerError


def test_the_text_holds_name_number_detail_and_hint() -> None:
    error = broker_error(29, "Fetching orders-3 failed", detail="no", consequence="Nothing was read.", topic="orders")
    assert isinstance(error, AccessError)
    assert str(error) == (
        "[TOPIC_AUTHORIZATION_FAILED] Fetching orders-3 failed: the broker answered TOPIC_AUTHORIZATION_FAILED (29). "
        'The broker said: "no". Nothing was read. Hint: Grant the principal READ and DESCRIBE (to write: WRITE) on '
        "the topic."
    )
    assert (error.code, error.retriable, error.facts) == (29, False, {"topic": "orders"})


def test_an_unknown_code_keeps_its_number_and_is_not_retriable() -> None:
    error = broker_error(12345, "x")
    assert type(error) is BrokerError
    assert (error.code, error.condition, error.retriable) == (12345, "UNKNOWN_CODE_12345", False)


@pytest.mark.parametrize("code", list(ErrorCode))
def test_the_codes_used_by_name_agree_with_the_table(code: ErrorCode) -> None:
    assert error_kind(code).name == code.name


def test_errors_survive_pickling_with_all_their_values() -> None:
    error = OffsetOutOfRangeError("gone", code=1, condition="OFFSET_OUT_OF_RANGE")
    error.requested_offset, error.log_start_offset, error.log_end_offset = 3, 10, 20
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (str(copy), copy.code, copy.requested_offset) == (str(error), 1, 3)
    assert (copy.log_start_offset, copy.log_end_offset) == (10, 20)
