"""Settings shared by all lanes' writers in one run, for a sink that commits with the positions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
    from pyspark_kafka._client.options import WriteOptions
    from pyspark_kafka._connector.sink.columns import SinkColumns


@dataclass(frozen=True)
class LaneSettings:
    """The write settings of one run's lanes. Plain data, pickled to executors.

    Attributes:
        options: topic, producer, sizes.
        columns: the positions of the sink's columns.
        timeout_ms: of transactions.
        query_id: of the query.
        group_id: the consumer group with the positions.
        transactions: the first transaction of each lane.
        topic_ids: the ids of the source topics, by name.
        positions: offset and state in the group.
    """

    options: WriteOptions
    columns: SinkColumns
    timeout_ms: int
    query_id: str
    group_id: str
    transactions: tuple[OpenTransaction, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    positions: Mapping[TopicPartition, tuple[int, str]] = field(default_factory=dict)
