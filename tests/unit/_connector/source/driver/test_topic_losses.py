"""Deleted topics are left out of a stream's look-ups, but not for ever."""

from __future__ import annotations

import logging

import pytest

from kit.fakes.clock import Clock
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.options import ConnectionOptions, StreamReadOptions, Subscription
from pyspark_kafka._connector.source.driver.offset_reader import KafkaOffsetReader
from pyspark_kafka._connector.source.driver.topic_losses import TopicLosses
from pyspark_kafka._connector.source.driver.topic_watch import TopicWatch
from pyspark_kafka.errors import BrokerError, DataLossError, DeadlineError

T, U = TopicPartition("t", 0), TopicPartition("u", 0)


def losses_of(clock: Clock, *, fail_on_data_loss: bool = False, outage_timeout_ms: int = 600_000) -> TopicLosses:
    options = StreamReadOptions(
        ConnectionOptions((("not-asked", 9092),), api_timeout_ms=20_000),
        Subscription("subscribe", ("t", "u")),
        fail_on_data_loss=fail_on_data_loss,
        outage_timeout_ms=outage_timeout_ms,
    )
    return TopicLosses(options, KafkaOffsetReader.from_options(options), TopicWatch(None, "sources/0"), clock)


def unknown_topic(topic: str) -> BrokerError:
    return BrokerError(f"Topic '{topic}'", code=3, condition="UNKNOWN_TOPIC", parameters={"topic": topic})


def test_look_up_is_made_again_without_each_deleted_topic(caplog: pytest.LogCaptureFixture) -> None:
    missing = ["t", "u"]

    def look_up() -> str:
        if missing:
            raise unknown_topic(missing.pop())
        return "found"

    with caplog.at_level(logging.WARNING):
        assert losses_of(Clock()).without_deleted({T: 5, U: 7}, look_up) == "found"
    assert [message.partition("]")[0] for message in caplog.messages] == ["[KAFKA_DATA_LOSS.PARTITIONS_DELETED"] * 2
    assert caplog.messages[0].endswith("The query continues, because 'failOnDataLoss' is false.")


def test_deleted_topic_is_an_error_at_once_if_loss_is_not_tolerated() -> None:
    def look_up() -> str:
        raise unknown_topic("t")

    with pytest.raises(DataLossError, match="PARTITIONS_DELETED"):
        losses_of(Clock(), fail_on_data_loss=True).without_deleted({T: 5}, look_up)


def test_missing_topic_that_the_query_has_not_read_is_the_error_of_the_look_up() -> None:
    def look_up() -> str:
        raise unknown_topic("u")

    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC"):
        losses_of(Clock()).without_deleted({T: 5}, look_up)


@pytest.mark.parametrize(
    ("outage_timeout_ms", "allowed_s"),
    [
        (600_000, 600),
        # Never less than one look-up may take.
        (0, 20),
    ],
)
def test_topics_that_come_and_go_end_a_look_up_at_its_deadline(outage_timeout_ms: int, allowed_s: int) -> None:
    clock, looks = Clock(), 0

    def look_up() -> str:
        nonlocal looks
        looks += 1
        if looks > 1:
            # The deadline begins with the first topic that is missing, not with the look-up.
            clock.now += 7
        raise unknown_topic("t")

    with pytest.raises(DeadlineError) as caught:
        losses_of(clock, outage_timeout_ms=outage_timeout_ms).without_deleted({T: 5}, look_up)
    assert str(caught.value).startswith(
        "[DEADLINE_EXCEEDED] A look-up that leaves out deleted topics did not finish within "
        f"{allowed_s * 1000} ms ({(looks - 1) * 7000} ms elapsed). Last failure: [UNKNOWN_TOPIC] Topic 't'"
    )
    assert looks == 1 + -(-allowed_s // 7)
