"""Stamps: the identity and sequence that the header of a record batch carries. Pure: no sockets, no clock."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.client.produce.batches.sequences import SequenceStamp
from pyspark_kafka.errors import ProtocolError
from pyspark_kafka.records import patch_header
from pyspark_kafka.records.batch_header import (
    HEADER_BYTES,
    LAST_OFFSET_DELTA_START,
    LENGTH_OVERHEAD,
    MAGIC_END,
    PRODUCER_START,
)

if TYPE_CHECKING:
    from pyspark_kafka.model import TopicPartition

    Bytes = bytes | bytearray | memoryview

_FORMAT = 2
_LENGTH_START = 8
_INT32 = struct.Struct(">i")
# Producer id, producer epoch, base sequence, record count.
_PRODUCER_FIELDS = struct.Struct(">qhii")
_DEFECT_HINT = "This is a defect of this package; please report it."


@dataclass(frozen=True, slots=True)
class BatchStart:
    """The fields of a record batch's header that a producer has to agree with."""

    last_offset_delta: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


def parse_batch_start(topic_partition: TopicPartition, data: Bytes) -> BatchStart:
    """Read the header of the bytes to be sent: exactly one record batch of format 2.

    The checksum is not verified here: the broker does it.

    Raises:
        ProtocolError: the bytes are something else.
    """
    size = len(data)
    if size >= HEADER_BYTES:
        (length,) = _INT32.unpack_from(data, _LENGTH_START)
        if length + LENGTH_OVERHEAD == size and data[MAGIC_END - 1] == _FORMAT:
            (last_offset_delta,) = _INT32.unpack_from(data, LAST_OFFSET_DELTA_START)
            return BatchStart(last_offset_delta, *_PRODUCER_FIELDS.unpack_from(data, PRODUCER_START))
    raise ProtocolError(
        f"{topic_partition}: {size} bytes were passed to be sent that are not one whole record batch of format 2. "
        "Nothing of them was sent.",
        condition="RECORD_BATCH_INVALID",
        hint=_DEFECT_HINT,
        parameters={"topic_partition": topic_partition, "bytes": size},
    )


def stamp_batch(
    topic_partition: TopicPartition, data: Bytes, record_count: int, due: SequenceStamp, *, transactional: bool = False
) -> Bytes:
    """Return the batch with the stamp that is due in its header.

    A batch that has this stamp already is returned as it is. A batch without any gets it: a bytearray in place, other
    bytes in a copy. A batch of a transaction is marked as such at the same time.

    Raises:
        ProtocolError: the bytes are not one batch of `record_count` records, or carry another stamp.
    """
    start = parse_batch_start(topic_partition, data)
    if start.record_count != record_count or start.last_offset_delta != record_count - 1:
        raise ProtocolError(
            f"{topic_partition}: a batch said to hold {record_count} records has {start.record_count} and a last "
            f"offset delta of {start.last_offset_delta} in its header. Nothing of it was sent.",
            condition="RECORD_BATCH_INVALID",
            hint=_DEFECT_HINT,
            parameters={"topic_partition": topic_partition, "records": record_count},
        )
    found = SequenceStamp(start.producer_id, start.producer_epoch, start.base_sequence)
    if found == due:
        return data
    if start.producer_id != -1:
        raise ProtocolError(
            f"{topic_partition}: a batch carries {found}, but {due} is due. Nothing of it was sent.",
            condition="SEQUENCE_STAMP_MISMATCH",
            hint=_DEFECT_HINT,
            parameters={"topic_partition": topic_partition},
        )
    batch = data if isinstance(data, bytearray) else bytearray(data)
    patch_header(
        batch,
        producer_id=due.producer_id,
        producer_epoch=due.producer_epoch,
        base_sequence=due.base_sequence,
        transactional=transactional,
    )
    return batch
