"""Stamps: the identity and sequence that the header of a record batch carries. Pure: no sockets, no clock."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pyspark_kafka.errors import ProtocolError
from pyspark_kafka.records import patch_header
from pyspark_kafka.records.batch_header import HEADER_BYTES, LENGTH_OVERHEAD, MAGIC_END

if TYPE_CHECKING:
    from pyspark_kafka._base.model import TopicPartition

    Bytes = bytes | bytearray | memoryview

_FORMAT = 2
_LENGTH_START = 8
_LENGTH = struct.Struct(">i")
# From the magic on: it, checksum and attributes, last offset delta, two times, producer id and epoch, base sequence,
# record count.
_FIELDS = struct.Struct(">b6xi16xqhii")
_DEFECT_HINT = "This is a defect of this package; please report it."


def stamp_batch(
    topic_partition: TopicPartition,
    data: Bytes,
    record_count: int,
    *,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool = False,
) -> Bytes:
    """Return the batch with a stamp in its header: a bytearray in place, other bytes in a copy.

    A batch of a transaction is marked as such at the same time. Without idempotence there is no stamp (-1).

    The checksum is not verified here: the broker does it.

    Raises:
        ProtocolError: the bytes are not one batch of `record_count` records, or carry a stamp.
    """
    size = len(data)
    if size < HEADER_BYTES or _LENGTH.unpack_from(data, _LENGTH_START)[0] + LENGTH_OVERHEAD != size:
        raise _not_a_batch(topic_partition, size)
    magic, last_offset_delta, stamped_by, epoch, sequence, found_count = _FIELDS.unpack_from(data, MAGIC_END - 1)
    if magic != _FORMAT:
        raise _not_a_batch(topic_partition, size)
    if found_count != record_count or last_offset_delta != record_count - 1:
        raise ProtocolError(
            f"{topic_partition}: a batch said to hold {record_count} records has {found_count} and a last "
            f"offset delta of {last_offset_delta} in its header. Nothing of it was sent.",
            condition="RECORD_BATCH_INVALID",
            hint=_DEFECT_HINT,
            parameters={"topic_partition": topic_partition, "records": record_count},
        )
    if stamped_by != -1:
        raise ProtocolError(
            f"{topic_partition}: a batch carries the sequence {sequence} of producer {stamped_by}, epoch {epoch}; "
            f"without a sequence it would have got {base_sequence} of producer {producer_id}, epoch {producer_epoch}. "
            "Nothing of it was sent.",
            condition="SEQUENCE_STAMP_MISMATCH",
            hint=_DEFECT_HINT,
            parameters={"topic_partition": topic_partition},
        )
    if base_sequence < 0:
        return data
    batch = data if isinstance(data, bytearray) else bytearray(data)
    patch_header(
        batch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )
    return batch


def _not_a_batch(topic_partition: TopicPartition, size: int) -> ProtocolError:
    return ProtocolError(
        f"{topic_partition}: {size} bytes were passed to be sent that are not one whole record batch of format 2. "
        "Nothing of them was sent.",
        condition="RECORD_BATCH_INVALID",
        hint=_DEFECT_HINT,
        parameters={"topic_partition": topic_partition, "bytes": size},
    )
