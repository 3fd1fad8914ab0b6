"""The names and offsets in a checkpoint that its cluster must have."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pyspark_kafka._connector.sink.transactional_ids import default_id
from pyspark_kafka._ops.operations.checkpoints.batches import OFFSETS, batch_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._base.offsets import KafkaSourceOffset
    from pyspark_kafka._connector.sink.source_positions import LaneRecord
    from pyspark_kafka._ops.operations.checkpoints.batches import PlannedBatch
    from pyspark_kafka._ops.operations.checkpoints.verify.file_judge import FileJudge


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected state of a checkpoint's cluster.

    Attributes:
        query_id: of the query; None if unknown.
        position: the position of the query, over all Kafka sources; of a partition that several of them
            read, the lowest offset.
        furthest: the same with the highest offset.
        last: the last batch of the offset log; None without a readable batch.
        topic_ids: the ids of the topics that the query has read, by name.
        sink_id: the transactional id of an exactly-once sink, if the query has one; empty if unknown.
        lanes: the transactions of an exactly-once continuous query; None if it never was one.
        is_sink_named: whether the caller says that the query has an exactly-once sink; others are looked for as well.
    """

    query_id: str | None
    position: Mapping[TopicPartition, int]
    furthest: Mapping[TopicPartition, int]
    last: PlannedBatch | None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    sink_id: str = ""
    lanes: LaneRecord | None = None
    is_sink_named: bool = False

    def unfinished_end(self) -> dict[TopicPartition, int]:
        """Return the end of the batch that a restart repeats; empty without such a batch.

        Of a partition that several sources read, it is the highest offset.
        """
        if self.last is None or self.last.finished:
            return {}
        return _of_all_sources(self.last.offsets, max)

    def partitions(self) -> list[TopicPartition]:
        """Return all topic-partitions, sorted."""
        return sorted({*self.position, *self.unfinished_end()})


def expect(judge: FileJudge, sink_id: str | None = None, *, is_sink_named: bool = False) -> Expectation:
    """Read the expected state of the cluster from a checkpoint; unreadable parts are left out.

    Args:
        judge: reads the files.
        sink_id: the transactional id of the query's writer; None: the default, from the query's id.
        is_sink_named: whether the query is known to write exactly once, also without an id of its own.
    """
    checkpoint, attempt = judge.checkpoint, judge.attempt
    query_id = attempt("metadata", None, checkpoint.query_id)
    position = attempt(OFFSETS, None, checkpoint.position) or {}
    topic_ids: dict[str, str] = {}
    for source in attempt("sources", None, checkpoint.sources) or ():
        found = attempt(source, None, partial(checkpoint.topic_ids, source))
        topic_ids |= {} if found is None else found.ids
    return Expectation(
        query_id,
        _of_all_sources(position, min),
        _of_all_sources(position, max),
        attempt(OFFSETS, None, checkpoint.last_begun),
        topic_ids,
        sink_id or ("" if query_id is None else default_id(query_id)),
        attempt("continuous/transactions", None, checkpoint.lane_record),
        is_sink_named or sink_id is not None,
    )


def _of_all_sources(
    offsets: Mapping[str, KafkaSourceOffset], choose: Callable[[int, int], int]
) -> dict[TopicPartition, int]:
    """Return one offset of each partition; of a partition that several sources read, the chosen offset."""
    found: dict[TopicPartition, int] = {}
    for offset in offsets.values():
        for each, at in offset.partitions.items():
            found[each] = choose(found.get(each, at), at)
    return found


def list_newest(judge: FileJudge) -> int | None:
    """List the offset log again, and return its last batch; None without a batch, or if it cannot be listed."""
    names = judge.attempt(OFFSETS, None, lambda: judge.checkpoint.files.scan(OFFSETS))
    return None if names is None else max(batch_numbers(names), default=None)
