"""Produce and InitProducerId, without transactions."""

from __future__ import annotations

import struct

from kit.brokers.requests import AskedBroker
from kit.reading import read_range
from kit.record_batches import batch, offsets, plain_batch, record
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.options import ProducerOptions

CORRUPT_MESSAGE, UNKNOWN_TOPIC, MESSAGE_TOO_LARGE, OUT_OF_ORDER, INVALID_PRODUCER_EPOCH = 2, 3, 10, 45, 47
INVALID_RECORD = 87


def test_produced_batches_get_the_next_offsets(broker: AskedBroker) -> None:
    topic = broker.make_topic()
    for base in (0, 5):
        written = broker.produce(topic, plain_batch(0, 5))
        assert (written.error_code, written.base_offset, written.log_start_offset) == (0, base, 0)
    assert offsets(bytes(broker.fetch(topic, 0).records)) == [*range(10)]


def test_produce_has_an_error_if_the_offsets_in_the_batch_do_not_begin_at_0(broker: AskedBroker) -> None:
    topic = broker.make_topic()
    written = broker.produce(topic, plain_batch(77, 5))
    assert (written.error_code, written.base_offset) == (INVALID_RECORD, -1)


def test_partitions_number_their_records_apart(broker: AskedBroker) -> None:
    topic = broker.make_topic(partitions=2)
    assert broker.produce(topic, plain_batch(0, 5), partition=0).base_offset == 0
    assert broker.produce(topic, plain_batch(0, 5), partition=1).base_offset == 0


def test_produce_has_an_error_if_the_partition_does_not_exist(broker: AskedBroker) -> None:
    written = broker.produce(broker.make_topic(), plain_batch(0, 1), partition=1)
    assert (written.error_code, written.base_offset, written.log_start_offset) == (UNKNOWN_TOPIC, -1, -1)


def test_produce_has_an_error_if_the_batch_is_larger_than_the_topic_allows(broker: AskedBroker) -> None:
    topic = broker.make_topic(max_message_bytes=1_000)
    assert broker.produce(topic, batch([record(0, b"v" * 800)])).error_code == 0
    written = broker.produce(topic, batch([record(0, b"v" * 1_000)]))
    assert (written.error_code, written.base_offset, written.log_start_offset) == (MESSAGE_TOO_LARGE, -1, -1)


def test_produce_has_an_error_if_the_checksum_is_wrong(broker: AskedBroker) -> None:
    topic = broker.make_topic()
    data = plain_batch(0, 1)
    assert broker.produce(topic, data[:-1] + bytes([data[-1] ^ 1])).error_code == CORRUPT_MESSAGE
    assert broker.offset(topic, -1).offset == 0


def test_producers_get_ids_of_their_own(broker: AskedBroker) -> None:
    (first, first_epoch), (second, second_epoch) = broker.new_producer(), broker.new_producer()
    assert first != second
    assert (first_epoch, second_epoch) == (0, 0)


def test_batch_with_a_sequence_that_is_there_is_acknowledged_and_not_stored_again(broker: AskedBroker) -> None:
    topic = broker.make_topic()
    producer_id, epoch = broker.new_producer()

    def send(sequence: int) -> tuple[int, int]:
        data = plain_batch(0, 2, producer_id=producer_id, producer_epoch=epoch, sequence=sequence)
        written = broker.produce(topic, data)
        return written.error_code, written.base_offset

    assert [send(sequence) for sequence in (0, 2, 4)] == [(0, 0), (0, 2), (0, 4)]
    assert send(2) == (0, 2)
    assert broker.offset(topic, -1).offset == 6


def test_batch_behind_a_gap_in_the_sequence_is_refused(broker: AskedBroker) -> None:
    topic = broker.make_topic()
    producer_id, epoch = broker.new_producer()
    codes = [
        broker.produce(
            topic, plain_batch(0, 2, producer_id=producer_id, producer_epoch=epoch, sequence=sequence)
        ).error_code
        for sequence in (0, 4, 2)
    ]
    assert codes == [0, OUT_OF_ORDER, 0]


def test_batch_is_a_duplicate_only_while_it_is_one_of_the_last_five(broker: AskedBroker) -> None:
    topic = broker.make_topic()
    producer_id, epoch = broker.new_producer()

    def send(sequence: int) -> int:
        data = plain_batch(0, 1, producer_id=producer_id, producer_epoch=epoch, sequence=sequence)
        return int(broker.produce(topic, data).error_code)

    assert [send(sequence) for sequence in range(6)] == [0] * 6
    assert (send(1), send(0)) == (0, OUT_OF_ORDER)


def test_batch_of_a_former_epoch_is_refused(broker: AskedBroker) -> None:
    topic = broker.make_topic()
    producer_id, _ = broker.new_producer()

    def send(epoch: int, sequence: int) -> int:
        data = plain_batch(0, 1, producer_id=producer_id, producer_epoch=epoch, sequence=sequence)
        return int(broker.produce(topic, data).error_code)

    assert send(0, 0) == 0
    assert send(1, 1) == OUT_OF_ORDER
    assert send(1, 0) == 0
    assert send(0, 1) == INVALID_PRODUCER_EPOCH


def test_producer_stores_every_record_once_and_in_order(broker: AskedBroker) -> None:
    """The producer of the product, with the versions that it sends."""
    topic = TopicPartition(broker.make_topic(), 0)
    with Producer(broker.client, ProducerOptions()) as producer:
        for number in range(20):
            producer.send_batch(topic, bytearray(batch([record(0, struct.pack(">i", number))])), 1)
        producer.flush()
    found = [row["value"] for rows in read_range(broker.client, OffsetRange(topic, 0, 20)) for row in rows]
    assert found == [struct.pack(">i", number) for number in range(20)]
