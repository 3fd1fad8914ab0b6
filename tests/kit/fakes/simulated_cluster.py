"""A cluster without sockets, and time that passes when it is waited for: does what a `FetchSession` says.

The scripts are those of `tcp_cluster`. They see the same requests, and their responses take the way through the bytes
of the protocol. So a test of the session and a test over TCP differ in the fake only.
"""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kafka.protocol.consumer import FetchRequest, OffsetForLeaderEpochRequest

from kit.fakes.handlers.fetch import epoch_end
from kit.fakes.logs import batches_of
from kit.fakes.scripts import Close, Silence
from kit.fakes.tcp_cluster import Seen
from kit.reading import decoded_fetch
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.cluster.metadata import (
    BrokerNode,
    ClusterMetadata,
    PartitionMetadata,
    TopicMetadata,
    unknown_topic,
)
from pyspark_kafka._client.client.cluster.metadata_cache import MetadataCache
from pyspark_kafka._client.client.fetch.cursor import FetchedRecords
from pyspark_kafka._client.client.fetch.progress_timeout import ProgressTimeout
from pyspark_kafka._client.client.fetch.request import FetchFrame
from pyspark_kafka._client.client.fetch.response import NEWEST_VERSION, FetchResponse, parse_fetch_response
from pyspark_kafka._client.client.fetch.session.session import FetchSession
from pyspark_kafka._client.client.fetch.session.steps import (
    Deliver,
    Done,
    FetchEpochEnds,
    FetchLogEnds,
    FindLeaders,
    Leave,
    Lookup,
    Raise,
    Send,
    WaitUntil,
)
from pyspark_kafka._client.client.queries.leader_epochs import EpochEnd
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka.errors import ConnectorError, TransportError
from pyspark_kafka.records import iter_decode

__all__ = ["SimulatedCluster", "SimulatedRead", "batches_of"]

# What every response and every look-up takes.
_LATENCY_S = 0.001


def closed(broker_id: int) -> TransportError:
    """Return the error of a connection that the broker has closed."""
    text = f"The connection to broker {broker_id} is lost."
    return TransportError(text, condition="CONNECTION_CLOSED", retriable=True)


