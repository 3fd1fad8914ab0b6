"""Remembers the ids of the topics that a stream has read, and finds recreated ones.

`topic_losses` decides what to do about them; `pyspark_kafka.checkpoint.topic_ids` keeps the ids in a file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka.checkpoint.topic_ids import TopicIdentities, TopicIdsFile
from pyspark_kafka.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka.checkpoint.files import CheckpointFiles


class TopicWatch:
    """The ids of the topics that a query has read, so that a recreated topic is not read at former offsets.

    Offsets do not reveal it: the end of the new topic may be higher than the end of the former one. Ids are kept in
    memory for this run, and for later runs in the checkpoint if its location is known; never in the offsets, which
    Spark's own connector must be able to read.

    Runs on: driver, one per query run.

    Args:
        files: the query's checkpoint; None if its location is not known.
        directory: the source's own directory in it.

    Source: KIP-516, topic ids.
    """

    def __init__(self, files: CheckpointFiles | None, directory: str) -> None:
        self._file = None if files is None else TopicIdsFile(files, directory)
        self._kept: TopicIdentities | None = None

    @property
    def ids(self) -> Mapping[str, str]:
        """The ids of the topics that the query reads, by name; brokers before Kafka 2.8 do not return them."""
        return self._identities().ids

    def meet(self, topic_ids: Mapping[str, str], position: Iterable[str] = ()) -> None:
        """Remember the ids of topics that are new to the query; forget topics that it no longer reads.

        A topic that is not in the position is new, even if a topic of its name was read before.

        Args:
            topic_ids: the ids of the currently subscribed topics.
            position: the topics in the position of the query.

        Raises:
            CheckpointError: the file in the checkpoint cannot be read or written.
        """
        kept, read = self._identities(), set(position)
        ids = {topic: topic_id for topic, topic_id in kept.ids.items() if topic in read}
        ids.update({topic: topic_id for topic, topic_id in topic_ids.items() if topic not in ids})
        if ids != kept.ids:
            self._keep(replace(kept, ids=ids))

    def recreated(self, topic_ids: Mapping[str, str], topics: Iterable[str]) -> tuple[str, ...]:
        """Return the topics whose id differs from the id that the query has read, sorted."""
        ids = self._identities().ids
        return tuple(
            sorted(
                topic for topic in set(topics) if topic in ids and topic in topic_ids and topic_ids[topic] != ids[topic]
            )
        )

    def restart(self, topics: Iterable[str], topic_ids: Mapping[str, str], end: str) -> None:
        """Record before any task reads that the micro-batch up to `end` reads `topics` from their beginning.

        The end identifies the micro-batch, so that a repeated plan after a crash reads the same records.
        """
        restarted = tuple(sorted(topics))
        kept = self._identities()
        ids = {**kept.ids, **{topic: topic_ids[topic] for topic in restarted}}
        self._keep(TopicIdentities(ids, end, restarted))

    def restarting(self, end: str) -> tuple[str, ...]:
        """Return the topics that the micro-batch that ends at `end` reads from their beginning."""
        kept = self._identities()
        return kept.restarted if kept.restarted and kept.restart_end == end else ()

    def error(self, topics: Iterable[str], topic_ids: Mapping[str, str]) -> DataLossError:
        """Build the error about recreated topics; the caller raises it, or logs it if loss is tolerated."""
        ids = self._identities().ids
        listed = ", ".join(f"'{topic}' (id {ids[topic]} before, {topic_ids[topic]} now)" for topic in topics)
        return DataLossError(
            f"Topics were recreated under the same name: {listed}. The offsets of the query are the "
            "former topics'; what was left to read in those is gone. Nothing more was read.",
            condition="KAFKA_DATA_LOSS.TOPIC_RECREATED",
            hint="Read the new topics from their beginning: move the query there with `pyspark-kafka checkpoint "
            "rewind` and --offsets (-2 is the beginning of a log), or set failOnDataLoss to false for one run.",
            parameters={"topics": ", ".join(topics)},
        )

    def _identities(self) -> TopicIdentities:
        if self._kept is None:
            self._kept = TopicIdentities() if self._file is None else self._file.read()
        return self._kept

    def _keep(self, identities: TopicIdentities) -> None:
        if self._file is not None:
            self._file.replace(identities)
        self._kept = identities
