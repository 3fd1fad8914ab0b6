"""The topic that holds commit markers: made where it is missing, written in transactions, read from its end.

Layer: sink.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.client.admin.topics import NewTopic, create_topics, describe_topic_configs
from pyspark_kafka.client.cluster.errors import unknown_topic
from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.fetch.fetcher import Fetcher
from pyspark_kafka.client.lookups.offsets import list_offsets
from pyspark_kafka.errors import AccessError, BrokerError, ConnectorError, DeadlineError
from pyspark_kafka.model import IsolationLevel, OffsetRange, TopicPartition
from pyspark_kafka.offsets import Earliest, Latest
from pyspark_kafka.options import FetchOptions
from pyspark_kafka.records import encode, iter_decode, murmur2_partitions
from pyspark_kafka.sink.commit_marker import CommitMarker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient

logger = logging.getLogger(__name__)

# Several sinks share a topic; one that has a transaction open in a partition keeps the others from reading its end.
_PARTITIONS = 16
_CONFIGS = {
    "cleanup.policy": "compact",
    # Markers are small and few; cleaned soon, the log of a sink that never wrote is short to look through.
    "segment.ms": "3600000",
    "segment.bytes": str(8 << 20),
}
# As Kafka's own internal topics have; a cluster's default is 1 where nobody has set another.
_REPLICAS = 3
_FIRST_WINDOW = 256
_FETCH = FetchOptions(isolation_level=IsolationLevel.READ_COMMITTED, max_bytes_per_fetch=1 << 20, max_wait_ms=50)


class MarkerTopic:
    """The newest commit marker of each sink.

    Runs on: driver; methods block. Does not pickle.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        topic: its name.
        patience_ms: how long a transaction of another sink in the same partition is waited for.
    """

    def __init__(self, client: KafkaClient, topic: str, patience_ms: int) -> None:
        self._client = client
        self.topic = topic
        self._patience_ms = patience_ms
        # Asked for by `ensure`: a publisher needs it several times a batch.
        self._partition_count = 0
        # Up to where each partition was searched by the last `read`.
        self._read_to: dict[TopicPartition, int] = {}

    def ensure(self) -> None:
        """Make the topic if it is not there; learn how many partitions it has.

        It gets three replicas, as many brokers as there are in a smaller cluster, or what the brokers prescribe.

        Raises:
            AccessError: it is not there and the user may not make it, or may not see it.
            BrokerError: the brokers refused it.
            DeadlineError: it was made, and the brokers do not tell its partitions in time.
        """
        try:
            if self._learn():
                return
            self._create()
        except AccessError as refused:
            raise AccessError(
                f"The topic '{self.topic}' keeps the commit markers of exactly-once writes. It is not there and this "
                f"user may not create it, or this user may not describe it. Nothing was written. {refused.message}",
                code=refused.code,
                condition="COMMIT_TOPIC_UNUSABLE",
                hint=f"Create it (cleanup.policy=compact, {_PARTITIONS} partitions, {_REPLICAS} replicas), or grant "
                "CREATE on it; and grant READ and WRITE on it. Another name is set with option 'commitTopic'.",
                facts={"topic": self.topic},
            ) from refused
        except BrokerError as refused:
            # Another query was faster.
            if refused.condition != "TOPIC_ALREADY_EXISTS":
                raise
        # The broker that is asked next may not have heard of it yet.
        deadline, backoff = self._client.deadline(), self._client.backoff()
        while not self._learn():
            deadline.check(f"Waiting for the commit topic '{self.topic}' to be known")
            deadline.pause(backoff.next_s())

    def check_policy(self) -> None:
        """Warn where the topic, made by someone else, does not keep the newest marker of each sink for ever.

        Says nothing where this user may not see the topic's configuration.
        """
        try:
            configs = describe_topic_configs(self._client, self.topic)
        except ConnectorError as error:
            logger.debug("The configuration of commit topic '%s' cannot be seen: %s", self.topic, error)
            return
        policy = configs.get("cleanup.policy", "compact")
        if policy != "compact":
            logger.warning(
                "Commit topic '%s' has cleanup.policy=%s: markers are deleted after its retention, and a query "
                "that was paused for longer may write a micro-batch twice. Set cleanup.policy=compact on it.",
                self.topic, policy,
            )  # fmt: skip

    def _learn(self) -> bool:
        """Ask how many partitions there are; gives False where there is no such topic, or not yet."""
        known = self._client.fetch_metadata([self.topic]).topics.get(self.topic)
        if known is None:
            return False
        if known.error is not None:
            if known.error.condition == "UNKNOWN_TOPIC" or known.error.retriable:
                return False
            raise known.error
        self._partition_count = len(known.partitions)
        return True

    def _create(self) -> None:
        brokers = len(self._client.fetch_metadata([]).brokers)
        wanted = NewTopic(self.topic, _PARTITIONS, min(_REPLICAS, brokers), configs=_CONFIGS)
        try:
            create_topics(self._client, [wanted])
        except BrokerError as refused:
            if refused.condition not in ("INVALID_REPLICATION_FACTOR", "POLICY_VIOLATION"):
                raise
            # A broker that is down just now, or hosts that prescribe the number.
            create_topics(self._client, [replace(wanted, replication_factor=-1)])

    def partition_of(self, key: str) -> TopicPartition:
        """Give where markers of a key are written; mostly that is a sink's id."""
        if not self._partition_count and not self._learn():
            raise unknown_topic(self.topic)
        (number,) = murmur2_partitions(pa.array([key.encode()]), self._partition_count).to_pylist()
        return TopicPartition(self.topic, number)

    def encode(self, key: str, marker: CommitMarker) -> bytes:
        """Give the record batch of one marker; of each key, compaction keeps the newest."""
        value = replace(marker, partitions=self._partition_count).to_bytes()
        return encode(pa.RecordBatch.from_pydict({"key": [key.encode()], "value": [value]}))

    def read(self, key: str, query_id: str | None = None) -> CommitMarker | None:
        """Give the newest committed marker of a key; None if it has none.

        Only after the sink's transactional id was fenced: before that a commit could still be on its way.

        A topic that has got more partitions keeps older markers where they are. So one that was not written with the
        present number of partitions, and none at all, is looked for in all partitions.

        Args:
            key: mostly the sink's id.
            query_id: where others write under the same key: whose marker is meant.

        Raises:
            DeadlineError: a transaction of another sink in the same partition does not end.
            CorruptRecordsError: a record of this key is no marker.
            CheckpointError: a marker is of a newer version.
        """
        expected = self.partition_of(key)
        found = self._read([expected], key, query_id)
        if not found or found[0].partitions != self._partition_count:
            others = [TopicPartition(self.topic, number) for number in range(self._partition_count)]
            found += self._read([other for other in others if other != expected], key, query_id)
        return _newest_of(found)

    def read_since(self, key: str, query_id: str | None, offset: int) -> CommitMarker | None:
        """Give the newest marker of a key that lies between what `read` saw and a record of this sink's own.

        The number of partitions and the end of the log are what one broker said. One that was cut off from the others
        does not know of what was written since; the answer to a write comes from all of them.

        Args:
            key: as for `read`, after which it is called.
            query_id: as for `read`.
            offset: where the brokers have put what was written since.
        """
        where = self.partition_of(key)
        seen = self._read_to.get(where, 0)
        if offset == seen:
            return None
        # Less than was seen: that was another log than this one.
        first = seen if offset > seen else list_offsets(self._client, {where: Earliest()})[where]
        self._await_stable(where, offset)
        return self._search(where, min(first, offset), offset, [key], query_id).get(key)

    def _read(self, partitions: list[TopicPartition], key: str, query_id: str | None) -> list[CommitMarker]:
        """Give the newest committed marker of a key in each of the partitions that has one."""
        if not partitions:
            return []
        firsts = list_offsets(self._client, dict.fromkeys(partitions, Earliest()))
        ends = list_offsets(self._client, dict.fromkeys(partitions, Latest()))
        found = []
        for where in partitions:
            self._read_to[where] = ends[where]
            if ends[where] == firsts[where]:
                continue
            self._await_stable(where, ends[where])
            marker = self._search(where, firsts[where], ends[where], [key], query_id).get(key)
            if marker is not None:
                found.append(marker)
        return found

    def glance(self, sink_ids: Iterable[str]) -> dict[str, CommitMarker]:
        """Give the newest marker of each sink below what is decided now; waits for nothing, fences nobody.

        For people who look on: a commit may be on its way behind it. A sink without a marker is left out.

        Raises:
            BrokerError: the topic does not exist (condition UNKNOWN_TOPIC).
            CorruptRecordsError: a record of one of these keys is no marker.
            CheckpointError: a marker is of a newer version.
        """
        wanted = list(sink_ids)
        if not wanted:
            return {}
        by_partition: dict[TopicPartition, list[str]] = {}
        for sink_id in wanted:
            by_partition.setdefault(self.partition_of(sink_id), []).append(sink_id)
        found = self._glance(by_partition)
        moved = [
            sink_id
            for sink_id in wanted
            if not found.get(sink_id) or found[sink_id][0].partitions != self._partition_count
        ]
        if moved:
            everywhere = [TopicPartition(self.topic, number) for number in range(self._partition_count)]
            for sink_id, markers in self._glance(dict.fromkeys(everywhere, moved)).items():
                found[sink_id] = [*found.get(sink_id, []), *markers]
        newest = {sink_id: _newest_of(markers) for sink_id, markers in found.items()}
        return {sink_id: marker for sink_id, marker in newest.items() if marker is not None}

    def _glance(self, wanted: dict[TopicPartition, list[str]]) -> dict[str, list[CommitMarker]]:
        firsts = list_offsets(self._client, dict.fromkeys(wanted, Earliest()))
        ends = list_offsets(self._client, dict.fromkeys(wanted, Latest()), IsolationLevel.READ_COMMITTED)
        found: dict[str, list[CommitMarker]] = {}
        for where, sink_ids in wanted.items():
            for sink_id, marker in self._search(where, firsts[where], ends[where], sink_ids).items():
                found.setdefault(sink_id, []).append(marker)
        return found

    def _search(
        self, where: TopicPartition, first: int, end: int, keys: Iterable[str], query_id: str | None = None
    ) -> dict[str, CommitMarker]:
        """Look from the end backwards, in ever larger steps, until each key's newest marker is found."""
        missing, found = set(keys), dict[str, CommitMarker]()
        window, stop = _FIRST_WINDOW, end
        while missing and stop > first:
            start = max(first, stop - window)
            found |= self._newest(OffsetRange(where, start, stop), missing, query_id)
            missing -= found.keys()
            stop, window = start, window * 8
        return found

    def _await_stable(self, where: TopicPartition, end: int) -> None:
        """Wait until everything below `end` is decided."""
        deadline = Deadline(self._patience_ms)
        backoff = self._client.backoff()
        while (stable := list_offsets(self._client, {where: Latest()}, IsolationLevel.READ_COMMITTED)[where]) < end:
            if deadline.expired:
                raise DeadlineError(
                    f"Reading commit markers of {where} up to {end} did not get beyond {stable} within "
                    f"{self._patience_ms} ms: a transaction of another sink is open there. Nothing was written.",
                    condition="COMMIT_TOPIC_HELD",
                    hint="It ends after its own timeout at the latest; see `pyspark-kafka transactions list`.",
                    facts={"topic_partition": where, "last_stable_offset": stable, "end": end},
                )
            time.sleep(min(backoff.next_s(), deadline.remaining_s()))

    def _newest(self, offset_range: OffsetRange, keys: Iterable[str], query_id: str | None) -> dict[str, CommitMarker]:
        names = {key.encode(): key for key in keys}
        newest: dict[str, CommitMarker] = {}
        with Fetcher(self._client, [offset_range], _FETCH) as fetcher:
            for topic_partition, fetched in fetcher:
                position = fetched.start_offset
                for decoded in iter_decode(
                    fetched.records,
                    start_offset=fetched.start_offset,
                    end_offset=offset_range.end_offset,
                    isolation_level=_FETCH.isolation_level.value,
                    aborted_transactions=fetched.aborted_transactions,
                    columns=["key", "value", "offset"],
                ):
                    for row in decoded.batch.to_pylist():
                        if row["key"] not in names or row["value"] is None:
                            continue
                        at = f"{offset_range.topic_partition}@{row['offset']}"
                        marker = CommitMarker.from_bytes(row["value"], at)
                        if query_id in (None, marker.query_id):
                            newest[names[row["key"]]] = marker
                    position = decoded.next_offset
                fetcher.confirm(topic_partition, position)
        return newest


def _newest_of(found: list[CommitMarker]) -> CommitMarker | None:
    """Give the newest of markers from several partitions.

    Partitions are only ever added, so the one that was written among more of them is the newer one. Where that is not
    noted, batches of one query tell, and otherwise the drivers' clocks.
    """
    if not found:
        return None
    one_query = len({marker.query_id for marker in found}) == 1
    return max(
        found, key=lambda marker: (marker.partitions, marker.batch_id if one_query else 0, marker.committed_at_ms)
    )
