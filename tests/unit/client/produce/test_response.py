"""Produce responses of every version, as kafka-python encodes them."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.producer import ProduceResponse

from pyspark_kafka.client.produce.response import ProducePartitionResponse, parse_produce_response
from pyspark_kafka.client.wire.api_versions import MAX_PRODUCE_VERSION
from pyspark_kafka.model import TopicPartition

VERSIONS = range(3, MAX_PRODUCE_VERSION + 1)
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
    decoded = ProduceResponse.decode(response.encode(version=version), version=version)
    refused = ProducePartitionResponse(ORDERS_300, 87)
    if version >= 8:
        refused = ProducePartitionResponse(ORDERS_300, 87, "bad ones", ((3, "no key"), (7, None)))
    # A partition that is listed twice counts once: docs/internals/fetch-rules.md, R14.
    assert parse_produce_response(decoded) == [ProducePartitionResponse(ORDERS_0, 0, base_offset=5), refused]
