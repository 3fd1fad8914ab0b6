"""Notices topics that were deleted and created again under the same name. Layer: source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka.checkpoint.topic_ids import TopicIdentities, TopicIdsFile
from pyspark_kafka.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka.checkpoint.files import CheckpointFiles


class TopicWatch:
    """Remembers the ids of a query's topics, so that offsets are not taken for those of another topic of the same name.

    Offsets alone do not show it: the new topic's end may be higher than the old one's was. Ids are kept in memory for
    this run, and beyond it in the checkpoint where its place is known; never in the offsets, which Spark's own
    connector must be able to read.

    Runs on: driver, one per query run.

    Args:
        files: the query's checkpoint; None where it is not known.
        directory: the source's own directory in it.

    Source: KIP-516, topic ids.
    """

    def __init__(self, files: CheckpointFiles | None, directory: str) -> None:
        self._file = None if files is None else TopicIdsFile(files, directory)
        self._kept: TopicIdentities | None = None

    @property
    def ids(self) -> Mapping[str, str]:
        """Give the ids of the topics that the query reads, by name, as far as brokers tell them."""
        return self._identities().ids

    def meet(self, topic_ids: Mapping[str, str], position: Iterable[str] = ()) -> None:
        """Remember the ids of topics that are new to the query; what it has left behind is forgotten.

        A topic that is not in the position is new, also where one of its name was read before.

        Args:
            topic_ids: the ids of the topics that the subscription means now.
            position: the topics that the query stands in.

        Raises:
            CheckpointError: the file beside the checkpoint cannot be read or written.
        """
        kept, stands_in = self._identities(), set(position)
        ids = {topic: topic_id for topic, topic_id in kept.ids.items() if topic in stands_in}
        ids.update({topic: topic_id for topic, topic_id in topic_ids.items() if topic not in ids})
        if ids != kept.ids:
            self._keep(replace(kept, ids=ids))

    def recreated(self, topic_ids: Mapping[str, str], topics: Iterable[str]) -> tuple[str, ...]:
        """Give those of `topics` whose id is another one than the query has read, sorted."""
        ids = self._identities().ids
        return tuple(
            sorted(
                topic for topic in set(topics) if topic in ids and topic in topic_ids and topic_ids[topic] != ids[topic]
            )
        )

    def restart(self, topics: Iterable[str], topic_ids: Mapping[str, str], end: str) -> None:
        """Note that `topics` begin anew in the batch that ends at `end`, before any task reads it.

        The batch is known by its end, so that it reads the same again when it is planned again after a crash.
        """
        again = tuple(sorted(topics))
        kept = self._identities()
        ids = {**kept.ids, **{topic: topic_ids[topic] for topic in again}}
        self._keep(TopicIdentities(ids, end, again))

    def restarting(self, end: str) -> tuple[str, ...]:
        """Give the topics that begin anew in the batch that ends at `end`."""
        kept = self._identities()
        return kept.restarted if kept.restarted and kept.restart_end == end else ()

    def error(self, topics: Iterable[str], topic_ids: Mapping[str, str]) -> DataLossError:
        """Build the error about topics that are others now; to be raised, or logged where loss is tolerated."""
        ids = self._identities().ids
        listed = ", ".join(f"'{topic}' (id {ids[topic]} before, {topic_ids[topic]} now)" for topic in topics)
        return DataLossError(
            f"Topics were deleted and created again under the same name: {listed}. The offsets of the query are the "
            "former topics'; what was left to read in those is gone. This batch has read nothing yet.",
            condition="KAFKA_DATA_LOSS.TOPIC_RECREATED",
            hint="Set failOnDataLoss to false for one run to read the new topics from their beginning, or start with a "
            "new checkpointLocation.",
            facts={"topics": ", ".join(topics)},
        )

    def _identities(self) -> TopicIdentities:
        if self._kept is None:
            self._kept = TopicIdentities() if self._file is None else self._file.read()
        return self._kept

    def _keep(self, identities: TopicIdentities) -> None:
        if self._file is not None:
            self._file.replace(identities)
        self._kept = identities
