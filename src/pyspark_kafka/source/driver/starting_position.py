"""Where a new query starts, kept from the first time it is asked for. Layer: source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.checkpoint.initial_offset_log import InitialOffsetLog
from pyspark_kafka.errors import CheckpointError
from pyspark_kafka.offsets import Earliest, KafkaSourceOffset, SpecificOffsets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka.checkpoint.files import CheckpointFiles
    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.offsets import OffsetRangeLimit


class StartingPosition:
    """The position that a query's first batch starts from, resolved once.

    Spark asks for it several times: for the end of the first batch, for its start, and once more in the next run where
    the first batch was planned and not committed. With `startingOffsets=latest` each answer would be another one, and
    the records between them would be read by nobody. So it is kept: in memory for this run; beyond it in the
    checkpoint where its place is known, and otherwise inside the first batch's end offset (`carried`).

    Runs on: driver, one per query run.

    Args:
        limit: what the starting option says.
        files: the query's checkpoint; None where it is not known.
        directory: the source's own directory in it.

    Source: Spark `KafkaMicroBatchStream.getOrCreateInitialPartitionOffsets`.
    """

    def __init__(self, limit: OffsetRangeLimit, files: CheckpointFiles | None, directory: str) -> None:
        self._limit = limit
        self._files = files
        self._directory = directory
        self._offsets: Mapping[TopicPartition, int] | None = None
        self._passed = False

    def get(self, resolve: Callable[[], Mapping[TopicPartition, int]]) -> Mapping[TopicPartition, int]:
        """Give the position; resolve it if it is not kept yet.

        Raises:
            CheckpointError: the checkpoint is another query's, or cannot be read or written.
        """
        if self._offsets is None:
            if self._files is None:
                self._offsets = resolve()
            else:
                _check_unused(self._files)
                log = InitialOffsetLog(self._files, self._directory)
                self._offsets = log.get_or_create(lambda: KafkaSourceOffset(resolve())).partitions
        return self._offsets

    def asked_again(self, start: Mapping[TopicPartition, int]) -> bool:
        """Tell whether `start` was resolved by this run, so that it has partitions that are newer than the query's."""
        return self._files is None and start == self._offsets

    def carried(self, start: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int] | None:
        """Give what the end of a batch from `start` has to carry: its start where it is the first one, else None."""
        # Later batches may start from the same offsets by chance: where the query stood when this run was asked.
        self._passed = self._passed or start != self._offsets
        if self._passed or self._files is not None or _is_fixed(self._limit):
            return None
        return self._offsets


def _check_unused(files: CheckpointFiles) -> None:
    """Refuse the checkpoint of a query that has had its first batch: such a query does not ask where to start."""
    batches = [int(name) for name in files.list("offsets") if name.isdecimal()]
    if any(batch > 0 for batch in batches):
        raise CheckpointError(
            f"Option 'checkpointLocation' of the source names {files.shown}, which belongs to a query that has come to "
            f"batch {max(batches)}, but this query is new. Nothing was read.",
            condition="CHECKPOINT_OF_ANOTHER_QUERY",
            hint="Give the source the checkpointLocation that the query's writer has.",
            facts={"location": files.shown, "batch_id": max(batches)},
        )


def _is_fixed(limit: OffsetRangeLimit) -> bool:
    """Tell whether resolving again gives the same position, or one before which nothing is left to read."""
    if isinstance(limit, SpecificOffsets):
        return all(isinstance(value, (int, Earliest)) for value in (*limit.partitions.values(), *limit.topics.values()))
    return isinstance(limit, Earliest)
