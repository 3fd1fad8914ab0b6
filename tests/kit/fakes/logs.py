"""The log of one partition as its leader keeps it: the model under both fake clusters.

Record batches are kept as bytes. The rules are the broker's: offsets given on append, sequences of producers, open and
aborted transactions, the last stable offset. kafka-python reads what is inside a batch.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field

import crc32c
from kafka.record import MemoryRecords
from kafka.record.memory_records import MemoryRecordsBuilder

from kit.record_batches import ABORT, COMMIT, CONTROL, TRANSACTIONAL, control_batch

SEQUENCES = 1 << 31
OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE = 1, 2
OUT_OF_ORDER, INVALID_PRODUCER_EPOCH = 45, 47
INVALID_RECORD = 87

# Base offset, next base offset, bytes.
Batch = tuple[int, int, bytes]


@dataclass
class Sequences:
    """What a leader remembers of one producer: its epoch, and its last five batches in this partition.

    Source: Kafka `ProducerStateEntry.findDuplicateBatch`, `ProducerAppendInfo.checkSequence`. As there, a log that
    does not know the producer takes any sequence.

    Attributes:
        epoch: the producer's.
        last: first and last sequence, and base offset, of each batch.
    """

    epoch: int = 0
    last: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=5))

    def check(self, base_sequence: int, epoch: int = 0) -> int:
        """Return the error code of a batch that is not a duplicate, 0 if it may be appended."""
        if epoch < self.epoch:
            return INVALID_PRODUCER_EPOCH
        expected = (self.last[-1][1] + 1) % SEQUENCES if self.last else base_sequence
        if epoch > self.epoch:
            expected = 0
        return OUT_OF_ORDER if base_sequence != expected else 0

    def duplicate(self, base_sequence: int, record_count: int, epoch: int = 0) -> int | None:
        """Return the base offset of a batch that is there already."""
        last = (base_sequence + record_count - 1) % SEQUENCES
        found = [offset for first, end, offset in self.last if (first, end) == (base_sequence, last)]
        return found[0] if found and epoch == self.epoch else None

    def note(self, base_sequence: int, record_count: int, base_offset: int, epoch: int = 0) -> None:
        """Remember a batch that was appended."""
        if epoch != self.epoch:
            self.last.clear()
        self.epoch = epoch
        self.last.append((base_sequence, (base_sequence + record_count - 1) % SEQUENCES, base_offset))


@dataclass
class PartitionLog:
    """One partition of a leader.

    Attributes:
        batches: ascending.
        start: the first offset that is there.
        producers: what is remembered of each, by its id.
        open_transactions: the first offset of each open transaction, by producer id.
        aborted: producer id, first and last offset of aborted transactions.
        leader_epoch: what appended batches carry.
    """

    batches: list[Batch] = field(default_factory=list)
    start: int = 0
    producers: dict[int, Sequences] = field(default_factory=dict)
    open_transactions: dict[int, int] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    leader_epoch: int = 0

    @property
    def end(self) -> int:
        """The high watermark: fakes have no followers that lag."""
        return max(self.start, self.batches[-1][1] if self.batches else 0)

    @property
    def last_stable(self) -> int:
        """The first offset of the oldest open transaction, or the end."""
        return min(self.open_transactions.values(), default=self.end)

    def append(self, data: bytes) -> tuple[int, int]:
        """Append one record batch of a producer; return the error code, and the base offset or -1."""
        crc, attributes, last_delta, _, _, producer_id, epoch, base_sequence, count = struct.unpack_from(
            ">IhiqqqhiI", data, 17
        )
        if crc32c.crc32c(data[21:]) != crc:
            return CORRUPT_MESSAGE, -1
        if struct.unpack_from(">q", data) != (0,):
            return INVALID_RECORD, -1
        base = self.end
        if base_sequence >= 0:
            known = self.producers.setdefault(producer_id, Sequences(epoch))
            duplicate = known.duplicate(base_sequence, count, epoch)
            if duplicate is not None:
                return 0, duplicate
            if code := known.check(base_sequence, epoch):
                return code, -1
            known.note(base_sequence, count, base, epoch)
        if attributes & TRANSACTIONAL and not attributes & CONTROL:
            self.open_transactions.setdefault(producer_id, base)
        self._store(base, last_delta, data)
        return 0, base

    def end_transaction(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        """Write the control record of a producer; a log without an open transaction of it takes it too."""
        base = self.end
        first = self.open_transactions.pop(producer_id, None)
        if first is not None and not commit:
            self.aborted.append((producer_id, first, base))
        known = self.producers.setdefault(producer_id, Sequences())
        if epoch != known.epoch:
            known.last.clear()
            known.epoch = epoch
        self._store(base, 0, control_batch(base, producer_id, COMMIT if commit else ABORT, epoch=epoch))

    def _store(self, base: int, last_delta: int, data: bytes) -> None:
        # Base offset and leader epoch stand outside of the checksum.
        stored = struct.pack(">q", base) + data[8:12] + struct.pack(">i", self.leader_epoch) + data[16:]
        self.batches.append((base, base + last_delta + 1, stored))

    def from_offset(self, offset: int, end: int | None = None) -> list[bytes]:
        """Return the batches from the one that holds an offset on, below an end."""
        end = self.end if end is None else end
        return [data for _, stop, data in self.batches if offset < stop <= end]

    def aborted_in(self, offset: int, end: int) -> list[tuple[int, int]]:
        """Return producer id and first offset of the aborted transactions that a fetch of [offset, end) must know."""
        return [(producer_id, first) for producer_id, first, last in self.aborted if last >= offset and first < end]

    def find_time(self, timestamp_ms: int, end: int) -> tuple[int, int] | None:
        """Return offset and timestamp of the first record of a time or later, below an end."""
        for data in self.from_offset(self.start, end):
            records = MemoryRecords(data)
            while (batch := records.next_batch()) is not None:
                for record in batch:
                    if self.start <= record.offset < end and record.timestamp >= timestamp_ms:
                        return record.offset, record.timestamp
        return None

    def values(self) -> list[bytes]:
        """Return the values of all records, those of control records excluded."""
        found = []
        for _, _, data in self.batches:
            records = MemoryRecords(data)
            while (batch := records.next_batch()) is not None:
                if not batch.is_control_batch:
                    found += [record.value or b"" for record in batch]
        return found


def record_batch(base_offset: int, values: list[bytes], *, timestamp_ms: int = 1_700_000_000_000) -> bytes:
    """Encode one record batch with kafka-python; the base offset stands outside of its checksum."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1 << 20)
    for value in values:
        builder.append(timestamp=timestamp_ms, key=None, value=value)
    builder.close()
    return struct.pack(">q", base_offset) + bytes(builder.buffer())[8:]


def batches_of(count: int, records_each: int = 10) -> list[Batch]:
    """Return `count` adjacent batches from offset 0; values are the decimal offsets."""
    return [
        (base, base + records_each, record_batch(base, [b"%d" % (base + i) for i in range(records_each)]))
        for base in range(0, count * records_each, records_each)
    ]
