"""A snapshot of the cluster for the names in a checkpoint; a failed request is recorded, and the others are sent."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka._base.offsets import Earliest, Latest
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.transactions.group_positions import GroupPositions
from pyspark_kafka._client.client.transactions.inspection import describe_transaction, list_transactions
from pyspark_kafka._connector.sink.driver.commit_topic import CommitTopic
from pyspark_kafka._connector.sink.driver.marker_reader import MarkerReader
from pyspark_kafka.errors import ConnectorError, DeadlineError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.cluster.metadata import ClusterMetadata
    from pyspark_kafka._client.client.transactions.group_positions import GroupPosition
    from pyspark_kafka._client.client.transactions.inspection import TransactionDescription
    from pyspark_kafka._connector.sink.commit_marker import CommitMarker
    from pyspark_kafka._ops.operations.checkpoints.verify.expectation import Expectation

_T = TypeVar("_T")

# For one leader's partitions, after the look-up of all of them together has failed.
_ONE_LEADER_MS = 5_000


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic in the cluster.

    Attributes:
        exists: whether the topic exists.
        topic_id: its id; None if the brokers do not return ids.
        partitions: the numbers of its partitions.
    """

    exists: bool
    topic_id: str | None = None
    partitions: frozenset[int] = frozenset()


@dataclass(slots=True)
class ClusterSnapshot:
    """The state of a cluster.

    Attributes:
        topics: by name; unknown topics are left out.
        first: the first offset of each partition, if known.
        ends: the log end of each partition, if known.
        marker_known: whether the commit marker was looked up.
        marker: the newest commit marker of the sink; None without a marker.
        transactions: the open transactions of the query.
        group: the positions of the consumer group of an exactly-once continuous query; None if unknown.
        unknown: sentences about unknown values.
    """

    topics: dict[str, TopicState] = field(default_factory=dict)
    first: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    marker_known: bool = False
    marker: CommitMarker | None = None
    transactions: tuple[TransactionDescription, ...] = ()
    group: Mapping[TopicPartition, GroupPosition] | None = None
    unknown: list[str] = field(default_factory=list)


def ask_cluster(
    client: KafkaClient, expected: Expectation, commit_topic: str, report: Callable[[str], object] = str
) -> ClusterSnapshot:
    """Fetch everything about the names in a checkpoint from the brokers.

    Runs on: any program; blocks, for each request at most `api_timeout_ms`. Changes nothing.

    Args:
        client: the cluster.
        expected: the content of the checkpoint.
        commit_topic: the topic of the commit markers.
        report: called with the current step.
    """
    return _Inquiry(client, expected, report).run(commit_topic)


class _Inquiry:
    def __init__(self, client: KafkaClient, expected: Expectation, report: Callable[[str], object]) -> None:
        self._client = client
        self._expected = expected
        self._report = report
        self._snapshot = ClusterSnapshot()

    def run(self, commit_topic: str) -> ClusterSnapshot:
        snapshot, expected = self._snapshot, self._expected
        wanted = expected.partitions()
        topics = {each.topic for each in wanted} | set(expected.topic_ids)
        metadata = self._try("the topics", lambda: self._client.fetch_metadata(topics)) if topics else None
        if metadata is not None:
            self._note_topics(metadata)
            there = [each for each in wanted if each.partition in self._partitions(each.topic)]
            snapshot.first = self._offsets("the beginnings of the logs", there, Earliest(), metadata)
            snapshot.ends = self._offsets("the ends of the logs", there, Latest(), metadata)
        if topics and metadata is None:
            # No broker responds: further requests would only wait for the same time.
            return snapshot
        if expected.sink_id:
            self._ask_marker(commit_topic, expected.sink_id)
        self._ask_transactions()
        if expected.lanes is not None:
            group_id = expected.lanes.group_id
            snapshot.group = self._try(
                f"the positions of group '{group_id}'", lambda: GroupPositions(self._client, group_id).fetch()
            )
        return snapshot

    def _try(self, what: str, ask: Callable[[], _T]) -> _T | None:
        self._report(f"Asking the brokers for {what}")
        try:
            return ask()
        except ConnectorError as error:
            self._snapshot.unknown.append(f"The brokers did not tell {what}: {error.message}")
            return None

    def _partitions(self, topic: str) -> frozenset[int]:
        return self._snapshot.topics[topic].partitions if topic in self._snapshot.topics else frozenset()

    def _note_topics(self, metadata: ClusterMetadata) -> None:
        for name, topic in metadata.topics.items():
            error = topic.error
            if error is None:
                numbers = frozenset(each.topic_partition.partition for each in topic.partitions)
                topic_id = None if topic.topic_id is None else str(topic.topic_id)
                self._snapshot.topics[name] = TopicState(True, topic_id, numbers)
            elif error.condition == "UNKNOWN_TOPIC":
                self._snapshot.topics[name] = TopicState(False)
            else:
                self._snapshot.unknown.append(f"The brokers did not tell about topic '{name}': {error.message}")

    def _offsets(
        self, what: str, wanted: list[TopicPartition], edge: Earliest | Latest, metadata: ClusterMetadata
    ) -> dict[TopicPartition, int]:
        """Look up all partitions together; if that fails, by leader: a silent one affects its own partitions only."""
        if not wanted:
            return {}
        self._report(f"Asking the brokers for {what}")
        try:
            return list_offsets(self._client, dict.fromkeys(wanted, edge))
        except (DeadlineError, TransportError):
            pass
        except ConnectorError as error:
            self._snapshot.unknown.append(f"The brokers did not tell {what}: {error.message}")
            return {}
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        for each in wanted:
            partition = metadata.partition(each)
            by_leader[-1 if partition is None else partition.leader_id].append(each)
        found: dict[TopicPartition, int] = {}
        for leader, partitions in sorted(by_leader.items()):
            deadline = self._client.deadline().within(_ONE_LEADER_MS)
            known = self._try(
                f"{what} of {len(partitions):,} partitions of " + (f"broker {leader}" if leader >= 0 else "no leader"),
                lambda partitions=partitions, deadline=deadline: list_offsets(  # type: ignore[misc]
                    self._client, dict.fromkeys(partitions, edge), deadline=deadline
                ),
            )
            found |= known or {}
        return found

    def _ask_marker(self, commit_topic: str, sink_id: str) -> None:
        snapshot = self._snapshot
        self._report(f"Reading the commit marker of '{sink_id}'")
        try:
            reader = MarkerReader(self._client, CommitTopic(self._client, commit_topic), 0)
            snapshot.marker = reader.read_newest([sink_id]).get(sink_id)
        except ConnectorError as error:
            if error.condition != "UNKNOWN_TOPIC":
                snapshot.unknown.append(f"The commit marker of '{sink_id}' is not known: {error.message}")
                return
        snapshot.marker_known = True

    def _ask_transactions(self) -> None:
        expected = self._expected
        found: Iterable[TransactionDescription] | None = None
        if expected.lanes is not None:
            prefix = f"{expected.lanes.prefix}-"
            found = self._try(
                f"the transactions of '{prefix}…'",
                lambda: list_transactions(self._client, prefix=prefix, open_only=True),
            )
        elif expected.sink_id:
            sink_id = expected.sink_id
            one = self._try(f"the transaction of '{sink_id}'", lambda: describe_transaction(self._client, sink_id))
            found = () if one is None or not one.state.is_open else (one,)
        self._snapshot.transactions = tuple(found or ())
