"""The outcome of a task's transaction that its coordinator has forgotten, as the log shows it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_kafka._base.model import IsolationLevel, OffsetRange
from pyspark_kafka._base.offsets import Earliest, Latest
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.waiting.retry import attempts
from pyspark_kafka._client.options import FetchOptions
from pyspark_kafka.errors import AccessError, BrokerError
from pyspark_kafka.records import iter_decode
from pyspark_kafka.records.batch_header import HeaderWalk

if TYPE_CHECKING:
    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.fetch.cursor import FetchedRecords
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._connector.sink.tasks.transactions import TaskTransaction

_LOG = logging.getLogger(__name__)
_FETCH = FetchOptions(isolation_level=IsolationLevel.READ_COMMITTED, max_bytes_per_fetch=1 << 20, max_wait_ms=50)


def find_outcome(client: KafkaClient, task: TaskTransaction, deadline: Deadline) -> bool | None:
    """Return whether the records of a transaction are committed; None if no partition shows it.

    Its first record in any partition tells: readers of committed records see it, or brokers list it as aborted. Neither
    is so if it was deleted or compacted away, if the topic is gone, and if this user may not read it.

    Runs on: driver; blocks.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        task: a transaction unknown to the coordinator.
        deadline: until when transactions of others are waited for that are open before the record.

    Raises:
        DeadlineError: such a transaction does not end, or no response came in time.
        TransportError: no broker can be reached.

    Source: docs/internals/fetch-rules.md, R25 to R29.
    """
    for topic_partition, (first, _) in sorted((task.offsets or {}).items()):
        try:
            found = _find_at(client, topic_partition, first, task.transaction.identity.producer_id, deadline)
        except (AccessError, BrokerError) as error:
            _LOG.warning("%s at %d does not show whether it is committed: %s", topic_partition, first, error)
            continue
        if found is not None:
            return found
    return None


def _find_at(
    client: KafkaClient, topic_partition: TopicPartition, first: int, producer_id: int, deadline: Deadline
) -> bool | None:
    (start,) = list_offsets(client, {topic_partition: Earliest()}).values()
    (end,) = list_offsets(client, {topic_partition: Latest()}).values()
    if not start <= first < end:
        return None
    step = f"Waiting for the transactions before offset {first} of {topic_partition}"
    for _ in attempts(client.backoff(), deadline=deadline):
        (stable,) = list_offsets(client, {topic_partition: Latest()}, IsolationLevel.READ_COMMITTED).values()
        if first < stable:
            break
    else:
        raise deadline.error(step)
    found = None
    with Fetcher(client, [OffsetRange(topic_partition, first, first + 1)], _FETCH) as fetcher:
        for _, fetched in fetcher:
            found = _outcome_in(fetched, first, producer_id)
            fetcher.confirm(topic_partition, first + 1)
    return found


def _outcome_in(fetched: FetchedRecords, first: int, producer_id: int) -> bool | None:
    """Return whether this producer's record at an offset is committed, from a response; None if it is unknown."""
    if any(producer == producer_id and begin <= first for producer, begin in fetched.aborted_transactions):
        return False
    headers = HeaderWalk(fetched.records, stop_at=first + 1)
    if not any(each.base_offset <= first <= each.last_offset and each.producer_id == producer_id for each in headers):
        return None
    # A batch without the record was compacted: that can be committed or not.
    decoded = iter_decode(
        fetched.records,
        start_offset=first,
        end_offset=first + 1,
        isolation_level=_FETCH.isolation_level.value,
        aborted_transactions=fetched.aborted_transactions,
        columns=["offset"],
    )
    return True if any(each.batch.num_rows for each in decoded) else None
