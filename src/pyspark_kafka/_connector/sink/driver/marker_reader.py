"""Reads the newest commit marker of a sink from the commit topic, backwards from its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._base.model import IsolationLevel, OffsetRange
from pyspark_kafka._base.offsets import Earliest, Latest
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.retry import attempts
from pyspark_kafka._client.options import FetchOptions
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka.errors import DeadlineError
from pyspark_kafka.records import iter_decode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._connector.sink.driver.commit_topic import CommitTopic

# A micro-batch leaves two offsets, or four if its tasks publish: the decision, the note that it is carried out, and
# their control records. A decision may have as many bytes as a record can: few are read in vain.
_FIRST_WINDOW = 8
_FETCH = FetchOptions(isolation_level=IsolationLevel.READ_COMMITTED, max_bytes_per_fetch=1 << 20, max_wait_ms=50)


class MarkerReader:
    """The newest commit marker of each sink.

    Runs on: driver; methods block. Does not pickle.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        topic: the commit topic.
        patience_ms: how long a read waits for the transaction of another sink in the same partition.
    """

    def __init__(self, client: KafkaClient, topic: CommitTopic, patience_ms: int) -> None:
        self._client = client
        self._topic = topic
        self._patience_ms = patience_ms
        # The offset up to which each partition was searched by the last `read`.
        self._read_to: dict[TopicPartition, int] = {}

    def read(self, key: str, query_id: str | None = None) -> CommitMarker | None:
        """Return the newest committed marker of a key; None if it has none.

        Only after the sink's transactional id was fenced: before that a commit could still be in flight.

        Older markers stay in their partitions when the topic gets more of them. So if there is no marker, or one that
        was written with another number of partitions, all partitions are searched.

        Args:
            key: mostly the sink's id.
            query_id: whose marker is meant, if others write under the same key.

        Raises:
            DeadlineError: a transaction of another sink in the same partition does not end.
            CorruptRecordsError: a record of this key is not a commit marker.
            CheckpointError: a marker is of a newer version.
        """
        expected = self._topic.partition_of(key)
        found = self._read([expected], key, query_id)
        if not found or found[0].partitions != self._topic.partition_count:
            others = self._topic.partitions()
            found += self._read([other for other in others if other != expected], key, query_id)
        return _newest_of(found)

    def read_since(self, key: str, query_id: str | None, offset: int) -> CommitMarker | None:
        """Return the newest marker of a key between the end that `read` saw and a record of this sink's own.

        One broker has returned the number of partitions and the log end. If it was cut off from the others, it does
        not know what was written since; the response to a write comes from all of them.

        Args:
            key: as for `read`, after which it is called.
            query_id: as for `read`.
            offset: of the record that this sink has written since.
        """
        topic_partition = self._topic.partition_of(key)
        seen = self._read_to.get(topic_partition, 0)
        if offset == seen:
            return None
        # Less than was seen: that was another log than this one.
        first = seen if offset > seen else list_offsets(self._client, {topic_partition: Earliest()})[topic_partition]
        self._await_stable(topic_partition, offset)
        return self._search(topic_partition, min(first, offset), offset, [key], query_id).get(key)

    def read_newest(self, sink_ids: Iterable[str]) -> dict[str, CommitMarker]:
        """Return the newest marker of each sink below the last stable offset; wait for nothing, fence nobody.

        For display: a commit may be in flight behind it. A sink without a marker is left out.

        Raises:
            BrokerError: the topic does not exist (condition UNKNOWN_TOPIC).
            CorruptRecordsError: a record of one of these keys is not a commit marker.
            CheckpointError: a marker is of a newer version.
        """
        wanted = list(sink_ids)
        if not wanted:
            return {}
        by_partition: dict[TopicPartition, list[str]] = {}
        for sink_id in wanted:
            by_partition.setdefault(self._topic.partition_of(sink_id), []).append(sink_id)
        found = self._read_newest(by_partition)
        moved = [
            sink_id
            for sink_id in wanted
            if not found.get(sink_id) or found[sink_id][0].partitions != self._topic.partition_count
        ]
        if moved:
            everywhere = self._topic.partitions()
            for sink_id, markers in self._read_newest(dict.fromkeys(everywhere, moved)).items():
                found[sink_id] = [*found.get(sink_id, []), *markers]
        newest = {sink_id: _newest_of(markers) for sink_id, markers in found.items()}
        return {sink_id: marker for sink_id, marker in newest.items() if marker is not None}

    def _read(self, partitions: list[TopicPartition], key: str, query_id: str | None) -> list[CommitMarker]:
        """Return the newest committed marker of a key in each partition, if there is one."""
        if not partitions:
            return []
        firsts = list_offsets(self._client, dict.fromkeys(partitions, Earliest()))
        ends = list_offsets(self._client, dict.fromkeys(partitions, Latest()))
        found = []
        for topic_partition in partitions:
            self._read_to[topic_partition] = ends[topic_partition]
            if ends[topic_partition] == firsts[topic_partition]:
                continue
            self._await_stable(topic_partition, ends[topic_partition])
            first, end = firsts[topic_partition], ends[topic_partition]
            marker = self._search(topic_partition, first, end, [key], query_id).get(key)
            if marker is not None:
                found.append(marker)
        return found

    def _read_newest(self, wanted: dict[TopicPartition, list[str]]) -> dict[str, list[CommitMarker]]:
        firsts = list_offsets(self._client, dict.fromkeys(wanted, Earliest()))
        ends = list_offsets(self._client, dict.fromkeys(wanted, Latest()), IsolationLevel.READ_COMMITTED)
        found: dict[str, list[CommitMarker]] = {}
        for topic_partition, sink_ids in wanted.items():
            first, end = firsts[topic_partition], ends[topic_partition]
            for sink_id, marker in self._search(topic_partition, first, end, sink_ids).items():
                found.setdefault(sink_id, []).append(marker)
        return found

    def _search(
        self, topic_partition: TopicPartition, first: int, end: int, keys: Iterable[str], query_id: str | None = None
    ) -> dict[str, CommitMarker]:
        """Read backwards from the end, in ever larger steps, until each key's newest marker is found."""
        missing, found = set(keys), dict[str, CommitMarker]()
        window, stop = _FIRST_WINDOW, end
        while missing and stop > first:
            start = max(first, stop - window)
            found |= self._newest(OffsetRange(topic_partition, start, stop), missing, query_id)
            missing -= found.keys()
            stop, window = start, window * 8
        return found

    def _await_stable(self, topic_partition: TopicPartition, end: int) -> None:
        """Wait until every transaction below `end` is committed or aborted."""
        deadline = Deadline(self._patience_ms)
        for _ in attempts(self._client.backoff(), deadline=deadline):
            stable = self._last_stable_offset(topic_partition)
            if stable >= end:
                return
        raise DeadlineError(
            f"Reading commit markers of {topic_partition} up to {end} did not get beyond {stable} within "
            f"{self._patience_ms} ms: a transaction of another sink is open there. Nothing was written.",
            condition="COMMIT_TOPIC_HELD",
            hint="It ends after its own timeout at the latest; see `pyspark-kafka transactions list`.",
            parameters={"topic_partition": topic_partition, "last_stable_offset": stable, "end": end},
        )

    def _last_stable_offset(self, topic_partition: TopicPartition) -> int:
        found = list_offsets(self._client, {topic_partition: Latest()}, IsolationLevel.READ_COMMITTED)
        return found[topic_partition]

    def _newest(self, offset_range: OffsetRange, keys: Iterable[str], query_id: str | None) -> dict[str, CommitMarker]:
        names = {key.encode(): key for key in keys}
        newest: dict[str, tuple[bytes, str]] = {}
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
                        if query_id is None or CommitMarker.from_bytes(row["value"], at).query_id == query_id:
                            newest[names[row["key"]]] = row["value"], at
                    position = decoded.next_offset
                fetcher.confirm(topic_partition, position)
        # Only the last one of each key is parsed: a decision has a line for each task.
        return {key: CommitMarker.from_bytes(value, at) for key, (value, at) in newest.items()}


def _newest_of(found: list[CommitMarker]) -> CommitMarker | None:
    """Return the newest of markers from several partitions.

    Partitions are only ever added, so the marker that was written with more of them is newer. If that is not noted, the
    batch numbers of one query are compared, and otherwise the times of the drivers' clocks.
    """
    if not found:
        return None
    one_query = len({marker.query_id for marker in found}) == 1
    return max(
        found, key=lambda marker: (marker.partitions, marker.batch_id if one_query else 0, marker.committed_at_ms)
    )
