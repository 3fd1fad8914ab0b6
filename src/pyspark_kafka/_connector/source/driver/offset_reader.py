"""Look-ups of a subscription's first offsets and log ends, with retries."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka._base.interrupt import pause
from pyspark_kafka._base.model import IsolationLevel
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.queries.missing_topics import explain_missing_topic
from pyspark_kafka._client.client.waiting.outage import OutageRetry
from pyspark_kafka._client.client.waiting.retry import Backoff, attempts
from pyspark_kafka._client.client.waiting.stalls import contact_of
from pyspark_kafka._connector.source.driver.assignment import SubscriptionListing, find_topics
from pyspark_kafka.errors import AccessError, ConnectorError, TransportError, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.queries.offset_messages import OffsetSpec
    from pyspark_kafka._client.options import BatchReadOptions, ConnectionOptions, StreamReadOptions, Subscription
    from pyspark_kafka._connector.source.driver.assignment import Assignment

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

# How many responses must call a topic unknown before it counts as unknown: a topic that was never seen, and a topic
# that the query has read. Starting brokers have no topics yet, and during its recreation a topic is missing for a
# moment.
_UNKNOWN_TOPIC_LOOKS = 4
_KNOWN_TOPIC_LOOKS = 12


class KafkaOffsetReader:
    """A reader of a subscription's partitions and their offsets.

    Runs on: driver; every method blocks, for at most the connection's `api_timeout_ms` for each attempt. After a first
    successful look-up it waits for the end of an outage, for at most `outage_timeout_ms`.

    Args:
        connection: the options of the cluster.
        subscription: the topics or partitions to read.
        isolation_level: decides what "latest" means: the high watermark, or the last stable offset.
        attempts: the total number of attempts per look-up (`fetchOffset.numRetries`, which counts attempts).
        retry_interval_ms: the pause between attempts (`fetchOffset.retryIntervalMs`).
        outage_timeout_ms: the maximum wait for the end of one outage (`outageTimeout`); 0, no wait, for batch reads.

    Source: Spark `KafkaOffsetReaderAdmin`.
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
        self._listing = SubscriptionListing(subscription)
        self._isolation_level = isolation_level
        self._attempts = attempts
        self._retry_interval_ms = retry_interval_ms
        # The partitions whose visible ends were lower than known ones at the last look-up.
        self._hidden: frozenset[TopicPartition] = frozenset()
        # The known partitions missing in all attempts of the last look-up.
        self._missing: Collection[TopicPartition] = frozenset()
        self._outage_retry = OutageRetry(outage_timeout_ms, contact_of(connection.bootstrap_servers))

    @classmethod
    def from_options(cls, options: BatchReadOptions | StreamReadOptions) -> KafkaOffsetReader:
        """Build the reader of a query from its options."""
        return cls(
            options.connection,
            options.subscription,
            options.fetch.isolation_level,
            attempts=options.fetch_offset_attempts,
            retry_interval_ms=options.fetch_offset_retry_interval_ms,
            outage_timeout_ms=options.outage_timeout_ms,
        )

    def leave_out_missing(self, topic: str) -> None:
        """Leave out a subscribed topic that does not exist, until it exists again."""
        self._listing.leave_out_missing(topic)

    def fetch_assignment(self, read_topics: Collection[str] = (), *, elsewhere: bool = False) -> Assignment:
        """Return the currently subscribed partitions.

        A pattern leaves out topics that are internal to the brokers, and no match of it is not an error. With `assign`,
        listed partitions that do not exist are left out.

        Args:
            read_topics: topics that the query has read; a missing one is looked up several times.
            elsewhere: whether to query another broker than last time, because that broker may lag.

        Raises:
            BrokerError: a topic named by `subscribe` or `assign` does not exist, or this user may not describe it.
        """

        def look_up(client: KafkaClient) -> Assignment:
            if elsewhere:
                client.avoid_last_asked()
            return self._listing.find(client, read_topics=read_topics)

        return self._retrying("listing partitions", look_up, read_topics)

    def find_assignment_once(self, timeout_ms: float, topics: Collection[str] = ()) -> Assignment:
        """Return the currently subscribed partitions, within a short time and with one attempt.

        Args:
            timeout_ms: for the whole call.
            topics: if not empty, only these are listed; missing topics are left out.

        Raises:
            ConnectorError: the look-up failed, or took too long.
        """
        with borrow_client(self._connection) as client:
            deadline = client.deadline().within(timeout_ms)
            if topics:
                return find_topics(client, deadline, topics)
            return self._listing.find(client, deadline)

    def fetch_topic_ids_elsewhere(self, topics: Collection[str]) -> dict[str, str]:
        """Return the ids of topics from another broker than last time; unknown topics are left out.

        For ids that differ from the known ones: a broker may lag after the creation of a topic.
        """

        def look_up(client: KafkaClient) -> dict[str, str]:
            client.avoid_last_asked()
            found = client.fetch_metadata(topics).topics
            return {name: str(topic.topic_id) for name, topic in found.items() if topic.topic_id is not None}

        pause(self._connection.retry_backoff_ms / 1000)
        return self._retrying("looking up topic ids", look_up)

    def fetch_assigned_partitions(self) -> tuple[TopicPartition, ...]:
        """Return the currently subscribed partitions, sorted; see `fetch_assignment`."""
        return self.fetch_assignment().partitions

    def fetch_earliest_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        wanted = tuple(partitions)
        if not wanted:
            return {}
        return self._retrying("listing earliest offsets", lambda client: self._list(client, wanted, Earliest()))

    def fetch_earliest_offsets_of_new(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of partitions that are new to a query; deleted ones are left out."""
        new = tuple(partitions)
        if not new:
            return {}

        def look_up(client: KafkaClient) -> dict[TopicPartition, int]:
            # Listed first: a look-up of a deleted partition would fail, and the plan decides about its loss.
            assigned = frozenset(self._listing.find(client).partitions)
            return self._list(client, [tp for tp in new if tp in assigned], Earliest())

        return self._retrying("listing earliest offsets of new partitions", look_up)

    def fetch_offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the first offset whose record has the partition's timestamp (ms since 1970-01-01 UTC) or a later one.

        Partitions without such a record are left out.
        """
        if not timestamps:
            return {}
        asked = {topic_partition: AtTimestamp(timestamp_ms) for topic_partition, timestamp_ms in timestamps.items()}
        return self._retrying(
            "listing offsets by timestamp", lambda client: _list_offsets(client, asked, self._isolation_level)
        )

    def fetch_latest_offsets(
        self, partitions: Iterable[TopicPartition], known: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, int]:
        """Return the end of each partition: the high watermark, or the last stable offset with `read_committed`.

        Args:
            partitions: the partitions to look up.
            known: earlier ends. If an end is lower now, and the log of the leader does not reach the earlier end, it is
                looked up again in all attempts, because a new leader may lag. If it stays lower, the lower end is
                returned: the topic may have been recreated.
        """
        wanted = tuple(partitions)
        if not wanted:
            return {}
        return self._settled(
            lambda client: (None, self._past_hidden(client, self._list(client, wanted, Latest()), known or {})),
            known or {},
        )[1]

    def find_reached(self, positions: Mapping[TopicPartition, int]) -> frozenset[TopicPartition]:
        """Return the partitions whose logs reach a position, whether or not its records are visible yet.

        An open transaction hides records from `read_committed`; a new leader hides the last ones for a moment.
        """
        if not positions:
            return frozenset()
        return self._retrying("listing the ends of logs", lambda client: self._reached(client, positions))

    def fetch_assigned_latest_offsets(
        self, known: Mapping[TopicPartition, int] | None = None, topic_ids: Mapping[str, str] | None = None
    ) -> tuple[Assignment, dict[TopicPartition, int]]:
        """Return the currently subscribed partitions and the end of each; see `fetch_latest_offsets`.

        Each attempt lists the partitions again: a topic that is deleted after the listing has no offsets. A broker that
        lags may not list a partition that is known: it is listed again in all attempts, by other brokers.

        Args:
            known: earlier ends.
            topic_ids: the ids of their topics, as far as they are known.

        Raises:
            BrokerError: as `fetch_assignment`.
        """
        read = known or {}
        topics = {topic_partition.topic for topic_partition in read}
        lags = False

        def look_up(client: KafkaClient) -> tuple[Assignment, dict[TopicPartition, int]]:
            nonlocal lags
            if lags:
                client.avoid_last_asked()
            assignment = self._listing.find(client, read_topics=topics)
            lags = not read.keys() <= set(assignment.partitions)
            latest = self._list(client, assignment.partitions, Latest())
            # At each trigger: one pass if no end is lower, as nearly always.
            back = [tp for tp, end in read.items() if latest.get(tp, end) < end]
            if not back:
                self._hidden = frozenset()
                return assignment, latest
            # The positions in a topic that was recreated are not positions in its logs.
            ids = {**assignment.topic_ids, **(topic_ids or {})}
            same = {tp: read[tp] for tp in back if ids.get(tp.topic) == assignment.topic_ids.get(tp.topic)}
            return assignment, self._past_hidden(client, latest, same)

        return self._settled(look_up, read)

    def _past_hidden(
        self, client: KafkaClient, latest: dict[TopicPartition, int], known: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return ends, with the known end of each log that reaches it: later records are not visible, not lost."""
        back = {tp: known[tp] for tp, end in latest.items() if end < known.get(tp, end)}
        reached = self._reached(client, back) if back else frozenset()
        if reached and reached != self._hidden:
            _LOG.warning(
                "The visible ends of logs are lower than known ones, and the logs reach the known ones: %s. An open "
                "transaction, or a new leader, hides the records between them. The query stays at its positions.",
                listed([f"{tp} ends at {latest[tp]}, known is {known[tp]}" for tp in sorted(reached)]),
            )
        self._hidden = reached
        return {**latest, **{tp: known[tp] for tp in reached}}

    def _reached(self, client: KafkaClient, positions: Mapping[TopicPartition, int]) -> frozenset[TopicPartition]:
        ends = {}
        if self._isolation_level is IsolationLevel.READ_COMMITTED:
            asked = dict.fromkeys(positions, Latest())
            ends = _list_offsets(client, asked, IsolationLevel.READ_UNCOMMITTED)
        left = [tp for tp, position in positions.items() if ends.get(tp, -1) < position]
        if left:
            from pyspark_kafka._client.client.queries.leader_epochs import fetch_log_ends  # noqa: PLC0415 - rarely needed

            ends |= fetch_log_ends(client, left, client.deadline())
        return frozenset(tp for tp, position in positions.items() if ends.get(tp, -1) >= position)

    def _settled(
        self,
        look_up: Callable[[KafkaClient], tuple[T, dict[TopicPartition, int]]],
        known: Mapping[TopicPartition, int],
    ) -> tuple[T, dict[TopicPartition, int]]:
        """Return the result of a look-up; repeat it in all attempts while a known end is missing, or is lower."""
        topics = {topic_partition.topic for topic_partition in known}
        for attempt in self._attempt_numbers():
            found = self._retrying("listing latest offsets", look_up, topics)
            latest = found[1]
            gone = self._missing
            back = [tp for tp, end in known.items() if latest.get(tp, end if tp in gone else -1) < end]
            if not back:
                break
            _LOG.warning(
                "Latest offsets are lower than known ones, or missing, at attempt %d of %d: %s",
                attempt,
                self._attempts,
                listed(
                    [f"{tp} ends at {latest.get(tp, 'an unknown offset')}, known is {known[tp]}" for tp in sorted(back)]
                ),
            )
        self._missing = known.keys() - latest.keys()
        return found

    def fetch_log_sizes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the size of each partition's log in bytes, without partitions whose leaders do not report it.

        Raises:
            AccessError: the user may not describe the cluster.
        """
        asked = tuple(partitions)
        if not asked:
            return {}
        # Few queries need it, and it loads classes of the protocol that nothing else here uses.
        from pyspark_kafka._client.client.queries.log_sizes import fetch_log_sizes  # noqa: PLC0415

        return self._retrying("looking up the sizes of logs", lambda client: fetch_log_sizes(client, asked))

    def _list(
        self, client: KafkaClient, partitions: Iterable[TopicPartition], spec: OffsetSpec
    ) -> dict[TopicPartition, int]:
        asked = dict.fromkeys(partitions, spec)
        return _list_offsets(client, asked, self._isolation_level) if asked else {}

    def _retrying(self, step: str, call: Callable[[KafkaClient], T], read_topics: Collection[str] = ()) -> T:
        """Return the result of a look-up; repeat it after failures, and through an outage after a first success.

        Args:
            step: the subject of the look-up, for the log.
            call: the look-up, with the listing of partitions if it needs one.
            read_topics: topics that the query has read: they existed.
        """
        name = f"{step} of {self._subscription.describe()}"
        return self._outage_retry.call(name, lambda: self._attempting(step, call, read_topics))

    def _attempting(self, step: str, call: Callable[[KafkaClient], T], read_topics: Collection[str]) -> T:
        for attempt in self._attempt_numbers():
            try:
                return self._past_unknown_topics(call, read_topics)
            except ConnectorError as error:
                # The client has already retried until its deadline; another wait would only hide the error.
                if (
                    isinstance(error, (TimeoutError, TransportError, AccessError))
                    or not error.retriable
                    or attempt >= self._attempts
                ):
                    raise
                _LOG.warning("%s failed at attempt %d of %d: %s", step, attempt, self._attempts, error)
        raise RuntimeError("the last attempt returns or raises")

    def _past_unknown_topics(self, call: Callable[[KafkaClient], T], read_topics: Collection[str]) -> T:
        """Return the result of a look-up; a topic that is unknown to brokers is looked up several times."""
        backoff = Backoff(self._connection.retry_backoff_ms, self._connection.retry_backoff_max_ms)
        for look in attempts(backoff):
            try:
                with borrow_client(self._connection) as client:
                    return call(client)
            except ConnectorError as error:
                if error.condition != "UNKNOWN_TOPIC":
                    raise
                known = error.parameters.get("topic") in read_topics
                if look < (_KNOWN_TOPIC_LOOKS if known else _UNKNOWN_TOPIC_LOOKS):
                    continue
                # A topic that the query has read is spelled right: no advice about its name.
                if known or "partition" in error.parameters:
                    raise
                with borrow_client(self._connection) as client:
                    missing = explain_missing_topic(client, error.parameters["topic"])
                raise missing from None
        raise RuntimeError("the last look returns or raises")

    def _attempt_numbers(self) -> Iterator[int]:
        return attempts(Backoff.constant(self._retry_interval_ms), max_attempts=self._attempts)


def _list_offsets(
    client: KafkaClient, specs: Mapping[TopicPartition, OffsetSpec], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    from pyspark_kafka._client.client.queries.offsets import list_offsets  # noqa: PLC0415 - loads the protocol's classes

    return list_offsets(client, specs, isolation_level)
