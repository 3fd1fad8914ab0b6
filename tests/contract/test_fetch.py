"""Fetch, of records that were written without transactions."""

from __future__ import annotations

import pytest

from kit.brokers.requests import AskedBroker
from kit.reading import read_range
from kit.record_batches import offsets, plain_batch
from pyspark_kafka._base.model import OffsetRange, TopicPartition

OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC = 1, 3


@pytest.fixture
def topic(broker: AskedBroker) -> str:
    """Three batches of 5 records."""
    name = broker.make_topic()
    for _ in range(3):
        assert broker.produce(name, plain_batch(0, 5)).error_code == 0
    return name


def test_fetch_from_the_start_returns_all_batches_and_the_ends_of_the_log(broker: AskedBroker, topic: str) -> None:
    found = broker.fetch(topic, 0)
    assert found.error_code == 0
    assert offsets(bytes(found.records)) == [*range(15)]
    assert (found.log_start_offset, found.high_watermark, found.last_stable_offset) == (0, 15, 15)
    assert not found.aborted_transactions


def test_fetch_from_the_middle_of_a_batch_returns_the_whole_batch(broker: AskedBroker, topic: str) -> None:
    assert offsets(bytes(broker.fetch(topic, 7).records)) == [*range(5, 15)]


def test_fetch_at_the_end_returns_no_records_and_no_error(broker: AskedBroker, topic: str) -> None:
    found = broker.fetch(topic, 15)
    assert (found.error_code, bytes(found.records or b""), found.high_watermark) == (0, b"", 15)


@pytest.mark.parametrize("offset", [16, 1_000_000])
def test_fetch_behind_the_end_is_out_of_range(broker: AskedBroker, topic: str, offset: int) -> None:
    found = broker.fetch(topic, offset)
    assert (found.error_code, bytes(found.records or b"")) == (OFFSET_OUT_OF_RANGE, b"")
    assert (found.log_start_offset, found.high_watermark, found.last_stable_offset) == (-1, -1, -1)


def test_fetch_returns_one_whole_batch_if_the_limit_is_smaller(broker: AskedBroker, topic: str) -> None:
    assert offsets(bytes(broker.fetch(topic, 0, max_bytes=1).records)) == [*range(5)]


def test_fetch_cuts_off_the_last_batch_at_the_limit(broker: AskedBroker, topic: str) -> None:
    size = len(plain_batch(0, 5))
    assert len(broker.fetch(topic, 0, max_bytes=size + 20).records) == size + 20


def test_fetch_has_an_error_if_the_partition_does_not_exist(broker: AskedBroker, topic: str) -> None:
    assert broker.fetch(topic, 0, partition=1).error_code == UNKNOWN_TOPIC


def test_reader_gets_exactly_its_range_from_inside_of_batches(broker: AskedBroker, topic: str) -> None:
    """The fetcher of the product, with the versions that it sends."""
    asked = OffsetRange(TopicPartition(topic, 0), 3, 12)
    found = [row["offset"] for rows in read_range(broker.client, asked, columns=["offset"]) for row in rows]
    assert found == [*range(3, 12)]
