"""The topic-partitions of a subscription: one metadata listing.

`KafkaOffsetReader` retries a listing, and looks up the offsets of its partitions.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka.errors import AccessError, listed
from pyspark_kafka.version import DOCUMENTATION

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.cluster.metadata import ClusterMetadata
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import Subscription

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The topic-partitions that a subscription means at one moment.

    Attributes:
        partitions: sorted.
        topic_ids: the ids of their topics, by name; brokers before Kafka 2.8 do not return them.
    """

    partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, str]


class SubscriptionListing:
    """Lists the topic-partitions of one subscription.

    Runs on: driver, one per query run.

    Args:
        subscription: by names, by a pattern, or by listed partitions.

    Source: Spark `ConsumerStrategy`.
    """

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._may_be_missing: set[str] = set()
        # The partitions of `assign` that were missing at the last listing.
        self._missing: list[TopicPartition] = []
        # The topics that a pattern has matched; and whether the warning that it matches none was logged.
        self._matched: set[str] = set()
        self._has_warned = False

    def leave_out_missing(self, topic: str) -> None:
        """Leave out a subscribed topic that does not exist, until it exists again."""
        self._may_be_missing.add(topic)

    def find(
        self, client: KafkaClient, deadline: Deadline | None = None, read_topics: Collection[str] = ()
    ) -> Assignment:
        """Return the currently subscribed partitions; one metadata request, and a second if matched topics are missing.

        Args:
            client: the cluster.
            deadline: for all attempts; None takes `api_timeout_ms`.
            read_topics: topics that the query has read.

        Raises:
            BrokerError: a named topic does not exist, or this user may not describe it.
            AccessError: this user may not describe a topic that the query has read.
        """
        found = self._find(client, deadline)
        if self._subscription.kind == "subscribePattern":
            self._check_matched(client, deadline, set(read_topics), found)
        self._may_be_missing.difference_update(topic_partition.topic for topic_partition in found.partitions)
        return found

    def _find(self, client: KafkaClient, deadline: Deadline | None) -> Assignment:
        kind = self._subscription.kind
        if kind == "subscribePattern":
            # Searched, not matched whole: "orders" matches "orders-eu" too.
            pattern = re.compile(self._subscription.pattern or "")
            return _assignment_of(
                client.fetch_metadata(None, deadline), lambda topic: pattern.search(topic) is not None, internal=False
            )
        if kind == "subscribe":
            return _assignment_of(
                client.fetch_metadata(self._subscription.topics, deadline), lambda _: True, self._may_be_missing
            )
        listed = frozenset(self._subscription.topic_partitions)
        topics = sorted({topic_partition.topic for topic_partition in listed})
        existing = _assignment_of(client.fetch_metadata(topics, deadline), lambda _: True, self._may_be_missing)
        self._warn_of_missing(sorted(listed.difference(existing.partitions)))
        return replace(existing, partitions=tuple(tp for tp in existing.partitions if tp in listed))

    def _check_matched(
        self, client: KafkaClient, deadline: Deadline | None, read_topics: set[str], found: Assignment
    ) -> None:
        """Raise if a topic that was matched before may not be described now; brokers leave out such topics silently.

        Otherwise it would count as deleted, and be read again from its beginning when the right is back.
        """
        names = {topic_partition.topic for topic_partition in found.partitions}
        missing = (self._matched | read_topics) - names
        if missing:
            for topic in client.fetch_metadata(missing, deadline).topics.values():
                error = topic.error_for("Read")
                if isinstance(error, AccessError):
                    raise error
        self._matched = names
        if not names and not self._has_warned:
            _LOG.warning(
                "Option 'subscribePattern' matches no topic that this user may describe: brokers leave out the others "
                "silently. To read a topic, the user needs READ on it: %s",
                f"{DOCUMENTATION}rights/",
            )
        self._has_warned = not names

    def _warn_of_missing(self, missing: list[TopicPartition]) -> None:
        # Once, not at each trigger.
        before, self._missing = self._missing, missing
        if missing and missing != before:
            _LOG.warning("Option 'assign' lists partitions that do not exist: %s. They are ignored.", listed(missing))


def find_topics(client: KafkaClient, deadline: Deadline, topics: Collection[str]) -> Assignment:
    """Return the partitions of existing topics, with one metadata request.

    Raises:
        AccessError: this user may not describe one of them.
    """
    return _assignment_of(client.fetch_metadata(sorted(topics), deadline), lambda _: True, topics)


def _assignment_of(
    metadata: ClusterMetadata,
    wanted: Callable[[str], bool],
    may_be_missing: Collection[str] = (),
    *,
    internal: bool = True,
) -> Assignment:
    found: list[TopicPartition] = []
    topic_ids: dict[str, str] = {}
    for name, topic in metadata.topics.items():
        # A pattern that matches an internal topic does not select it; a name does.
        if (topic.is_internal and not internal) or not wanted(name):
            continue
        error = topic.error_for("Read")
        if error is not None:
            if error.condition == "UNKNOWN_TOPIC" and name in may_be_missing:
                continue
            raise error
        found.extend(partition.topic_partition for partition in topic.partitions)
        if topic.topic_id is not None:
            topic_ids[name] = str(topic.topic_id)
    return Assignment(tuple(sorted(found)), topic_ids)
