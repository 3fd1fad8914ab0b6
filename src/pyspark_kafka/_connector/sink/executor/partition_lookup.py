"""Partition counts of topics, for encoders."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from pyspark_kafka._client.client.produce.partition_counts import borrow_partition_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._client.client.produce.partition_counts import PartitionCounts
    from pyspark_kafka._client.options import WriteOptions


class TopicPartitions(Protocol):
    """Partition counts for an encoder; a `PartitionLookup`, or the producer of the task."""

    def partition_count(self, topic: str, *, beyond: int = -1) -> int:
        """Return a topic's number of partitions; query the cluster if the known ones do not go beyond a partition."""

    def available_partitions(self, topic: str) -> Sequence[int]:
        """Return the partitions with a leader, in order, if they are known; sends no request."""


class PartitionLookup:
    """Partition counts for a task that sends nothing; it borrows a client with the first row.

    Runs on: executor; one thread; `partition_count` blocks on the network.

    Args:
        options: cluster, times.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._resources = ExitStack()
        self._borrowed: PartitionCounts | None = None

    def partition_count(self, topic: str, *, beyond: int = -1) -> int:
        """Return the partition count of a topic; see `PartitionCounts.partition_count`.

        Raises:
            DeliveryError: there is no such topic.
        """
        return self._counts().partition_count(topic, beyond=beyond)

    def available_partitions(self, topic: str) -> Sequence[int]:
        """Return the partitions with a leader, in order, if they are known; sends no request."""
        return self._counts().available_partitions(topic)

    def close(self) -> None:
        """Return the client. Safe to call again."""
        self._resources.close()
        self._borrowed = None

    def _counts(self) -> PartitionCounts:
        if self._borrowed is None:
            options = self._options
            self._borrowed = self._resources.enter_context(
                borrow_partition_counts(
                    options.connection,
                    topic_timeout_ms=min(options.max_block_ms, options.producer.delivery_timeout_ms),
                    outage_timeout_ms=options.outage_timeout_ms,
                )
            )
        return self._borrowed