class SimulatedCluster:
    """Brokers 0 to count-1, sharing topics, scripts and the list of requests seen; also what a client remembers.

    Attributes:
        leaders: leader and leader epoch by topic and partition.
        topic_ids: by name; a topic that is not there does not exist.
        ends: first offset and high watermark by topic and partition.
        members: the brokers that metadata names.
        seen: the fetches, as `tcp_cluster` has them.
        lookups: the look-ups that the session asked for.
        now: the time.
    """

    def __init__(self, count: int = 2, *, version: int = NEWEST_VERSION, ids: bool = True) -> None:
        self.leaders: dict[tuple[str, int], tuple[int, int]] = {}
        self.topic_ids: dict[str, uuid.UUID] = {}
        self.ends: dict[tuple[str, int], tuple[int, int]] = {}
        self.members = set(range(count))
        self.seen: list[Seen] = []
        self.lookups: list[Lookup] = []
        self.now = 0.0
        self.avoided = 0
        self.epoch_ends: deque[Any] = deque([epoch_end(-1, -1)])
        # Called before a look-up at metadata, and before one at the ends of logs.
        self.before_metadata: deque[Any] = deque([lambda: None])
        self.before_log_ends: deque[Any] = deque([lambda: None])
        self.version = version
        self._ids = ids
        self._scripts: dict[int | None, deque[Any]] = defaultdict(deque)
        self.cache = MetadataCache(300_000, lambda: self.now)

    def add_topic(self, name: str, *, partitions: int = 1, leader: int = 0) -> None:
        """Create a topic."""
        self.topic_ids[name] = uuid.uuid4()
        for number in range(partitions):
            self.leaders[name, number] = (leader, 0)
            self.ends[name, number] = (0, 0)

    def script(self, *scripts: Any, broker_id: int | None = None) -> None:
        """Respond to fetches: to the first one with the first script, to all that are left with the last."""
        self._scripts[broker_id] = deque(scripts)

    def fetches(self) -> list[Any]:
        """Return the fetch requests that were sent."""
        return [seen.request for seen in self.seen]

    def asked_partitions(self) -> list[list[int]]:
        """Return the partitions of each fetch request, in their order."""
        return [[entry.partition for topic in sent.topics for entry in topic.partitions] for sent in self.fetches()]

    def asked_bytes(self) -> list[tuple[int, int]]:
        """Return the maximum of each fetch request, and of its first partition."""
        return [(sent.max_bytes, sent.topics[0].partitions[0].partition_max_bytes) for sent in self.fetches()]

    def asked_offsets(self) -> list[int]:
        """Return the offset that each fetch request begins with."""
        return [sent.topics[0].partitions[0].fetch_offset for sent in self.fetches()]

    def asked_brokers(self) -> list[int]:
        """Return the broker of each fetch request."""
        return [seen.broker_id for seen in self.seen]

    def respond(self, send: Send, options: ConnectionOptions, fetch: FetchOptions) -> Any:
        """Return what a broker sends for a request: a parsed response, `Close` or `Silence`."""
        rack = options.client_rack if send.use_rack else None
        frame = FetchFrame(send.positions, fetch, max_bytes=send.max_bytes, rack=rack)
        version = self.version if frame.max_version is None else min(self.version, frame.max_version)
        request = decoded_fetch(frame, version)
        self.seen.append(Seen(send.broker_id, FetchRequest.name, version, request))
        scripts = self._scripts.get(send.broker_id) or self._scripts[None]
        script = scripts.popleft() if len(scripts) > 1 else scripts[0]
        found = script() if isinstance(script, type) else script(request)
        if isinstance(found, (Close, Silence)):
            return found
        return self.parse(bytes(found.encode(version=version)), version)

    def parse(self, body: bytes, version: int) -> FetchResponse:
        """Parse the bytes of a response; a test may damage them."""
        return parse_fetch_response(memoryview(body), version)

    # What a client remembers (`ClusterMemory`)

    def cached_leader(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """As `KafkaClient`."""
        return self.cache.led_partition(topic_partition)

    def cached_topic_id(self, topic: str) -> uuid.UUID | None:
        """As `KafkaClient`."""
        return self.cache.topic_id(topic)

    def cached_broker(self, broker_id: int) -> BrokerNode | None:
        """As `KafkaClient`."""
        return self.cache.brokers.get(broker_id)

    def learn_leader(
        self, topic_partition: TopicPartition, leader_id: int, leader_epoch: int, node: BrokerNode | None
    ) -> bool:
        """As `KafkaClient`."""
        known = self.cache.partition(topic_partition)
        if node is not None and known is not None and leader_epoch > known.leader_epoch:
            self.cache.learn_node(node)
        return self.cache.learn_leader(topic_partition, leader_id, leader_epoch)

    def forget_topic(self, topic: str) -> None:
        """As `KafkaClient`."""
        self.cache.forget(topic)

    def avoid_last_asked(self) -> None:
        """Count: there is no other broker to ask."""
        self.avoided += 1

    # Look-ups

    def metadata(self, topics: Iterable[str]) -> None:
        """Look up topics.

        Raises:
            BrokerError: one of them, or a partition, does not exist.
        """
        (self.before_metadata.popleft() if len(self.before_metadata) > 1 else self.before_metadata[0])()
        found = {}
        for name in topics:
            if name not in self.topic_ids:
                raise unknown_topic(name)
            partitions = tuple(
                PartitionMetadata(TopicPartition(topic, number), leader, epoch)
                for (topic, number), (leader, epoch) in self.leaders.items()
                if topic == name
            )
            found[name] = TopicMetadata(name, self.topic_ids[name] if self._ids else None, partitions=partitions)
        nodes = {number: BrokerNode(number, f"broker-{number}", 9092, None) for number in self.members}
        self.cache.remember(ClusterMetadata(nodes, found))

    def find_leaders(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Look up leaders; a partition that does not exist is an error."""
        wanted = list(topic_partitions)
        self.metadata({topic_partition.topic for topic_partition in wanted})
        for topic_partition in wanted:
            if (topic_partition.topic, topic_partition.partition) not in self.leaders:
                raise unknown_topic(topic_partition.topic, partition=topic_partition.partition)

    def log_ends(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Look up first offsets and high watermarks, with leaders of now."""
        (self.before_log_ends.popleft() if len(self.before_log_ends) > 1 else self.before_log_ends[0])()
        wanted = list(topic_partitions)
        self.find_leaders(wanted)
        return {each: self.ends[each.topic, each.partition] for each in wanted}

    def epochs(self, step: FetchEpochEnds) -> dict[TopicPartition, EpochEnd | ConnectorError]:
        """Ask leaders where epochs end; the scripts are those of `tcp_cluster`."""
        script = self.epoch_ends.popleft() if len(self.epoch_ends) > 1 else self.epoch_ends[0]
        topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        found: dict[TopicPartition, EpochEnd | ConnectorError] = {}
        for questions in step.questions.values():
            for asked in questions:
                entry = topic_class.OffsetForLeaderPartition(
                    partition=asked.topic_partition.partition,
                    current_leader_epoch=asked.current_epoch,
                    leader_epoch=asked.epoch,
                )
                topic = topic_class(topic=asked.topic_partition.topic, partitions=[entry])
                response = script(OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic]))
                end = response.topics[0].partitions[0]
                found[asked.topic_partition] = EpochEnd(end.error_code, end.end_offset if end.leader_epoch >= 0 else -1)
        return found


