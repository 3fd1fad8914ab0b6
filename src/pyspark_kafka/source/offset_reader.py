"""Driver-side look-ups: which partitions a subscription means, and where their logs begin and end."""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.client.log_sizes import log_bytes
from pyspark_kafka.client.pool import borrow_client
from pyspark_kafka.errors import AccessError, ConnectorError, TransportError
from pyspark_kafka.offsets import AtTimestamp, Earliest, Latest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark_kafka.client.cluster import KafkaClient
    from pyspark_kafka.client.metadata import ClusterMetadata
    from pyspark_kafka.client.offset_lookup import OffsetSpec
    from pyspark_kafka.model import IsolationLevel, TopicPartition
    from pyspark_kafka.options import BatchReadOptions, ConnectionOptions, StreamReadOptions, Subscription

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LISTED = 20


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a subscription means at one moment.

    Attributes:
        partitions: sorted.
        topic_ids: the ids of their topics, by name; brokers before Kafka 2.8 do not tell them.
    """

    partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, str]


class KafkaOffsetReader:
    """Resolves a subscription to partitions and lists their offsets.

    Runs on: driver; every method blocks, at most the connection's `api_timeout_ms` an attempt.

    Args:
        connection: how to reach the brokers.
        subscription: what the user asked for.
        isolation_level: decides what "latest" means: the high watermark, or the last stable offset.
        attempts: how often a look-up is tried in all (`fetchOffset.numRetries`, which counts attempts).
        retry_interval_ms: the pause between attempts (`fetchOffset.retryIntervalMs`).

    Source: Spark `KafkaOffsetReaderAdmin`, `ConsumerStrategy`.
    """

    def __init__(
        self,
        connection: ConnectionOptions,
        subscription: Subscription,
        isolation_level: IsolationLevel,
        *,
        attempts: int,
        retry_interval_ms: int,
    ) -> None:
        self._connection = connection
        self._subscription = subscription
        self._isolation_level = isolation_level
        self._attempts = attempts
        self._retry_interval_ms = retry_interval_ms

    @classmethod
    def from_options(cls, options: BatchReadOptions | StreamReadOptions) -> KafkaOffsetReader:
        """Build the reader that a query's options ask for."""
        return cls(
            options.connection,
            options.subscription,
            options.fetch.isolation_level,
            attempts=options.fetch_offset_attempts,
            retry_interval_ms=options.fetch_offset_retry_interval_ms,
        )

    def assignment(self) -> Assignment:
        """Give what the subscription means now.

        Topics that are internal to the brokers are left out. With `assign`, listed partitions that do not exist are
        left out too; with `subscribePattern`, no match is no error.

        Raises:
            BrokerError: a topic named by `subscribe` or `assign` does not exist or may not be seen.
        """
        return self._retrying("listing partitions", self._assign)

    def assigned_partitions(self) -> tuple[TopicPartition, ...]:
        """Give the partitions that the subscription means now, sorted; see `assignment`."""
        return self.assignment().partitions

    def earliest_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the first offset that each partition still holds."""
        asked = {topic_partition: Earliest() for topic_partition in partitions}
        return self._list("listing earliest offsets", asked)

    def earliest_offsets_of_new(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the first offset of partitions that a query has just met; those that are gone again are left out."""
        new = tuple(partitions)
        if not new:
            return {}
        # Looked up first: the offset of a partition that is gone cannot be asked for, and what its loss means is not
        # for a look-up to say.
        assigned = frozenset(self.assigned_partitions())
        return self.earliest_offsets(topic_partition for topic_partition in new if topic_partition in assigned)

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Give the first offset whose record is of the partition's timestamp (ms since 1970-01-01 UTC) or later.

        Partitions without such a record are left out.
        """
        asked = {topic_partition: AtTimestamp(timestamp_ms) for topic_partition, timestamp_ms in timestamps.items()}
        return self._list("listing offsets by timestamp", asked)

    def latest_offsets(
        self, partitions: Iterable[TopicPartition], known: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, int]:
        """Give the end of each partition: the high watermark, or the last stable offset with read_committed.

        Args:
            partitions: what to look up.
            known: offsets that the ends have reached before. Where one is lower now, the look-up is made again, as
                often as look-ups are tried: a broker that has just become the leader may lag. After that the lower
                end is given, for the topic may have been created anew.
        """
        asked = {topic_partition: Latest() for topic_partition in partitions}
        known = known or {}
        attempt = 1
        while True:
            latest = self._list("listing latest offsets", asked)
            back = sorted(where for where, end in latest.items() if end < known.get(where, end))
            if not back:
                return latest
            logger.warning(
                "Latest offsets are lower than known ones at attempt %d of %d: %s",
                attempt,
                self._attempts,
                ", ".join(f"{where} ends at {latest[where]}, known is {known[where]}" for where in back[:_LISTED]),
            )
            if attempt >= self._attempts:
                return latest
            attempt += 1
            time.sleep(self._retry_interval_ms / 1000)

    def log_bytes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Give how many bytes each partition's log takes; those that their leaders say nothing of are left out.

        Raises:
            AccessError: the user may not describe the cluster.
        """
        asked = tuple(partitions)
        if not asked:
            return {}
        return self._retrying("looking up the sizes of logs", lambda client: log_bytes(client, asked))

    def assigned_latest_offsets(self, known: Mapping[TopicPartition, int] | None = None) -> dict[TopicPartition, int]:
        """Give the end of every partition that the subscription means now; see `latest_offsets`."""
        return self.latest_offsets(self.assigned_partitions(), known)

    def _list(self, step: str, asked: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        if not asked:
            return {}
        return self._retrying(step, lambda client: client.list_offsets(asked, self._isolation_level))

    def _assign(self, client: KafkaClient) -> Assignment:
        kind = self._subscription.kind
        if kind == "subscribePattern":
            # Searched, not matched whole: "orders" takes "orders-eu" too.
            pattern = re.compile(self._subscription.pattern or "")
            return _assignment_of(client.metadata(None), lambda topic: pattern.search(topic) is not None)
        if kind == "subscribe":
            return _assignment_of(client.metadata(self._subscription.topics), lambda _: True)
        listed = frozenset(self._subscription.topic_partitions)
        existing = _assignment_of(client.metadata(sorted({tp.topic for tp in listed})), lambda _: True)
        missing = sorted(listed.difference(existing.partitions))
        if missing:
            logger.warning("Option 'assign' lists partitions that do not exist: %s. They are left out.", missing)
        return replace(
            existing,
            partitions=tuple(topic_partition for topic_partition in existing.partitions if topic_partition in listed),
        )

    def _retrying(self, step: str, call: Callable[[KafkaClient], T]) -> T:
        attempt = 1
        while True:
            try:
                with borrow_client(self._connection) as client:
                    return call(client)
            except ConnectorError as error:
                # The client has already retried what passes by itself, up to its deadline; waiting as long again
                # would only hide the error from the user.
                if (
                    isinstance(error, (TimeoutError, TransportError, AccessError))
                    or not error.retriable
                    or attempt >= self._attempts
                ):
                    raise
                logger.warning("%s failed at attempt %d of %d: %s", step, attempt, self._attempts, error)
                attempt += 1
                time.sleep(self._retry_interval_ms / 1000)


def _assignment_of(metadata: ClusterMetadata, wanted: Callable[[str], bool]) -> Assignment:
    found: list[TopicPartition] = []
    topic_ids: dict[str, str] = {}
    for name, topic in metadata.topics.items():
        if topic.is_internal or not wanted(name):
            continue
        if topic.error is not None:
            raise topic.error
        found.extend(partition.topic_partition for partition in topic.partitions)
        if topic.topic_id is not None:
            topic_ids[name] = str(topic.topic_id)
    return Assignment(tuple(sorted(found)), topic_ids)
