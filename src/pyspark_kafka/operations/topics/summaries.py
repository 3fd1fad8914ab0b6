"""Topics of a cluster, a line for each, and which of them are chosen. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

    from pyspark_kafka.client.cluster.metadata import TopicMetadata


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """Which topics are meant.

    Attributes:
        names: these only; empty: any.
        prefix: names begin with it.
        pattern: it is found anywhere in the name; None: any name.
        internal: whether the brokers' own topics are meant as well; one that `names` has always is.
    """

    names: frozenset[str] = frozenset()
    prefix: str = ""
    pattern: re.Pattern[str] | None = None
    internal: bool = False

    def takes(self, name: str, *, is_internal: bool) -> bool:
        """Return whether a topic is meant."""
        if self.names:
            return name in self.names
        if is_internal and not self.internal:
            return False
        return name.startswith(self.prefix) and (self.pattern is None or self.pattern.search(name) is not None)


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in few words.

    Attributes:
        name: the topic.
        partitions: how many it has.
        replication_factor: the number of replicas of a partition; the largest, if they differ.
        is_internal: whether it is one of the brokers' own.
        under_replicated: how many partitions have a replica that is not in sync.
        leaderless: how many partitions have no leader, and can be neither read nor written.
    """

    name: str
    partitions: int
    replication_factor: int
    is_internal: bool
    under_replicated: int
    leaderless: int


def summarize(topics: Iterable[TopicMetadata], choice: TopicChoice) -> list[TopicSummary]:
    """Return the chosen topics by name; those that brokers report with an error are left out."""
    chosen = (
        topic for topic in topics if not topic.error_code and choice.takes(topic.name, is_internal=topic.is_internal)
    )
    return sorted((_summary(topic) for topic in chosen), key=lambda summary: summary.name)


def _summary(topic: TopicMetadata) -> TopicSummary:
    return TopicSummary(
        name=topic.name,
        partitions=len(topic.partitions),
        replication_factor=max((len(each.replica_ids) for each in topic.partitions), default=0),
        is_internal=topic.is_internal,
        under_replicated=sum(len(each.in_sync_ids) < len(each.replica_ids) for each in topic.partitions),
        leaderless=sum(not each.has_leader for each in topic.partitions),
    )
