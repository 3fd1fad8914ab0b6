"""Driver-side look-ups: which partitions a subscription means, and where their logs begin and end."""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.client.cluster.pool import borrow_client
from pyspark_kafka.client.lookups.missing_topics import explain_missing_topic
from pyspark_kafka.client.outage import Patience
from pyspark_kafka.client.retry import Backoff, attempts
from pyspark_kafka.client.waiting import contact_of
from pyspark_kafka.errors import AccessError, ConnectorError, TransportError
from pyspark_kafka.offsets import AtTimestamp, Earliest, Latest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.cluster.metadata import ClusterMetadata
    from pyspark_kafka.client.lookups.offsets import OffsetSpec
    from pyspark_kafka.model import IsolationLevel, TopicPartition
    from pyspark_kafka.options import BatchReadOptions, ConnectionOptions, StreamReadOptions, Subscription

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LISTED = 20
# How often a topic that a subscription names may be unknown before that is believed: of one that was never seen, and of
# one that the query has read. Brokers that start know nothing yet, and one that is made again is away for a moment.
_UNKNOWN_TOPIC_LOOKS = 4
_KNOWN_TOPIC_LOOKS = 12


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

    Runs on: driver; every method blocks, at most the connection's `api_timeout_ms` an attempt. Once a look-up has
    succeeded, an outage of the brokers is waited out for `outage_timeout_ms`.

    Args:
        connection: how to reach the brokers.
        subscription: what the user asked for.
        isolation_level: decides what "latest" means: the high watermark, or the last stable offset.
        attempts: how often a look-up is tried in all (`fetchOffset.numRetries`, which counts attempts).
        retry_interval_ms: the pause between attempts (`fetchOffset.retryIntervalMs`).
        outage_timeout_ms: how long one outage is waited out (`outageTimeout`); 0: not at all, for batch reads.

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
        outage_timeout_ms: int = 0,
    ) -> None:
        self._connection = connection
        self._subscription = subscription
        self._isolation_level = isolation_level
        self._attempts = attempts
        self._retry_interval_ms = retry_interval_ms
        self._may_be_missing: set[str] = set()
        self._told_missing: list[TopicPartition] = []
        self._patience = Patience(outage_timeout_ms, contact_of(connection.bootstrap_servers))

    @classmethod
    def from_options(cls, options: BatchReadOptions | StreamReadOptions) -> KafkaOffsetReader:
        """Build the reader that a query's options ask for."""
        return cls(
            options.connection,
            options.subscription,
            options.fetch.isolation_level,
            attempts=options.fetch_offset_attempts,
            retry_interval_ms=options.fetch_offset_retry_interval_ms,
            outage_timeout_ms=options.outage_timeout_ms,
        )

    def leave_out_missing(self, topic: str) -> None:
        """Take it for no error, until it comes back, that a topic which the subscription names does not exist."""
        self._may_be_missing.add(topic)

    def assignment(self, read_topics: Collection[str] = ()) -> Assignment:
        """Give what the subscription means now.

        Topics that are internal to the brokers are left out. With `assign`, listed partitions that do not exist are
        left out too; with `subscribePattern`, no match is no error.

        Args:
            read_topics: topics that the query has read: where one of them is missing, it is looked for longer.

        Raises:
            BrokerError: a topic named by `subscribe` or `assign` does not exist or may not be seen.
        """
        return self._retrying("listing partitions", self._assign, read_topics)

    def topic_ids_elsewhere(self, topics: Collection[str]) -> dict[str, str]:
        """Give the ids of topics as another broker tells them than the one that was asked last; unknown ones have none.

        For ids that contradict what the query has read: a broker may lag behind the creation of a topic.
        """

        def look_up(client: KafkaClient) -> dict[str, str]:
            client.avoid_last_asked()
            found = client.fetch_metadata(topics).topics
            return {name: str(topic.topic_id) for name, topic in found.items() if topic.topic_id is not None}

        time.sleep(self._connection.retry_backoff_ms / 1000)
        return self._retrying("looking up topic ids", look_up)

    def assigned_partitions(self) -> tuple[TopicPartition, ...]:
        """Give the partitions that the subscription means now, sorted; see `assignment`."""
        return self.assignment().partitions

    def earliest_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the first offset that each partition still holds."""
        wanted = tuple(partitions)
        if not wanted:
            return {}
        return self._retrying("listing earliest offsets", lambda client: self._list(client, wanted, Earliest()))

    def earliest_offsets_of_new(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the first offset of partitions that a query has just met; those that are gone again are left out."""
        new = tuple(partitions)
        if not new:
            return {}

        def look_up(client: KafkaClient) -> dict[TopicPartition, int]:
            # Listed first: the offset of a partition that is gone cannot be asked for, and what its loss means is not
            # for a look-up to say.
            assigned = frozenset(self._assign(client).partitions)
            return self._list(client, [where for where in new if where in assigned], Earliest())

        return self._retrying("listing earliest offsets of new partitions", look_up)

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Give the first offset whose record is of the partition's timestamp (ms since 1970-01-01 UTC) or later.

        Partitions without such a record are left out.
        """
        if not timestamps:
            return {}
        asked = {topic_partition: AtTimestamp(timestamp_ms) for topic_partition, timestamp_ms in timestamps.items()}
        return self._retrying(
            "listing offsets by timestamp", lambda client: _list_offsets(client, asked, self._isolation_level)
        )

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
        wanted = tuple(partitions)
        if not wanted:
            return {}
        return self._settled(lambda client: (None, self._list(client, wanted, Latest())), known or {})[1]

    def assigned_latest_offsets(
        self, known: Mapping[TopicPartition, int] | None = None
    ) -> tuple[Assignment, dict[TopicPartition, int]]:
        """Give what the subscription means now and the end of each of its partitions; see `latest_offsets`.

        Partitions are listed anew for each attempt: a topic that goes away after they were listed has no offsets.

        Raises:
            BrokerError: as `assignment`.
        """

        def look_up(client: KafkaClient) -> tuple[Assignment, dict[TopicPartition, int]]:
            assignment = self._assign(client)
            return assignment, self._list(client, assignment.partitions, Latest())

        return self._settled(look_up, known or {})

    def _settled(
        self,
        look_up: Callable[[KafkaClient], tuple[T, dict[TopicPartition, int]]],
        known: Mapping[TopicPartition, int],
    ) -> tuple[T, dict[TopicPartition, int]]:
        """Look up ends until none is below a known one, as often as look-ups are tried."""
        topics = {topic_partition.topic for topic_partition in known}
        for attempt in self._attempt_numbers():
            found = self._retrying("listing latest offsets", look_up, topics)
            latest = found[1]
            back = sorted(where for where, end in latest.items() if end < known.get(where, end))
            if not back:
                break
            logger.warning(
                "Latest offsets are lower than known ones at attempt %d of %d: %s",
                attempt,
                self._attempts,
                ", ".join(f"{where} ends at {latest[where]}, known is {known[where]}" for where in back[:_LISTED]),
            )
        return found

    def log_bytes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Give how many bytes each partition's log takes; those that their leaders say nothing of are left out.

        Raises:
            AccessError: the user may not describe the cluster.
        """
        asked = tuple(partitions)
        if not asked:
            return {}
        # Few queries ask for it, and with it comes what is only there to administer clusters.
        from pyspark_kafka.client.lookups.log_sizes import fetch_log_sizes  # noqa: PLC0415

        return self._retrying("looking up the sizes of logs", lambda client: fetch_log_sizes(client, asked))

    def _list(
        self, client: KafkaClient, partitions: Iterable[TopicPartition], spec: OffsetSpec
    ) -> dict[TopicPartition, int]:
        asked = dict.fromkeys(partitions, spec)
        return _list_offsets(client, asked, self._isolation_level) if asked else {}

    def _assign(self, client: KafkaClient) -> Assignment:
        found = self._find(client)
        self._may_be_missing.difference_update(topic_partition.topic for topic_partition in found.partitions)
        return found

    def _find(self, client: KafkaClient) -> Assignment:
        kind = self._subscription.kind
        if kind == "subscribePattern":
            # Searched, not matched whole: "orders" takes "orders-eu" too.
            pattern = re.compile(self._subscription.pattern or "")
            return _assignment_of(client.fetch_metadata(None), lambda topic: pattern.search(topic) is not None)
        if kind == "subscribe":
            return _assignment_of(
                client.fetch_metadata(self._subscription.topics), lambda _: True, self._may_be_missing
            )
        listed = frozenset(self._subscription.topic_partitions)
        topics = sorted({topic_partition.topic for topic_partition in listed})
        existing = _assignment_of(client.fetch_metadata(topics), lambda _: True, self._may_be_missing)
        missing = sorted(listed.difference(existing.partitions))
        # Said once, not at each trigger.
        told, self._told_missing = self._told_missing, missing
        if missing and missing != told:
            logger.warning(
                "Option 'assign' lists partitions that do not exist: %s%s. They are left out.",
                ", ".join(map(str, missing[:_LISTED])),
                f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else "",
            )
        return replace(
            existing,
            partitions=tuple(topic_partition for topic_partition in existing.partitions if topic_partition in listed),
        )

    def _retrying(self, step: str, call: Callable[[KafkaClient], T], read_topics: Collection[str] = ()) -> T:
        """Make a look-up, as often as look-ups are tried, and through an outage once one has succeeded.

        A listing of partitions is part of what is tried again.

        Args:
            step: what is looked up, for the log.
            call: the look-up.
            read_topics: topics that the query has read: they were there.
        """
        name = f"{step} of {self._subscription.describe()}"
        return self._patience.ride_out(name, lambda: self._attempting(step, call, read_topics))

    def _attempting(self, step: str, call: Callable[[KafkaClient], T], read_topics: Collection[str]) -> T:
        for attempt in self._attempt_numbers():
            try:
                return self._past_unknown_topics(call, read_topics)
            except ConnectorError as error:
                # The client has already retried what passes without help, up to its deadline; waiting as long again
                # would only hide the error from the user.
                if (
                    isinstance(error, (TimeoutError, TransportError, AccessError))
                    or not error.retriable
                    or attempt >= self._attempts
                ):
                    raise
                logger.warning("%s failed at attempt %d of %d: %s", step, attempt, self._attempts, error)
        raise RuntimeError("the last attempt returns or raises")

    def _past_unknown_topics(self, call: Callable[[KafkaClient], T], read_topics: Collection[str]) -> T:
        """Make a look-up; a topic that the brokers do not know is looked up several times before that is believed."""
        backoff = Backoff(self._connection.retry_backoff_ms, self._connection.retry_backoff_max_ms)
        for look in attempts(backoff):
            try:
                with borrow_client(self._connection) as client:
                    return call(client)
            except ConnectorError as error:
                if error.condition != "UNKNOWN_TOPIC":
                    raise
                known = error.facts.get("topic") in read_topics
                if look < (_KNOWN_TOPIC_LOOKS if known else _UNKNOWN_TOPIC_LOOKS):
                    continue
                # Of one that was read the spelling is right.
                if known or "partition" in error.facts:
                    raise
                with borrow_client(self._connection) as client:
                    missing = explain_missing_topic(client, error.facts["topic"])
                raise missing from None
        raise RuntimeError("the last look returns or raises")

    def _attempt_numbers(self) -> Iterator[int]:
        return attempts(Backoff.constant(self._retry_interval_ms), most=self._attempts)


def _assignment_of(
    metadata: ClusterMetadata, wanted: Callable[[str], bool], may_be_missing: Collection[str] = ()
) -> Assignment:
    found: list[TopicPartition] = []
    topic_ids: dict[str, str] = {}
    for name, topic in metadata.topics.items():
        if topic.is_internal or not wanted(name):
            continue
        if topic.error is not None:
            if topic.error.condition == "UNKNOWN_TOPIC" and name in may_be_missing:
                continue
            raise topic.error
        found.extend(partition.topic_partition for partition in topic.partitions)
        if topic.topic_id is not None:
            topic_ids[name] = str(topic.topic_id)
    return Assignment(tuple(sorted(found)), topic_ids)


def _list_offsets(
    client: KafkaClient, specs: Mapping[TopicPartition, OffsetSpec], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    from pyspark_kafka.client.lookups.offsets import list_offsets  # noqa: PLC0415 - loads the protocol's classes

    return list_offsets(client, specs, isolation_level)
