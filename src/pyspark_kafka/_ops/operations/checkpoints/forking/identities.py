"""The ids of topics in another checkpoint: an id belongs to the offsets of the same file. Pure.

A query that finds another id than it keeps stops, or reads the topic from its beginning. So the id of the present
topic is kept only with offsets of this topic, which were named or looked up. An unchanged position belongs to
the topic that the query has read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._ops.operations.checkpoints.forking.places import AfterBatch
from pyspark_kafka.checkpoint.topic_ids import TopicIdentities
from pyspark_kafka.errors import CheckpointError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._ops.operations.checkpoints.forking.log_bounds import LogBounds
    from pyspark_kafka._ops.operations.checkpoints.forking.places import Place
    from pyspark_kafka._ops.operations.checkpoints.forking.positions import Positions
    from pyspark_kafka._ops.operations.checkpoints.forking.snapshot import CheckpointSnapshot


def identities_at(
    snapshot: CheckpointSnapshot, place: Place, positions: Positions, bounds: LogBounds | None
) -> dict[str, TopicIdentities]:
    """Return the ids of topics that belong to the offsets of a place, for each source that keeps ids.

    Args:
        snapshot: of the checkpoint.
        place: the start of the other checkpoint.
        positions: the offsets there.
        bounds: the state of the brokers; None without requests to them.

    Raises:
        CheckpointError: the last batch has begun to read a recreated topic and is not finished, and a partition of it
            stays at an offset of the former topic (condition CHECKPOINT_PLACE_INVALID).
    """
    found = {}
    for source, kept in snapshot.topic_ids.items():
        if not kept.ids:
            continue
        ids = dict(kept.ids)
        # A batch is refused if it is older than the topics of the kept ids.
        if not isinstance(place, AfterBatch):
            stays = {each.topic_partition.topic for each in positions.moves if each.source == source and each.stays}
            _check_restart(snapshot, source, stays)
            now = {} if bounds is None else bounds.topic_ids
            ids |= {topic: now[topic] for topic in ids if topic in now and topic not in stays}
        found[source] = TopicIdentities(ids)
    return found


def recreated_topics(identities: Mapping[str, TopicIdentities], bounds: LogBounds | None) -> list[str]:
    """Return the topics whose present id differs from the kept id, sorted."""
    now = {} if bounds is None else bounds.topic_ids
    return sorted(
        {
            topic
            for each in identities.values()
            for topic, topic_id in each.ids.items()
            if now.get(topic, topic_id) != topic_id
        }
    )


def _check_restart(snapshot: CheckpointSnapshot, source: str, stays: set[str]) -> None:
    """Refuse former offsets with the ids of the new topics: the query could not notice the difference."""
    kept = snapshot.topic_ids[source]
    last = snapshot.finished[-1] if snapshot.finished else -1
    begun = snapshot.restarts.get(source, -2) >= last
    position = snapshot.position.get(source)
    if position is not None:
        begun = begun or kept.restart_end == f"from {type(position)(position.partitions).json()}"
    former = sorted(stays.intersection(kept.restarted))
    if begun and former:
        raise CheckpointError(
            f"Topics of checkpoint {snapshot.location} were recreated: {listed(former)}. The batch that begins to read "
            "them again is not finished, and not each of their partitions gets an offset of the topic that there is "
            "now: the query would read the new topic at an offset of the former one.",
            condition="CHECKPOINT_PLACE_INVALID",
            hint="Name every partition of these topics with --offsets (-2 is the start of the log), use --at, or let "
            "the query finish that batch first.",
            parameters={"location": snapshot.location, "topics": listed(former)},
        )
