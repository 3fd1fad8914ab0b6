"""The partition of each row: its own choice, then its key's, then a sticky one. Pure, except for one random number."""

from __future__ import annotations

import random
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.records import int32_extremes, murmur2_partitions

_INT32 = pa.int32()


def extremes(partitions: pa.Array) -> tuple[int, int]:
    """Return the lowest and the highest partition; (-1, -1) if there is none.

    Args:
        partitions: int32, maybe with nulls, which do not count.
    """
    if partitions.null_count:
        partitions = partitions.drop_null()
    rows, first = len(partitions), partitions.offset
    if not rows:
        return -1, -1
    return int32_extremes(memoryview(partitions.buffers()[1]).cast("B").cast("i")[first : first + rows])


class Partitioner:
    """Chooses partitions as Java's default partitioner does, a batch of rows at a time.

    A row with a partition goes there; a row with a key goes where murmur2 of the key says; rows without either fill
    one partition for `sticky_bytes`, then the next one, beginning at a random one, so that record batches are large
    and tasks do not all begin with the same partition. They leave out partitions without a leader if others have
    one: rows that are put there would wait until they are given up.

    Runs on: executor, one per task and topic.

    Args:
        partition_count: how many partitions the topic has.
        sticky_bytes: how many bytes go to one partition before the next one has its turn.
        draw: returns a random number below another one.
        available: returns the partitions that have a leader now, in order; none if that is not known.

    Source: Java `BuiltInPartitioner`, KIP-480, KIP-794.
    """

    def __init__(
        self,
        partition_count: int,
        sticky_bytes: int,
        draw: Callable[[int], int] = random.randrange,
        available: Callable[[], Sequence[int]] = tuple,
    ) -> None:
        self.partition_count = partition_count
        self._sticky_bytes = sticky_bytes
        self._available = available
        led = available()
        self._sticky = led[draw(len(led))] if led else draw(partition_count)
        self._filled = 0

    def partitions(self, rows: int, row_bytes: int, keys: pa.Array | None, chosen: pa.Array | None) -> pa.Array:
        """Return each row's partition as int32, without nulls.

        Args:
            rows: how many there are.
            row_bytes: about how many bytes they have together.
            keys: string or binary, or None if rows have no key.
            chosen: int32 with nulls, or None if rows do not choose; not checked against the partition count.
        """
        partitions = chosen
        if keys is not None and keys.null_count < len(keys) and (partitions is None or partitions.null_count):
            by_key = murmur2_partitions(keys, self.partition_count)
            if keys.null_count:
                by_key = pc.if_else(pc.equal(by_key, -1), pa.scalar(None, _INT32), by_key)
            partitions = by_key if partitions is None else pc.coalesce(partitions, by_key)
        if partitions is None:
            return self._stick(rows, row_bytes)
        if partitions.null_count:
            return pc.coalesce(partitions, self._stick(rows, row_bytes))
        return partitions

    def _next(self) -> int:
        """Return the partition whose turn is next."""
        led = self._available()
        if not led:
            return (self._sticky + 1) % self.partition_count
        place = bisect_right(led, self._sticky)
        return led[place] if place < len(led) else led[0]

    def _stick(self, rows: int, row_bytes: int) -> pa.Array:
        led = self._available()
        if led and self._sticky not in led:
            self._sticky, self._filled = self._next(), 0
        runs = []
        average = max(1, row_bytes // max(1, rows))
        left = rows
        while left:
            run = min(left, max(1, (self._sticky_bytes - self._filled) // average))
            numbers = struct.pack("=i", self._sticky) * run
            runs.append(pa.Array.from_buffers(_INT32, run, [None, pa.py_buffer(numbers)], 0))
            left -= run
            self._filled += run * average
            if self._filled + average > self._sticky_bytes:
                self._sticky = self._next()
                self._filled = 0
        if len(runs) == 1:
            return runs[0]
        return pa.concat_arrays(runs) if runs else pa.array([], _INT32)
