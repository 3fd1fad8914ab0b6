"""The finished batches of a stream, by the calls of its engine and by the logs of its checkpoint.

Spark (`MicroBatchExecution`) finishes a micro-batch by writing it to the commit log. Only then it calls
`latestOffset(start)`, so a start is the end of a finished batch, unless it is the start of the query. With
asynchronous progress tracking the commit log may lack the newest finished batches.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka.checkpoint.offset_log import CommitLog, OffsetSeqLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.options import StreamReadOptions
    from pyspark_kafka._connector.source.driver.reporting.group_offsets import CommittedGroup
    from pyspark_kafka.checkpoint.files import CheckpointFiles

_LOG = logging.getLogger(__name__)


class FinishedBatches:
    """Passes the ends of finished batches on; without a group it does nothing.

    Runs on: driver, one per query run, in its thread. `note_start` and `note` do not block, `flush` and `stop` for at
    most about 2 s, `stop` also for two files of the checkpoint.

    Args:
        group: the consumer group that gets the ends; None: no commits.
        files: the query's checkpoint, for the finished batches when a run stops; None: unknown.
        source_index: the number of this source in the query, or its name.
    """

    def __init__(
        self, group: CommittedGroup | None, files: CheckpointFiles | None = None, source_index: str = "0"
    ) -> None:
        self._group = group
        self._files, self._source_index = files, source_index
        self._has_passed_start = False
        self._is_stopped = False

    @classmethod
    def from_options(
        cls,
        options: StreamReadOptions,
        files: CheckpointFiles | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> FinishedBatches:
        """Build it from the options of a stream."""
        if options.committed_group is None:
            return cls(None)
        # Most streams have no group.
        from pyspark_kafka._connector.source.driver.reporting.group_offsets import CommittedGroup  # noqa: PLC0415

        group = CommittedGroup(options.connection, options.committed_group, clock)
        # A location that is only the source's own has no logs.
        has_logs = files is not None and options.checkpoint_location is not None
        return cls(group, files if has_logs else None, options.source_index)

    def note_start(self, start: Mapping[TopicPartition, int], begin: Mapping[TopicPartition, int] | None) -> None:
        """Record the start of a batch: it is the end of a finished batch, unless the query begins there.

        Args:
            start: next offset to read by partition.
            begin: the start of the query, if this run knows it.
        """
        if self._group is None or (not self._has_passed_start and start == begin):
            return
        self._has_passed_start = True
        self._group.note(start)

    def note(self, end: Mapping[TopicPartition, int]) -> None:
        """Record the end of a finished batch."""
        if self._group is not None:
            self._group.note(end)

    def flush(self) -> None:
        """Wait until the newest end is committed, or its commit has failed."""
        if self._group is not None:
            self._group.flush(once_more=True)

    def stop(self) -> None:
        """Commit the newest finished batch of the checkpoint, if its location is known, and wait for the commit."""
        if self._group is None or self._is_stopped:
            return
        self._is_stopped = True
        if self._files is not None:
            try:
                end = finished_end(self._files, self._source_index)
            except Exception as error:  # noqa: BLE001 - logged; an error that ends the query must not be hidden by it
                _LOG.warning("Which batch is the last finished one is not known to consumer group tools. %s", error)
            else:
                if end is not None:
                    self._group.note(end.partitions)
        self._group.flush(once_more=True)


def finished_end(files: CheckpointFiles, source_index: str) -> KafkaSourceOffset | None:
    """Return the end of the newest micro-batch that is in both logs of a checkpoint; None if there is none.

    Raises:
        CheckpointError: the checkpoint cannot be read, or is another source's.
    """
    committed = CommitLog(files).batch_ids()
    batch = OffsetSeqLog(files).get(committed[-1]) if committed else None
    text = None if batch is None else batch.of_source(source_index)
    return None if text is None else KafkaSourceOffset.from_json(text)
