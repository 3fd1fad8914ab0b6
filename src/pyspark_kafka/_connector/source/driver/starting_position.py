"""The start of a new query: resolved once, and kept from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import Earliest, KafkaSourceOffset, SpecificOffsets
from pyspark_kafka._connector.planning import data_loss_error, find_lost_positions
from pyspark_kafka._connector.source.driver.edge_resolver import resolve_listed
from pyspark_kafka.checkpoint.initial_offset_log import InitialOffsetLog
from pyspark_kafka.errors import CheckpointError, OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._base.offsets import RangeEdge
    from pyspark_kafka._client.options import StreamReadOptions
    from pyspark_kafka._connector.source.driver.edge_resolver import EdgeResolver
    from pyspark_kafka._connector.source.driver.offset_reader import KafkaOffsetReader
    from pyspark_kafka._connector.source.driver.topic_watch import TopicWatch
    from pyspark_kafka.checkpoint.files import CheckpointFiles


class StartingPosition:
    """The position at which a query's first micro-batch starts.

    Spark asks for it several times: for the end of the first batch, for its start, and once more in the next run if
    the first batch was planned and not committed. With `startingOffsets=latest` each look-up finds other offsets, and
    the records between them would never be read. So the position is kept: in memory for this run; beyond it in the
    checkpoint if its location is known, and otherwise inside the end offset of the first batch (`carried`).

    Runs on: driver, one per query run; blocks on look-ups, with a deadline.

    Args:
        options: of the stream: its starting option, and how it is resolved.
        offset_reader: looks up partitions and offsets.
        watch: notes the topics of the resolved position.
        files: the query's checkpoint; None if its location is not known.
        directory: the source's own directory in it.

    Source: Spark `KafkaMicroBatchStream.getOrCreateInitialPartitionOffsets`.
    """

    def __init__(
        self,
        options: StreamReadOptions,
        offset_reader: KafkaOffsetReader,
        watch: TopicWatch,
        files: CheckpointFiles | None,
        directory: str,
    ) -> None:
        self._options = options
        self._offset_reader = offset_reader
        self._watch = watch
        self._files = files
        self._directory = directory
        self._offsets: Mapping[TopicPartition, int] | None = None
        # The starting option does not fit; an error only if the query is new.
        self._error: OptionError | None = None
        self._passed = False

    @property
    def found(self) -> Mapping[TopicPartition, int] | None:
        """The position, if `get` has found it in this run."""
        return self._offsets

    def get(self) -> Mapping[TopicPartition, int]:
        """Return the position; resolve it at the first call.

        Raises:
            OptionError: with a checkpoint, the starting option does not fit; without one see `check`.
            DataLossError: with a checkpoint, a log ends before its start, and `failOnDataLoss` is true.
            CheckpointError: the checkpoint is another query's, or cannot be read or written.
        """
        if self._offsets is None:
            if self._files is None:
                self._offsets = resolve_listed(self._offset_reader, self._resolve)
            else:
                _check_unused(self._files)
                log = InitialOffsetLog(self._files, self._directory)
                self._offsets = log.get_or_create(
                    lambda: KafkaSourceOffset(resolve_listed(self._offset_reader, self._resolve))
                ).partitions
        return self._offsets

    def resolve(self) -> Mapping[TopicPartition, int]:
        """Return the position of a look-up now; keep nothing.

        Raises:
            OptionError: the option names other partitions than the subscription, or a time without a record.
        """
        return resolve_listed(self._offset_reader, self._starts)

    def check(self) -> None:
        """Raise the OptionError of a starting option that does not fit, unless the query is known not to be new."""
        if self._error is not None:
            raise self._error

    def checkpoint(self) -> tuple[str, str]:
        """Return the location of the checkpoint and the number of its last finished batch, or words in their place."""
        if self._files is None:
            return "CHECKPOINT", "N"
        finished = [int(name) for name in self._files.list("commits") if name.isdecimal()]
        return self._files.shown, str(max(finished)) if finished else "N"

    def of_batch(
        self, start: Mapping[TopicPartition, int], end: KafkaSourceOffset, *, is_ours: bool
    ) -> Mapping[TopicPartition, int]:
        """Return the start of the micro-batch to be planned.

        A first batch that another run has planned keeps its start and its partitions of that time,
        even if the option resolves to other offsets now.

        Args:
            start: its start as the engine passes it.
            end: its end.
            is_ours: whether this run has already found the end of a batch.
        """
        # A batch of a former run: the query is not new.
        self._error = None
        if end.starts is not None:
            return end.starts
        # Resolved by this run: it may have partitions that are newer than the batch.
        if not is_ours and self._files is None and start == self._offsets:
            return {tp: offset for tp, offset in start.items() if tp in end.partitions}
        return start

    def carried(self, start: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int] | None:
        """Return the start that the end of a batch must carry: `start` for the first batch, otherwise None."""
        # Later batches may start at the same offsets by chance.
        self._passed = self._passed or start != self._offsets
        if self._passed or self._files is not None or _is_fixed(self._options.starting):
            return None
        return self._offsets

    def _resolve(self, resolver: EdgeResolver) -> Mapping[TopicPartition, int]:
        self._watch.meet(resolver.topic_ids)
        try:
            found = self._starts(resolver)
        except OptionError as error:
            if self._files is not None:
                # The position would be kept in the checkpoint.
                raise
            self._error = error
            return resolver.find_fixed_starts(self._options.starting)
        if self._files is not None and isinstance(self._options.starting, SpecificOffsets):
            self._refuse_late(found, resolver.find_latest())
        return found

    def _refuse_late(self, starts: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> None:
        """Raise if a start is after the end of its log, before the checkpoint keeps it for all later runs."""
        late = {tp: offset for tp, offset in starts.items() if offset > latest[tp]}
        if late and self._options.fail_on_data_loss:
            reached = self._offset_reader.find_reached(late)
            lost = find_lost_positions({tp: offset for tp, offset in late.items() if tp not in reached}, latest)
            if lost:
                raise data_loss_error(lost, is_planned=False)

    def _starts(self, resolver: EdgeResolver) -> Mapping[TopicPartition, int]:
        return resolver.find_starts(
            self._options.starting, latest_without_match=self._options.start_at_latest_without_match
        )


def _check_unused(files: CheckpointFiles) -> None:
    """Refuse the checkpoint of a query that is past batch 0: such a query does not need a start."""
    batches = [int(name) for name in files.list("offsets") if name.isdecimal()]
    if any(batch > 0 for batch in batches):
        raise CheckpointError(
            f"Option 'checkpointLocation' of the source names {files.shown}, which belongs to a query that has come to "
            f"batch {max(batches)}, but this query is new. Nothing was read.",
            condition="CHECKPOINT_OF_ANOTHER_QUERY",
            hint="Set the checkpointLocation of the source to the checkpointLocation of the query's writer.",
            parameters={"location": files.shown, "batch_id": max(batches)},
        )


def _is_fixed(edge: RangeEdge) -> bool:
    """Return whether resolving again finds the same position, or one that leaves no record unread before it."""
    if isinstance(edge, SpecificOffsets):
        return all(isinstance(value, (int, Earliest)) for value in (*edge.partitions.values(), *edge.topics.values()))
    return isinstance(edge, Earliest)
