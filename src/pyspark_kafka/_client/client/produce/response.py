"""Parses Produce responses, versions 3 to 12. Pure: bytes in, values out.

Written by hand, as for fetches: a writer takes one after the other.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.wire.frames import read_length, read_text, skip_tagged_fields

_FIRST_WITH_LOG_START, _FIRST_WITH_MESSAGES, _FIRST_FLEXIBLE = 5, 8, 9
_INT32 = struct.Struct(">i")
# Partition, error code, base offset; then the time of appending, which is not used.
_PARTITION = struct.Struct(">ihq8x")
_LOG_START_BYTES = 8


class ProducePartitionResponse(NamedTuple):
    """The response to the record batch of one topic-partition.

    Attributes:
        topic_partition: where the batch was to go.
        code: the broker's error code; 0 if the batch is stored.
        message: the broker's own words, or None.
        record_errors: (index of a record in its batch, words or None), if the broker names records.
        base_offset: the offset of the batch's first record; -1 if the broker does not say it.
    """

    topic_partition: TopicPartition
    code: int
    message: str | None = None
    record_errors: tuple[tuple[int, str | None], ...] = ()
    base_offset: int = -1


class ProduceResponse(NamedTuple):
    """A whole Produce response.

    Attributes:
        partitions: as the broker lists them; one that is listed twice counts once.
        throttle_time_ms: how long the broker wants no requests (KIP-219).
    """

    partitions: list[ProducePartitionResponse]
    throttle_time_ms: int


def parse_produce_response(body: memoryview, version: int) -> ProduceResponse:
    """Parse the body of a Produce response.

    Args:
        body: the bytes behind the response header.
        version: the version that the request was sent in.

    Raises:
        struct.error, IndexError, ValueError: the bytes are cut off or malformed.

    Source: Kafka `ProduceResponse.json`.
    """
    flexible = version >= _FIRST_FLEXIBLE
    found: list[ProducePartitionResponse] = []
    topics, at = read_length(body, 0, flexible=flexible)
    for _ in range(topics):
        name, at = read_text(body, at, flexible=flexible)
        partitions, at = read_length(body, at, flexible=flexible)
        for _ in range(partitions):
            partition, code, base_offset = _PARTITION.unpack_from(body, at)
            at += _PARTITION.size
            if version >= _FIRST_WITH_LOG_START:
                at += _LOG_START_BYTES
            message: str | None = None
            errors: tuple[tuple[int, str | None], ...] = ()
            if version >= _FIRST_WITH_MESSAGES:
                # Mostly there are neither errors of records nor words nor tagged fields: three bytes.
                if flexible and body[at : at + 3] == _NOTHING:
                    at += 3
                else:
                    message, errors, at = _details(body, at, flexible=flexible)
            topic_partition = TopicPartition(name or "", partition)
            found.append(ProducePartitionResponse(topic_partition, code, message, errors, base_offset))
        if flexible:
            at = skip_tagged_fields(body, at) if body[at] else at + 1
    (throttle_time_ms,) = _INT32.unpack_from(body, at)
    return ProduceResponse(found, throttle_time_ms)


# No errors of records, no message (null), no tagged fields.
_NOTHING = b"\1\0\0"


def _details(
    body: memoryview, at: int, *, flexible: bool
) -> tuple[str | None, tuple[tuple[int, str | None], ...], int]:
    """Return the broker's words, those about single records, and the position behind the partition."""
    errors: list[tuple[int, str | None]] = []
    count, at = read_length(body, at, flexible=flexible)
    for _ in range(count):
        (index,) = _INT32.unpack_from(body, at)
        words, at = read_text(body, at + 4, flexible=flexible)
        errors.append((index, words))
        if flexible:
            at = skip_tagged_fields(body, at)
    message, at = read_text(body, at, flexible=flexible)
    return message, tuple(errors), skip_tagged_fields(body, at) if flexible else at
