"""Produce responses of every version, as kafka-python encodes them."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceResponse

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.produce.response import ProducePartitionResponse, parse_produce_response
from pyspark_kafka._client.client.wire.api_versions import MAX_PRODUCE_VERSION

VERSIONS = range(3, MAX_PRODUCE_VERSION + 1)
int16s, int32s, int64s = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (16, 32, 64))
ORDERS_0 = TopicPartition("orders", 0)
ORDERS_300 = TopicPartition("orders", 300)


@pytest.mark.parametrize("version", VERSIONS)
def test_response_is_parsed_partition_by_partition(version: int) -> None:
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse
    details: dict[str, Any] = {}
    if version >= 8:
        details = {
            "error_message": "bad ones",
            "record_errors": [
                partition.BatchIndexAndErrorMessage(batch_index=3, batch_index_error_message="no key"),
                partition.BatchIndexAndErrorMessage(batch_index=7, batch_index_error_message=None),
            ],
        }
    response = ProduceResponse(
        responses=[
            topic(
                name="orders",
                partition_responses=[
                    partition(index=0, error_code=0, base_offset=5, log_append_time_ms=-1, log_start_offset=0),
                    partition(index=300, error_code=87, base_offset=-1, log_append_time_ms=-1, **details),
                    partition(index=0, error_code=6, base_offset=-1, log_append_time_ms=-1),
                ],
            )
        ],
        throttle_time_ms=4,
    )
    found = parse_produce_response(memoryview(response.encode(version=version)), version)
    refused = ProducePartitionResponse(ORDERS_300, 87)
    if version >= 8:
        refused = ProducePartitionResponse(ORDERS_300, 87, "bad ones", ((3, "no key"), (7, None)))
    again = ProducePartitionResponse(ORDERS_0, 6)
    assert found.partitions == [ProducePartitionResponse(ORDERS_0, 0, base_offset=5), refused, again]
    assert found.throttle_time_ms == 4


_TEXTS = st.none() | st.text(max_size=200)


@given(st.data())
def test_response_with_random_values_is_parsed_as_kafka_python_does(data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(VERSIONS))
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse
    error = partition.BatchIndexAndErrorMessage
    errors = st.builds(error, batch_index=int32s, batch_index_error_message=_TEXTS)
    details = {"record_errors": st.lists(errors, max_size=3), "error_message": _TEXTS} if version >= 8 else {}
    partitions = st.builds(
        partition, index=int32s, error_code=int16s, base_offset=int64s, log_append_time_ms=int64s, **details
    )
    topics = st.builds(topic, name=st.text(max_size=249), partition_responses=st.lists(partitions, max_size=4))
    response = ProduceResponse(responses=data.draw(st.lists(topics, max_size=3)), throttle_time_ms=data.draw(int32s))
    body = response.encode(version=version)

    found = parse_produce_response(memoryview(body), version)

    expected = [
        ProducePartitionResponse(
            TopicPartition(each.name, part.index),
            part.error_code,
            part.error_message if version >= 8 else None,
            tuple((one.batch_index, one.batch_index_error_message) for one in part.record_errors or ())
            if version >= 8
            else (),
            part.base_offset,
        )
        for each in response.responses
        for part in each.partition_responses
    ]
    assert (found.partitions, found.throttle_time_ms) == (expected, response.throttle_time_ms)
    with pytest.raises((struct.error, IndexError, ValueError)):
        parse_produce_response(memoryview(body)[: data.draw(st.integers(0, len(body) - 2))], version)
