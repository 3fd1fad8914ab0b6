"""The steps that a fetch session requires of its caller, and the cluster memory that it reads. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.metadata import BrokerNode, PartitionMetadata
    from pyspark_kafka._client.client.fetch.cursor import FetchedRecords
    from pyspark_kafka._client.client.fetch.request import FetchPosition
    from pyspark_kafka._client.client.queries.leader_epochs import EpochQuestion
    from pyspark_kafka.errors import ConnectorError


class ClusterMemory(Protocol):
    """A client's memory of the cluster. No method blocks. `KafkaClient` is one."""

    def cached_leader(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """Return a partition with its leader; None if it is not known, leaderless, or old."""

    def cached_topic_id(self, topic: str) -> UUID | None:
        """Return the topic id from the last response; None without one."""

    def cached_broker(self, broker_id: int) -> BrokerNode | None:
        """Return a broker from the last response."""

    def learn_leader(
        self, topic_partition: TopicPartition, leader_id: int, leader_epoch: int, node: BrokerNode | None
    ) -> bool:
        """Take a leader that a broker named in a response; return whether it was newer and can be reached."""

    def forget_topic(self, topic: str) -> None:
        """Drop what is known of a topic."""

    def avoid_last_asked(self) -> None:
        """Send the next metadata request to another broker than the last one."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send one request; then `on_sent`, `on_connecting` or `on_failure`.

    Attributes:
        max_bytes: of the whole response.
        use_rack: whether the request names the reader's rack, so that leaders may name a replica.
    """

    broker_id: int
    positions: tuple[FetchPosition, ...]
    max_bytes: int
    use_rack: bool


@dataclass(frozen=True, slots=True)
class FindLeaders:
    """Request leaders from the cluster; then `on_leaders` or `on_lookup_failure`.

    Attributes:
        patient: whether elections are waited for: nothing else can be read meanwhile.
    """

    topic_partitions: tuple[TopicPartition, ...]
    patient: bool


@dataclass(frozen=True, slots=True)
class FetchEpochEnds:
    """Request the epoch ends of positions from new leaders, by leader; then `on_epoch_ends` or `on_lookup_failure`."""

    questions: Mapping[int, Sequence[EpochQuestion]]


@dataclass(frozen=True, slots=True)
class FetchLogEnds:
    """Request first offsets and high watermarks; then `on_log_ends` or `on_lookup_failure`.

    Attributes:
        alone: whether nothing else can be read meanwhile.
    """

    topic_partitions: tuple[TopicPartition, ...]
    alone: bool


@dataclass(frozen=True, slots=True)
class LookAtSilent:
    """Request metadata about silent brokers' topics; then `on_metadata` or `on_lookup_failure`."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Leave:
    """Close the connections to a broker and expect nothing more of it."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Wait for a response or a connection, or until a time if none comes; the time may be infinite."""

    time: float


@dataclass(frozen=True, slots=True)
class Deliver:
    """Return records to the caller, which passes the decoded position to `confirm`."""

    topic_partition: TopicPartition
    fetched: FetchedRecords


@dataclass(frozen=True, slots=True)
class Raise:
    """Raise an error; after one of `errors.LOSSES`, the caller may `resume` and come again."""

    error: ConnectorError


@dataclass(frozen=True, slots=True)
class Done:
    """All positions have reached their ends."""


Lookup = FindLeaders | FetchEpochEnds | FetchLogEnds | LookAtSilent
Step = Send | Lookup | Leave | WaitUntil | Deliver | Raise | Done
