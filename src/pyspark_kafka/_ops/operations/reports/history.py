"""The batches of a checkpoint over time, and the rows of each partition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_kafka._ops.operations.checkpoints.batches import OFFSETS, rows_between
from pyspark_kafka._ops.operations.reports.timeline import BatchStats

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._base.offsets import KafkaSourceOffset
    from pyspark_kafka._ops.operations.checkpoints.batches import PlannedBatch
    from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import QueryCheckpoint

# Copied files have almost the same time, whenever the batches ran.
_COPIED_WITHIN_MS = 10_000
_COPIED_LEAST_MS = 60_000


@dataclass(frozen=True, slots=True)
class CheckpointHistory:
    """The last batches of a checkpoint.

    Attributes:
        batches: in the order of their numbers.
        older: the number of older batches in the log.
        positions: the positions of the query, by source.
        rows: offsets that the batches cover, by topic-partition.
        has_end_times: whether the times of finished batches are known; copied files do not have them.
        other_sources: the names of sources other than Kafka.
        moved: the numbers under which a fork or a rewind has moved the query; they are not among the batches.
    """

    batches: Sequence[BatchStats]
    older: int
    positions: Mapping[str, KafkaSourceOffset] = field(hash=False)
    rows: Mapping[TopicPartition, int] = field(hash=False)
    has_end_times: bool
    other_sources: Sequence[str]
    moved: Sequence[int] = ()


def read_history(
    checkpoint: QueryCheckpoint, max_batches: int, watch: Callable[[int, int], None] = lambda _done, _all: None
) -> CheckpointHistory:
    """Read the last batches of a checkpoint; each has one or two files.

    Runs on: any program; blocks on the file system. Holds one offset and the metrics of `max_batches` batches.

    Args:
        checkpoint: of the query.
        max_batches: the maximum number of batches.
        watch: called with the number of read batches and their total.

    Raises:
        CheckpointError: a file is damaged, or cannot be read.
    """
    history = checkpoint.history
    numbers = history.begun[-max_batches:]
    rows: Counter[TopicPartition] = Counter()
    before = checkpoint.start_of(numbers[0]) if numbers else {}
    others: set[str] = set()
    moved: list[int] = []
    found: list[BatchStats] = []
    for done, number in enumerate(numbers, 1):
        planned = history.get(number)
        watch(done, len(numbers))
        if planned is None:
            # Spark removed it after it was listed.
            continue
        others |= {name for name, end in planned.ends.items() if end.is_other}
        if planned.is_moved:
            # It read nothing, and the next batch begins at its end.
            moved.append(number)
            before = planned.offsets
            continue
        passed_over = history.is_passed_over(number)
        of_batch = None if passed_over else _rows(before, planned)
        rows.update(of_batch or {})
        begun_ms = planned.planned_at_ms or history.written_ms(number, OFFSETS)
        finished_ms = history.written_ms(number) if planned.finished else None
        known = None if of_batch is None else sum(of_batch.values())
        found.append(BatchStats(number, begun_ms, finished_ms, planned.finished, known, is_passed_over=passed_over))
        # No query reads a batch that a rewind has passed over.
        before = before if passed_over else planned.offsets
    has_end_times = not _were_copied(found)
    if not has_end_times:
        found = [replace(each, finished_ms=None) for each in found]
    return CheckpointHistory(
        found, len(history.begun) - len(numbers), checkpoint.position(), rows, has_end_times, sorted(others), moved
    )


def _rows(before: Mapping[str, KafkaSourceOffset], planned: PlannedBatch) -> Counter[TopicPartition] | None:
    """Return the offsets that a batch covers; None if its start is unknown."""
    rows: Counter[TopicPartition] = Counter()
    known = False
    for source, offset in planned.offsets.items():
        start = dict(before[source].partitions) if source in before else {}
        # The starts of partitions that are new since the batch before.
        start = {**(offset.starts or {}), **start}
        between = rows_between(start, offset.partitions)
        known = known or bool(between)
        for each, count in between.items():
            # Two sources may read one partition; an offset that goes back is a fault that `verify` reports.
            rows[each] += max(0, count)
    return rows if known else None


def _were_copied(batches: Sequence[BatchStats]) -> bool:
    begun = [each.begun_ms for each in batches if each.begun_ms is not None]
    finished = [each.finished_ms for each in batches if each.finished_ms is not None]
    if len(finished) < 2 or not begun:
        return False
    return (
        max(finished) - min(finished) < _COPIED_WITHIN_MS
        and max(begun) - min(begun) > _COPIED_LEAST_MS
        and min(finished) > max(begun)
    )
