"""Admission of micro-batches: whether one begins now, and where it ends.

`KafkaMicroBatchStream` knows the start of the batch; `pyspark_kafka._connector.planning` has the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka._connector.planning import byte_limit, check_available_now, offsets_behind, rate_limit
from pyspark_kafka.connector import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.options import StreamReadOptions
    from pyspark_kafka._connector.source.driver.offset_reader import KafkaOffsetReader


def default_read_limit(options: StreamReadOptions) -> ReadLimit:
    """Return `minOffsetsPerTrigger`, `maxOffsetsPerTrigger` and `maxBytesPerTrigger` as one read limit."""
    limits: list[ReadLimit] = []
    if options.min_offsets_per_trigger is not None:
        limits.append(ReadMinRows(options.min_offsets_per_trigger, options.max_trigger_delay_ms))
    if options.max_offsets_per_trigger is not None:
        limits.append(ReadMaxRows(options.max_offsets_per_trigger))
    if options.max_bytes_per_trigger is not None:
        limits.append(ReadMaxBytes(options.max_bytes_per_trigger))
    if not limits:
        return ReadAllAvailable()
    return limits[0] if len(limits) == 1 else CompositeReadLimit(tuple(limits))


class Admission:
    """Decides by a read limit whether a micro-batch begins now, and where it ends.

    Runs on: driver, one per query run. Blocks on look-ups if rows or bytes are limited.

    Args:
        offset_reader: looks up first offsets and log sizes.
        clock: monotonic seconds; for `maxTriggerDelay`.
    """

    def __init__(self, offset_reader: KafkaOffsetReader, clock: Callable[[], float]) -> None:
        self._offset_reader = offset_reader
        self._clock = clock
        # None: the first micro-batch of a run does not wait.
        self._last_admitted_s: float | None = None

    def end_of_batch(
        self, limit: ReadLimit, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int] | None:
        """Return the end of the micro-batch that begins at `start`; None if no micro-batch begins now.

        Args:
            limit: the maximum that it may read, and the minimum that it needs.
            start: the next offset of each known topic-partition.
            latest: the ends of all topic-partitions.
        """
        bounds = _Bounds.of(limit)
        # Never `{}`: a query could not continue from an entry of the offset log without partitions.
        if not latest or (bounds.minimum is not None and not self._admits(bounds.minimum, start, latest)):
            return None
        if bounds.maximum is None and bounds.maximum_bytes is None:
            return latest
        ends = dict(latest)
        if bounds.maximum is not None:
            new = [topic_partition for topic_partition in latest if topic_partition not in start]
            earliest = self._offset_reader.fetch_earliest_offsets_of_new(new)
            ends = rate_limit(start, earliest, latest, bounds.maximum.max_rows)
        if bounds.maximum_bytes is not None:
            # Of all partitions: the size of an offset is an average over the whole log.
            earliest = self._offset_reader.fetch_earliest_offsets_of_new(latest)
            sizes = self._offset_reader.fetch_log_sizes(earliest)
            limited = byte_limit(start, earliest, latest, sizes, bounds.maximum_bytes.max_bytes)
            ends = {tp: min(end, limited[tp]) for tp, end in ends.items()}
        return ends

    def _admits(
        self, minimum: ReadMinRows, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> bool:
        """Return whether a micro-batch begins now, and note the time if so."""
        now, last, delay_ms = self._clock(), self._last_admitted_s, minimum.max_trigger_delay_ms
        is_due = last is None or (delay_ms is not None and (now - last) * 1000 >= delay_ms)
        if not is_due and sum(offsets_behind(start, latest).values()) < minimum.min_rows:
            return False
        # The delay starts again, even if nothing is available.
        self._last_admitted_s = now
        return True


class AvailableNow:
    """The snapshot of ends at which an available-now run stops; only `prepare` makes one.

    Runs on: driver, one per query run.
    """

    def __init__(self) -> None:
        self._is_prepared = False
        self._snapshot: Mapping[TopicPartition, int] | None = None

    @property
    def is_prepared(self) -> bool:
        """Whether the run ends at the records that are available now."""
        return self._is_prepared

    def prepare(self) -> None:
        """Take the snapshot at the next call of `ends`.

        Not now: an uncommitted micro-batch of the previous run is planned again first, and partitions that appeared in
        the meantime would not fit it (SPARK-53560).
        """
        self._is_prepared = True

    def ends(self, look_up: Callable[[], Mapping[TopicPartition, int]]) -> Mapping[TopicPartition, int]:
        """Return the ends of the snapshot, or the result of `look_up` without a snapshot."""
        if self._snapshot is not None:
            return self._snapshot
        found = look_up()
        if self._is_prepared:
            self._snapshot = found
        return found

    def check(self, end: Mapping[TopicPartition, int], look_up: Callable[[], Mapping[TopicPartition, int]]) -> None:
        """Raise if a micro-batch that ends at `end` does not fit the snapshot, or the logs as they are now.

        Raises:
            PlanningError: see `check_available_now`.
        """
        if self._snapshot:
            check_available_now(end, self._snapshot, look_up())


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The parts of a read limit."""

    minimum: ReadMinRows | None = None
    maximum: ReadMaxRows | None = None
    maximum_bytes: ReadMaxBytes | None = None

    @classmethod
    def of(cls, limit: ReadLimit) -> _Bounds:
        """Split a read limit into its parts; `ReadAllAvailable` takes precedence over all others."""
        bounds = cls()
        limits = limit.limits if isinstance(limit, CompositeReadLimit) else (limit,)
        if any(isinstance(part, ReadAllAvailable) for part in limits):
            return bounds
        for part in limits:
            if isinstance(part, ReadMinRows):
                bounds = replace(bounds, minimum=part)
            elif isinstance(part, ReadMaxRows):
                bounds = replace(bounds, maximum=part)
            elif isinstance(part, ReadMaxBytes):
                bounds = replace(bounds, maximum_bytes=part)
            else:
                raise NotImplementedError(f"read limit {part!r}")
        return bounds