class SimulatedRead:
    """A session and its caller, on a simulated cluster: what `Fetcher` is on sockets.

    Args:
        cluster: the brokers.
        ranges: what to read.
        connection: options of the connection.
        fetch: options of the fetches.

    Attributes:
        session: the session.
        pending: responses in flight, each with the time when it arrives, by broker.
        connecting: brokers that take this time to connect to, at first.
        waits: how long each wait may have been.
        left: the brokers that were left.
        latency_s: returns the time that the next response takes.
        cuts_off: whether connections are closed in the middle of a response.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        ranges: Iterable[OffsetRange],
        *,
        connection: dict[str, Any] | None = None,
        topic_ids: dict[str, uuid.UUID] | None = None,
        **fetch: Any,
    ) -> None:
        self.cluster = cluster
        self.fetch = FetchOptions(**({"max_wait_ms": 1, "poll_timeout_ms": 5_000} | fetch))
        fast = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 5, "request_timeout_ms": 2_000}
        self.options = ConnectionOptions((("simulated", 9092),), **(fast | (connection or {})))
        self.session = FetchSession(cluster, self.fetch, self.options)
        for offset_range in ranges:
            self.session.ranges.add_range(offset_range, (topic_ids or {}).get(offset_range.topic_partition.topic))
        self.pending: dict[int, tuple[float, Any]] = {}
        self.connecting: dict[int, float] = {}
        self.waits: list[float] = []
        self.latency_s: Callable[[], float] = lambda: _LATENCY_S
        self.left: list[int] = []
        self.cuts_off = False
        self._timeout = ProgressTimeout(self.options, self.fetch, self.session, lambda: cluster.now, lambda _: None)

    def __iter__(self) -> Iterator[tuple[TopicPartition, FetchedRecords]]:
        return self

    def __next__(self) -> tuple[TopicPartition, FetchedRecords]:
        """As `Fetcher`."""
        progress = self._timeout.begin()
        if not self.session.has_records:
            self.session.begin(self.cluster.now)
        while True:
            step = self.session.next_step(self.cluster.now)
            if isinstance(step, Deliver):
                return step.topic_partition, step.fetched
            if isinstance(step, Done):
                raise StopIteration
            if isinstance(step, Raise):
                raise step.error
            progress = self._timeout.check(progress)
            self.do(step, self.cluster.now + progress.remaining_s())

    def do(self, step: Any, ends_at: float) -> None:
        """Do one step, and report by its event."""
        if isinstance(step, Send):
            self._send(step)
        elif isinstance(step, WaitUntil):
            self._wait(min(step.time, ends_at))
        elif isinstance(step, Leave):
            self.left.append(step.broker_id)
            self.pending.pop(step.broker_id, None)
            self.connecting.pop(step.broker_id, None)
        else:
            self.cluster.lookups.append(step)
            self.cluster.now += _LATENCY_S
            try:
                self._look_up(step)
            except ConnectorError as error:
                self.session.lookups.on_lookup_failure(step, error, self.cluster.now)

    def _send(self, step: Send) -> None:
        if self.connecting.get(step.broker_id, 0.0) > 0.0:
            self.session.on_connecting(step.broker_id, self.cluster.now)
            self.pending[step.broker_id] = (self.cluster.now + self.connecting.pop(step.broker_id), None)
            return
        self.session.on_sent(step.broker_id, f"127.0.0.1:{step.broker_id}", self.cluster.now)
        found = self.cluster.respond(step, self.options, self.fetch)
        timeout_s = (self.options.request_timeout_ms + self.fetch.max_wait_ms) / 1000
        arrives_at = self.cluster.now + (timeout_s if isinstance(found, Silence) else self.latency_s())
        self.pending[step.broker_id] = (arrives_at, found)

    def _wait(self, until: float) -> None:
        self.waits.append(until - self.cluster.now)
        first = min(self.pending, key=lambda broker_id: self.pending[broker_id][0], default=None)
        if first is None or self.pending[first][0] > until:
            assert until < float("inf"), "nothing is waited for"
            self.cluster.now = max(self.cluster.now, until)
            return
        arrives_at, found = self.pending.pop(first)
        self.cluster.now = max(self.cluster.now, arrives_at)
        if found is None:
            self.session.on_connected(first)
        elif isinstance(found, (Close, Silence)):
            self.session.on_failure(first, closed(first), cut_off=self.cuts_off)
        else:
            self.session.on_response(first, found, self.cluster.now)

    def _look_up(self, step: Lookup) -> None:
        if isinstance(step, FindLeaders):
            self.cluster.find_leaders(step.topic_partitions)
            self.session.lookups.on_leaders(step, self.cluster.now)
        elif isinstance(step, FetchEpochEnds):
            self.session.lookups.on_epoch_ends(step, self.cluster.epochs(step))
        elif isinstance(step, FetchLogEnds):
            self.session.lookups.on_log_ends(step, self.cluster.log_ends(step.topic_partitions), self.cluster.now)
        else:
            self.cluster.metadata(step.topics)
            self.session.lookups.on_metadata()

    def confirm(self, topic_partition: TopicPartition, next_offset: int) -> None:
        """As `Fetcher`."""
        error = self.session.ranges.confirm(topic_partition, next_offset)
        if error is not None:
            raise error

    def values(self) -> dict[TopicPartition, list[int]]:
        """Read and decode to the end, as a source does; values are the offsets."""
        ends = {cursor.topic_partition: cursor.offset_range.end_offset for cursor in self.session.ranges.active}
        found: dict[TopicPartition, list[int]] = defaultdict(list)
        for topic_partition, fetched in self:
            position = fetched.start_offset
            for decoded in iter_decode(
                fetched.records,
                start_offset=position,
                end_offset=min(ends[topic_partition], (1 << 63) - 1),
                columns=["value"],
                aborted_transactions=fetched.aborted_transactions,
            ):
                found[topic_partition] += [int(value or b"") for value in decoded.batch.column("value").to_pylist()]
                position = decoded.next_offset
            self.confirm(topic_partition, position)
        return dict(found)


T0 = TopicPartition("t", 0)


class Reading:
    """Reads of topic t, which has one partition; the options are those of fetches."""

    def __init__(self, cluster: SimulatedCluster, **fetch: Any) -> None:
        self.cluster = cluster
        self.fetch = fetch
        self.connection: dict[str, Any] = {}

    def of(self, start: int, end: int) -> SimulatedRead:
        return SimulatedRead(self.cluster, [OffsetRange(T0, start, end)], connection=self.connection, **self.fetch)

    def values(self, start: int, end: int) -> list[int]:
        """Read and decode a range as a source does; values are the offsets."""
        return self.of(start, end).values()[T0]
