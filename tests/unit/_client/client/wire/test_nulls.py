"""Nulls where a schema has none: each field of each response that is decoded by kafka-python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.admin import (
    CreateTopicsResponse,
    DescribeConfigsResponse,
    DescribeLogDirsResponse,
    DescribeTransactionsResponse,
    ListTransactionsResponse,
)
from kafka.protocol.consumer import (
    ListOffsetsResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import ApiVersionsResponse, FindCoordinatorResponse, MetadataResponse
from kafka.protocol.producer import AddPartitionsToTxnResponse, TxnOffsetCommitResponse

from pyspark_kafka._client.client.wire.nulls import refuse_nulls

RESPONSES: dict[Any, int] = {
    AddPartitionsToTxnResponse: 3,
    ApiVersionsResponse: 4,
    CreateTopicsResponse: 7,
    DescribeConfigsResponse: 4,
    DescribeLogDirsResponse: 4,
    DescribeTransactionsResponse: 0,
    FindCoordinatorResponse: 3,
    ListOffsetsResponse: 9,
    ListTransactionsResponse: 1,
    MetadataResponse: 12,
    OffsetCommitResponse: 8,
    OffsetFetchResponse: 7,
    OffsetForLeaderEpochResponse: 4,
    TxnOffsetCommitResponse: 4,
}
NUMBERS = {"bool": False, "float64": 0.0, "uuid": None}


def filled(response_class: Any, fields: Any, version: int) -> Any:
    """Return a structure with one entry in each array and a value in each field."""
    values: dict[str, Any] = {}
    for field in fields.values():
        if not field.for_version_q(version) or field.tag is not None:
            continue
        if field.is_struct_array():
            values[field.name] = [filled(getattr(response_class, field.type_str), field.fields, version)]
        elif field.is_array():
            values[field.name] = ["x"] if field.type_str == "[]string" else [1]
        elif field.type_str == "string":
            values[field.name] = "x"
        elif field.type_str not in NUMBERS:
            values[field.name] = 1
    return response_class(**values)


def places(response: Any, version: int) -> Iterator[tuple[Any, Any]]:
    """Yield each structure of a response with each of its fields that can be null on the wire."""
    for field in type(response)._struct.fields.values():
        if not field.for_version_q(version) or field.tag is not None:
            continue
        if field.is_array() or field.type_str == "string":
            yield response, field
        if field.is_struct_array():
            for each in getattr(response, field.name):
                yield from places(each, version)


@pytest.mark.parametrize(
    ("response_class", "version"), RESPONSES.items(), ids=lambda each: str(getattr(each, "name", each))
)
def test_null_is_refused_wherever_the_schema_has_none_and_nowhere_else(response_class: Any, version: int) -> None:
    response = filled(response_class, response_class._struct.fields, version)
    refuse_nulls(response, version)
    refused = 0
    for structure, field in places(response, version):
        kept = getattr(structure, field.name)
        setattr(structure, field.name, None)
        if field.nullable_for_version_q(version):
            refuse_nulls(response, version)
        else:
            refused += 1
            with pytest.raises(ValueError, match=f"^{field.name} is null$"):
                refuse_nulls(response, version)
        setattr(structure, field.name, kept)
    assert refused


def test_null_in_an_array_of_texts_is_refused() -> None:
    listing = ListTransactionsResponse(
        throttle_time_ms=0, error_code=0, unknown_state_filters=["a", None], transaction_states=[]
    )
    with pytest.raises(ValueError, match="an entry of unknown_state_filters is null"):
        refuse_nulls(listing, 0)


def test_other_objects_are_left_alone() -> None:
    refuse_nulls({"topics": None}, 3)
