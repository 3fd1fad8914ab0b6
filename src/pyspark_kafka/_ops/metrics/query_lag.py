"""The positions of the queries that a session runs now, from their progress."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._ops.metrics.values import offset_text
from pyspark_kafka._ops.operations.lag.positions import LagPositions, merge_positions
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_kafka._base.model import TopicPartition


def query_positions(session: SparkSession) -> dict[str, LagPositions]:
    """Return the positions of a session's active queries: the ends of the last reported micro-batches.

    Queries that read nothing of Kafka, or have not ended a micro-batch yet, are left out. If two sources of a query
    read one partition, the source that is further behind counts.

    Runs on: driver, or the client with Spark Connect, which queries the server.

    Returns:
        LagPositions by the name of the query, or by its id if it has none, or if several have that name.
    """
    found: list[tuple[str, str, LagPositions]] = []
    for query in session.streams.active:
        progress = query.lastProgress
        positions = None if progress is None else progress_positions(progress["sources"])
        if positions:
            name = query.name or str(query.id)
            found.append((name, str(query.id), LagPositions(f"query {name}", positions)))
    names = [name for name, _, _ in found]
    return {name if names.count(name) == 1 else query_id: positions for name, query_id, positions in found}


def progress_positions(sources: Any) -> dict[TopicPartition, int]:
    """Return the next offset to read of each partition, of those sources of a progress that are Kafka's.

    Args:
        sources: `sources` of a progress, with `endOffset` as text, or as the value that Spark's classic API has.
    """
    offsets = []
    for source in sources:
        # Of another source, or nothing is known yet, it is not an offset of Kafka's.
        with suppress(CheckpointError):
            offsets.append(KafkaSourceOffset.from_json(offset_text(source["endOffset"])))
    return merge_positions(offsets)
