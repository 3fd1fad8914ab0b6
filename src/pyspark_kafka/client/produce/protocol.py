"""Produce requests without copies of their records, and what their answers say. No I/O.

kafka-python's encoder would copy every record batch several times; here the bytes of a batch go to the socket as they
are. Layer: client.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.produce.batches import SequenceStamp
from pyspark_kafka.client.wire.messages import InitProducerIdRequest, ProduceRequest, ProduceResponse
from pyspark_kafka.errors import ProtocolError
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.records import patch_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Bytes = bytes | bytearray | memoryview

__all__ = [
    "BatchStart",
    "InitProducerIdRequest",
    "ProduceFrame",
    "ProducePartitionResponse",
    "parse_batch_start",
    "parse_produce_response",
    "stamp_batch",
]

_FIRST_FLEXIBLE_VERSION = 9
# A copy of so few bytes costs less than a system call of its own, and a packet for the few bytes between two batches.
_JOIN_BELOW_BYTES = 64 * 1024

_BATCH_HEADER_BYTES = 61
_LENGTH_OVERHEAD = 12
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ACKS_TIMEOUT = struct.Struct(">hi")


@dataclass(frozen=True, slots=True)
class BatchStart:
    """The fields of a record batch's header that a producer has to agree with."""

    last_offset_delta: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


def parse_batch_start(topic_partition: TopicPartition, data: Bytes) -> BatchStart:
    """Read the header of what is to be sent: exactly one record batch of format 2.

    The checksum is not verified here: the broker does it.

    Raises:
        ProtocolError: the bytes are something else.
    """
    size = len(data)
    if size >= _BATCH_HEADER_BYTES:
        (length,) = _INT32.unpack_from(data, 8)
        if length + _LENGTH_OVERHEAD == size and data[16] == 2:
            (last_offset_delta,) = _INT32.unpack_from(data, 23)
            return BatchStart(last_offset_delta, *struct.unpack_from(">qhii", data, 43))
    raise ProtocolError(
        f"{topic_partition}: {size} bytes were given to be sent that are not one whole record batch of format 2. "
        "Nothing of them was sent.",
        condition="RECORD_BATCH_INVALID",
        hint="This is a defect of this package; please report it.",
        facts={"topic_partition": topic_partition, "bytes": size},
    )


