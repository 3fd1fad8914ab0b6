"""The topic that holds commit markers: made where it is missing, written in transactions, read from its end.

Layer: sink.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.client.admin import NewTopic, create_topics
from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.fetch import PartitionFetcher
from pyspark_kafka.errors import AccessError, BrokerError, DeadlineError
from pyspark_kafka.model import IsolationLevel, OffsetRange, TopicPartition
from pyspark_kafka.offsets import Earliest, Latest
from pyspark_kafka.options.connection import FetchOptions
from pyspark_kafka.records import encode, iter_decode, murmur2_partitions
from pyspark_kafka.sink.commit_marker import CommitMarker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.client.cluster import KafkaClient

# Several sinks share a topic; one that has a transaction open in a partition keeps the others from reading its end.
_PARTITIONS = 16
_CONFIGS = {
    "cleanup.policy": "compact",
    # Markers are small and few; cleaned soon, the log of a sink that never wrote is short to look through.
    "segment.ms": "3600000",
    "segment.bytes": str(8 << 20),
}
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
        # Partitions are asked for once: a publisher needs them several times a batch.
        self._partition_count = 0

    def ensure(self) -> None:
        """Make the topic if it is not there.

        Raises:
            AccessError: it is not there and the user may not make it, or may not see it.
            BrokerError: the brokers refused it.
        """
        known = self._client.metadata([self.topic]).topics.get(self.topic)
        error = None if known is None else known.error
        if known is not None and error is None:
            self._partition_count = len(known.partitions)
            return
        try:
            if error is not None and error.condition != "UNKNOWN_TOPIC":
                raise error
            create_topics(self._client, [NewTopic(self.topic, _PARTITIONS, configs=_CONFIGS)])
        except AccessError as refused:
            raise AccessError(
                f"The topic '{self.topic}' keeps the commit markers of exactly-once writes. It is not there and this "
                f"user may not create it, or this user may not describe it. Nothing was written. {refused.message}",
                code=refused.code,
                condition="COMMIT_TOPIC_UNUSABLE",
                hint=f"create it (cleanup.policy=compact, {_PARTITIONS} partitions), or grant CREATE on it; and grant "
                "READ and WRITE on it. Another name is set with option 'commitTopic'.",
                facts={"topic": self.topic},
            ) from refused
        except BrokerError as refused:
            # Another query was faster.
            if refused.condition != "TOPIC_ALREADY_EXISTS":
                raise

    def partition_of(self, key: str) -> TopicPartition:
        """Give where the markers of a key are; mostly that is a sink's id."""
        if not self._partition_count:
            found = self._client.metadata([self.topic]).topics[self.topic]
            if found.error is not None:
                raise found.error
            self._partition_count = len(found.partitions)
        (number,) = murmur2_partitions(pa.array([key.encode()]), self._partition_count).to_pylist()
        return TopicPartition(self.topic, number)

    def encode(self, key: str, marker: CommitMarker) -> bytes:
        """Give the record batch of one marker; of each key, compaction keeps the newest."""
        return encode(pa.RecordBatch.from_pydict({"key": [key.encode()], "value": [marker.to_bytes()]}))

    def read(self, key: str, query_id: str | None = None) -> CommitMarker | None:
        """Give the newest committed marker of a key; None if it has none.

        Only after the sink's transactional id was fenced: before that a commit could still be on its way.

        Args:
            key: mostly the sink's id.
            query_id: where others write under the same key: whose marker is meant.

        Raises:
            DeadlineError: a transaction of another sink in the same partition does not end.
            CorruptRecordsError: a record of this key is no marker.
            CheckpointError: a marker is of a newer version.
        """
        where = self.partition_of(key)
        first = self._client.list_offsets({where: Earliest()})[where]
        end = self._client.list_offsets({where: Latest()})[where]
        self._await_stable(where, end)
        return self._search(where, first, end, [key], query_id).get(key)

    def glance(self, sink_ids: Iterable[str]) -> dict[str, CommitMarker]:
        """Give the newest marker of each sink below what is decided now; waits for nothing, fences nobody.

        For people who look on: a commit may be on its way behind it. A sink without a marker is left out.

        Raises:
            BrokerError: the topic does not exist (condition UNKNOWN_TOPIC).
            CorruptRecordsError: a record of one of these keys is no marker.
            CheckpointError: a marker is of a newer version.
        """
        by_partition: dict[TopicPartition, list[str]] = {}
        for sink_id in sink_ids:
            by_partition.setdefault(self.partition_of(sink_id), []).append(sink_id)
        firsts = self._client.list_offsets(dict.fromkeys(by_partition, Earliest()))
        ends = self._client.list_offsets(dict.fromkeys(by_partition, Latest()), IsolationLevel.READ_COMMITTED)
        found: dict[str, CommitMarker] = {}
        for where, wanted in by_partition.items():
            found |= self._search(where, firsts[where], ends[where], wanted)
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
        while (stable := self._client.list_offsets({where: Latest()}, IsolationLevel.READ_COMMITTED)[where]) < end:
            if deadline.expired:
                raise DeadlineError(
                    f"Reading commit markers of {where} up to {end} did not get beyond {stable} within "
                    f"{self._patience_ms} ms: a transaction of another sink is open there. Nothing was written.",
                    condition="COMMIT_TOPIC_HELD",
                    hint="it ends after its own timeout at the latest; see `pyspark-kafka transactions list`.",
                    facts={"topic_partition": where, "last_stable_offset": stable, "end": end},
                )
            time.sleep(min(backoff.next_s(), deadline.remaining_s()))

    def _newest(self, offset_range: OffsetRange, keys: Iterable[str], query_id: str | None) -> dict[str, CommitMarker]:
        names = {key.encode(): key for key in keys}
        newest: dict[str, CommitMarker] = {}
        with PartitionFetcher(self._client, offset_range, _FETCH) as fetcher:
            for fetched in fetcher:
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
                fetcher.advance(position)
        return newest
