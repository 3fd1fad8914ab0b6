"""Reads the bytes of one range of one partition: the fetcher of many ranges, for the common case of one.

Layer: client.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.client.fetch.cursor import FetchedRecords
from pyspark_kafka.client.fetch.errors import (
    LogTruncatedError,
    OffsetOutOfRangeError,
    TopicDeletedError,
    TopicRecreatedError,
)
from pyspark_kafka.client.fetch.fetcher import MultiPartitionFetcher

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.net.connection import Connection
    from pyspark_kafka.model import OffsetRange
    from pyspark_kafka.options import FetchOptions

__all__ = [
    "FetchedRecords",
    "LogTruncatedError",
    "OffsetOutOfRangeError",
    "PartitionFetcher",
    "TopicDeletedError",
    "TopicRecreatedError",
]

_Fetcher = TypeVar("_Fetcher", bound="PartitionFetcher")


class PartitionFetcher:
    """Iterates over the bytes of `[start_offset, end_offset)` of a partition, in order, without gap or repetition.

    See `MultiPartitionFetcher`, also for the errors that `next` raises.

    Runs on: executor; `next` blocks. Not thread-safe; does not pickle.

    Args:
        client: of the cluster; the fetcher borrows a connection of its own from it.
        offset_range: what to read.
        fetch: sizes, waits, isolation.
        topic_ids: the topic that the range was planned on, by name; see `MultiPartitionFetcher`.
        clock: monotonic seconds; tests give their own.
        sleep: waits seconds; tests give their own.
    """

    def __init__(
        self,
        client: KafkaClient,
        offset_range: OffsetRange,
        fetch: FetchOptions,
        *,
        topic_ids: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._topic_partition = offset_range.topic_partition
        self._fetcher = MultiPartitionFetcher(
            client, [offset_range], fetch, topic_ids=topic_ids, clock=clock, sleep=sleep
        )

    def __enter__(self: _Fetcher) -> _Fetcher:  # noqa: PYI019 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self: _Fetcher) -> _Fetcher:  # noqa: PYI019 - typing.Self needs Python 3.11
        return self

    def __next__(self) -> FetchedRecords:
        """Give the next answer that has records at the position.

        Raises:
            StopIteration: the position has reached the end.
            ConnectorError: see `MultiPartitionFetcher`.
        """
        return next(self._fetcher)[1]

    @property
    def position(self) -> int:
        """The offset that is read next; after an answer, by its headers until `advance` has confirmed it."""
        return self._fetcher.position(self._topic_partition)

    @property
    def _connection(self) -> Connection | None:
        return next(iter(self._fetcher.connections), None)

    def advance(self, next_offset: int) -> None:
        """Compare the position that decoding (checksums verified) found with the one of the headers.

        Raises:
            CorruptRecordsError: they differ within the range.
        """
        self._fetcher.advance(next_offset)

    def close(self) -> None:
        """Give the connection back; an answer on its way is given up. Safe to call again."""
        self._fetcher.close()