def stamp_batch(
    topic_partition: TopicPartition, data: Bytes, record_count: int, due: SequenceStamp, *, transactional: bool = False
) -> Bytes:
    """Give the batch with the stamp that is due in its header.

    A batch that carries it already is given back as it is. One without any gets it: a bytearray in place, other bytes
    in a copy. So does one of a transaction, together with the mark of that.

    Raises:
        ProtocolError: the bytes are not one batch of so many records, or carry another stamp.
    """
    start = parse_batch_start(topic_partition, data)
    if start.record_count != record_count or start.last_offset_delta != record_count - 1:
        raise ProtocolError(
            f"{topic_partition}: a batch said to hold {record_count} records has {start.record_count} and a last "
            f"offset delta of {start.last_offset_delta} in its header. Nothing of it was sent.",
            condition="RECORD_BATCH_INVALID",
            hint="This is a defect of this package; please report it.",
            facts={"topic_partition": topic_partition, "records": record_count},
        )
    found = SequenceStamp(start.producer_id, start.producer_epoch, start.base_sequence)
    if found == due:
        return data
    if start.producer_id != -1:
        raise ProtocolError(
            f"{topic_partition}: a batch carries {found}, but {due} is due. Nothing of it was sent.",
            condition="SEQUENCE_STAMP_MISMATCH",
            hint="This is a defect of this package; please report it.",
            facts={"topic_partition": topic_partition},
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


class ProduceFrame:
    """A Produce request in pieces, in the place of a request object of kafka-python.

    `Connection.send` asks it for its frame and gets the first piece, which has the size of the whole; the other pieces
    are `rest`, to be sent right after it.

    Args:
        acks: -1, 1 or 0.
        timeout_ms: how long the leader waits for the other replicas.
        batches: at most one a topic-partition.
        transactional_id: of the transaction that they are part of, if they are.
    """

    API_KEY = ProduceRequest.API_KEY
    API_VERSION: int
    name = ProduceRequest.name
    valid_versions = ProduceRequest.valid_versions

    def __init__(
        self,
        acks: int,
        timeout_ms: int,
        batches: Iterable[tuple[TopicPartition, Bytes]],
        transactional_id: str | None = None,
    ) -> None:
        self._acks = acks
        self._transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._topics: dict[str, list[tuple[int, Bytes]]] = {}
        for topic_partition, data in batches:
            self._topics.setdefault(topic_partition.topic, []).append((topic_partition.partition, data))
        self._correlation_id = 0
        self._client_id = ""
        self.rest: Sequence[Bytes] = ()

    @staticmethod
    def flexible_version_q(version: int) -> bool:
        """Whether header and body of this version have tagged fields."""
        return version >= _FIRST_FLEXIBLE_VERSION

    def expect_response(self) -> bool:
        """Brokers do not answer a write that wants no acknowledgement."""
        return self._acks != 0

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Take what the request header says beside key and version."""
        self._correlation_id = correlation_id
        self._client_id = client_id

    @property
    def header(self) -> ProduceFrame:
        """The object that knows the class of the answer: this one."""
        return self

    def get_response_class(self) -> Any:
        """Give the class that decodes the answer."""
        return ProduceResponse[self.API_VERSION]

    def encode(self, *, framed: bool, header: bool) -> bytearray:
        """Build all pieces; give the first and keep the others in `rest`."""
        if not (framed and header):
            raise ProtocolError("A Produce request is built with its frame only.", condition="FRAME_REQUIRED")
        first, *rest = self._pieces(flexible=self.flexible_version_q(self.API_VERSION))
        self.rest = rest
        return first  # type: ignore[return-value]  # the first piece is built here

    def _pieces(self, *, flexible: bool) -> list[Bytes]:
        client_id = self._client_id.encode()
        out = bytearray(4)
        out += struct.pack(">hhi", self.API_KEY, self.API_VERSION, self._correlation_id)
        # The header's client id is never compact, not even in flexible versions.
        out += _INT16.pack(len(client_id)) + client_id
        if flexible:
            out.append(0)  # no tagged fields
        if self._transactional_id is None:
            out += b"\0" if flexible else _INT16.pack(-1)
        else:
            name = self._transactional_id.encode()
            out += (_unsigned_varint(len(name) + 1) if flexible else _INT16.pack(len(name))) + name
        out += _ACKS_TIMEOUT.pack(self._acks, self._timeout_ms)
        pieces: list[Bytes] = []
        _put_count(out, len(self._topics), flexible=flexible)
        for topic, partitions in self._topics.items():
            name = topic.encode()
            out += _unsigned_varint(len(name) + 1) if flexible else _INT16.pack(len(name))
            out += name
            _put_count(out, len(partitions), flexible=flexible)
            for index, data in partitions:
                out += _INT32.pack(index)
                out += _unsigned_varint(len(data) + 1) if flexible else _INT32.pack(len(data))
                if len(data) < _JOIN_BELOW_BYTES:
                    out += data
                else:
                    pieces += (out, data)
                    out = bytearray()
                if flexible:
                    out.append(0)
            if flexible:
                out.append(0)
        if flexible:
            out.append(0)
        if out:
            pieces.append(out)
        _INT32.pack_into(pieces[0], 0, sum(map(len, pieces)) - 4)
        return pieces


def _put_count(out: bytearray, count: int, *, flexible: bool) -> None:
    out += _unsigned_varint(count + 1) if flexible else _INT32.pack(count)


def _unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@dataclass(frozen=True, slots=True)
class ProducePartitionResponse:
    """What a broker said to one batch.

    Attributes:
        base_offset: the offset of the batch's first record; -1 where the broker does not say it.
        message: the broker's own words, or None.
        record_errors: (index of a record in its batch, words or None), where the broker names records.
    """

    topic_partition: TopicPartition
    code: int
    message: str | None = None
    record_errors: tuple[tuple[int, str | None], ...] = ()
    base_offset: int = -1


def parse_produce_response(response: Any) -> list[ProducePartitionResponse]:
    """Give a Produce answer partition by partition; one listed twice is taken once."""
    answers: dict[TopicPartition, ProducePartitionResponse] = {}
    for topic in response.responses:
        for partition in topic.partition_responses:
            topic_partition = TopicPartition(topic.name, partition.index)
            record_errors = tuple(
                (at.batch_index, at.batch_index_error_message) for at in partition.record_errors or ()
            )
            answer = ProducePartitionResponse(
                topic_partition,
                partition.error_code,
                partition.error_message,
                record_errors,
                partition.base_offset,
            )
            answers.setdefault(topic_partition, answer)
    return list(answers.values())
