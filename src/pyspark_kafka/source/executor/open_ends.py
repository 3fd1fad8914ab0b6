"""The open ends of a task's range, looked up when the task starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.client.lookups.offsets import list_offsets
from pyspark_kafka.offsets import Earliest, Latest

if TYPE_CHECKING:
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.model import IsolationLevel, OffsetRange
    from pyspark_kafka.planning.open_ends import OpenEnds


def close_range(
    client: KafkaClient, planned: OffsetRange, open_ends: OpenEnds, isolation_level: IsolationLevel
) -> OffsetRange:
    """Look up the open ends of a range as they are now.

    Runs on: executor, when a task starts; one request for each end that must be known, mostly one in all.

    Raises:
        OptionError: an end was found on the wrong side of the one that an option names.
        ConnectorError: the look-up failed.
    """
    topic_partition = planned.topic_partition
    first_offset = log_end = None
    # The start first: a log never ends before a start that it had earlier.
    if open_ends.asks_first_offset(planned):
        first_offset = list_offsets(client, {topic_partition: Earliest()}, isolation_level)[topic_partition]
    if open_ends.end_by is not None:
        log_end = list_offsets(client, {topic_partition: Latest()}, isolation_level)[topic_partition]
    return open_ends.close(planned, first_offset, log_end)
