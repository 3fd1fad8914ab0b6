"""The partition counts of written topics."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.produce import errors as produce_errors
from pyspark_kafka._client.client.produce.batches.producer_batch import RecordCounts
from pyspark_kafka._client.client.produce.leaders import PartitionLeaders
from pyspark_kafka._client.client.queries.missing_topics import cluster_text, find_nearest_topic
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.outage import OutageRetry
from pyspark_kafka._client.client.waiting.retry import RetryAction, attempts, decide
from pyspark_kafka._client.client.waiting.stalls import contact_of
from pyspark_kafka._client.client.wire.missing_rights import name_user
from pyspark_kafka.errors import AccessError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.options import ConnectionOptions

_LOG = logging.getLogger(__name__)

# Look-ups of a topic that is not there, about 0.7 s, before a warning says that it is waited for.
_SILENT_LOOKUPS = 3


class PartitionCounts:
    """Partition counts, from memory and from the cluster; waits for topics that are not there yet.

    A topic created a moment ago is known to all brokers after some seconds.

    Runs on: executor; one thread; `partition_count` blocks.

    Args:
        client: the cluster.
        leaders: remembers what the cluster said.
        outage_retry: waits an outage out.
        topic_timeout_ms: how long a topic that is not there is waited for.
        records: counts the records of the task, for errors.
        clock: monotonic seconds; tests pass their own.
        sleep: waits seconds; tests pass their own.
    """

    def __init__(
        self,
        client: KafkaClient,
        leaders: PartitionLeaders,
        outage_retry: OutageRetry,
        topic_timeout_ms: int,
        *,
        records: Callable[[], RecordCounts] = RecordCounts,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._leaders = leaders
        self._outage_retry = outage_retry
        self._topic_timeout_ms = topic_timeout_ms
        self._records = records
        self._clock = clock
        self._sleep = sleep

    def partition_count(self, topic: str, *, beyond: int = -1) -> int:
        """Return how many partitions a topic has; requested again when it is older than `metadata_max_age_ms`.

        Args:
            topic: its name.
            beyond: a partition that rows are for; if it is not known, metadata are fetched again.

        Raises:
            DeliveryError: there is no such topic after `topic_timeout_ms`.
        """
        deadline = Deadline(self._topic_timeout_ms, clock=self._clock, sleep=self._sleep)
        cluster = cluster_text(self._client.options)
        for lookup in attempts(self._client.backoff(), deadline=deadline):
            found = self._outage_retry.call(
                f"looking up the partitions of topic {topic}", lambda: self._leaders.count(topic, beyond=beyond)
            )
            if isinstance(found, int):
                return found
            if isinstance(found, AccessError):
                name_user(found, self._client.options)
            if found.condition != "UNKNOWN_TOPIC" and decide(found).action is RetryAction.FAIL:
                raise found
            missing = found
            if lookup == _SILENT_LOOKUPS + 1 and not deadline.expired:
                _LOG.warning(
                    "Topic '%s' does not exist in %s, or this user may not describe it. It is waited for, %d ms in "
                    "all (option 'kafka.max.block.ms'), as a new one is known to all brokers after some seconds.",
                    topic, cluster, self._topic_timeout_ms,
                )  # fmt: skip
        waited_ms, nearest = deadline.elapsed_ms(), find_nearest_topic(self._client, topic)
        raise produce_errors.no_such_topic(
            self._records(), topic, waited_ms, cluster=cluster, nearest=nearest
        ) from missing

    def available_partitions(self, topic: str) -> tuple[int, ...]:
        """Return the partitions that had a leader when the topic was last looked up, in order; sends nothing."""
        return self._leaders.available(topic)


@contextmanager
def borrow_partition_counts(
    connection: ConnectionOptions, *, topic_timeout_ms: int, outage_timeout_ms: int
) -> Iterator[PartitionCounts]:
    """Lend partition counts with a client of their own; connections are opened at the first look-up.

    Args:
        connection: cluster and user.
        topic_timeout_ms: how long a topic that is not there is waited for.
        outage_timeout_ms: how long an outage is waited out; 0: not at all.
    """
    with borrow_client(connection) as client:
        contact = contact_of(connection.bootstrap_servers)
        # A task that may wait belongs to a query that has reached the cluster.
        outage_retry = OutageRetry(outage_timeout_ms, contact, reached=lambda: True)
        yield PartitionCounts(client, PartitionLeaders(client, time.monotonic), outage_retry, topic_timeout_ms)
