"""Changes of a test broker whose connection is lost."""

from __future__ import annotations

import pytest
from kafka.errors import KafkaConnectionError, TopicAlreadyExistsError

from pyspark_kafka.testing.administration import connected, wait_until


def losing(count: int) -> list[Exception]:
    return [KafkaConnectionError("socket disconnected") for _ in range(count)]


def test_change_is_made_again_after_lost_connections() -> None:
    failures = losing(2)

    def change() -> str:
        if failures:
            raise failures.pop()
        return "made"

    assert connected(change, "Setting passwords") == "made"
    assert failures == []


def test_change_that_the_broker_refuses_is_made_once() -> None:
    refused: list[Exception] = [TopicAlreadyExistsError(), *losing(1)]

    def change() -> None:
        raise refused.pop(0)

    with pytest.raises(TopicAlreadyExistsError):
        connected(change, "Creating a topic")
    assert len(refused) == 1


def test_wait_continues_after_a_lost_connection() -> None:
    failures, answers = losing(1), [True, False]

    def is_done() -> bool:
        if failures:
            raise failures.pop()
        return answers.pop()

    wait_until(is_done, "Waiting until the broker knows passwords")
    assert answers == []
