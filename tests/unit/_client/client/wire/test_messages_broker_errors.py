"""Broker codes become errors of this package that keep number and name."""

from __future__ import annotations

import pickle

from kit.texts import said
from pyspark_kafka._client.client.fetch.errors import OffsetOutOfRangeError
from pyspark_kafka._client.client.wire.messages import ErrorCode, broker_error, error_kind
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.errors import AccessError, BrokerError


def test_the_text_holds_name_number_detail_and_hint() -> None:
    error = broker_error(10, "Writing orders-3 failed", detail="no", consequence="Nothing was written.", topic="orders")
    assert type(error) is BrokerError
    assert said(error) == (
        "[MESSAGE_TOO_LARGE] Writing orders-3 failed: the broker answered MESSAGE_TOO_LARGE (10). "
        'The broker said: "no". Nothing was written. Hint: Raise message.max.bytes of the topic, or lower '
        "kafka.max.request.size."
    )
    assert (error.code, error.retriable, error.parameters) == (10, False, {"topic": "orders"})


def test_missing_right_is_named_with_the_line_that_grants_it() -> None:
    needed = (Right("Read", "topic", "orders"), Right("Write", "transactional-id", "sink"))
    error = broker_error(29, "Fetching orders-3 failed", consequence="Nothing was read.", rights=needed, topic="orders")
    assert isinstance(error, AccessError)
    assert said(error) == (
        "[TOPIC_AUTHORIZATION_FAILED] Fetching orders-3 failed: the broker answered TOPIC_AUTHORIZATION_FAILED (29). "
        "Missing right: READ on topic 'orders'. Nothing was read. Hint: Have an administrator run `kafka-acls "
        "--bootstrap-server '<servers>' --add --allow-principal 'User:<you>' --operation Read --topic orders`."
    )
    assert error.rights == needed[:1]
    assert error.parameters == {"topic": "orders", "missing": "READ on topic 'orders'"}


def test_rights_of_a_request_are_left_out_when_the_code_is_about_something_else() -> None:
    error = broker_error(3, "x", rights=(Right("Read", "topic", "orders"),))
    assert "right" not in str(error)


def test_an_unknown_code_keeps_its_number_and_is_not_retriable() -> None:
    error = broker_error(12345, "x")
    assert type(error) is BrokerError
    assert (error.code, error.condition, error.retriable) == (12345, "UNKNOWN_CODE_12345", False)


def test_the_codes_used_by_name_agree_with_the_table() -> None:
    assert [code for code in ErrorCode if error_kind(code).name != code.name] == []


def test_errors_survive_pickling_with_all_their_values() -> None:
    error = OffsetOutOfRangeError("gone", code=1, condition="OFFSET_OUT_OF_RANGE")
    error.requested_offset, error.log_start_offset, error.log_end_offset = 3, 10, 20
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (str(copy), copy.code, copy.requested_offset) == (str(error), 1, 3)
    assert (copy.log_start_offset, copy.log_end_offset) == (10, 20)


def test_message_of_a_broker_is_one_line_of_bounded_length() -> None:
    error = broker_error(58, "x", detail="wrong\n26/11/22 INFO \x1b[2J" + "y" * 5_000)
    assert str(error).isprintable()
    assert 'The broker said: "wrong\\n26/11/22 INFO \\x1b[2Jyyy' in str(error)
    assert 1_000 < len(error.message) < 1_200
