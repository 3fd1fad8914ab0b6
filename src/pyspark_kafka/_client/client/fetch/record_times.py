"""The times of the records at positions: many small fetches in few requests."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._client.client.cluster.fanout import call_brokers
from pyspark_kafka._client.client.fetch.request import LAST_VERSION_WITH_NAMES, FetchFrame, FetchPosition
from pyspark_kafka._client.client.fetch.response import OLDEST_VERSION, FetchResponse, parse_fetch_response
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka._client.client.wire.missing_rights import Right, name_user
from pyspark_kafka._client.options import FetchOptions
from pyspark_kafka.errors import AccessError, ConnectorError, CorruptRecordsError
from pyspark_kafka.records import iter_decode
from pyspark_kafka.records.batch_header import CONTROL, LOG_APPEND_TIME, HeaderWalk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka._client.client.waiting.deadline import Deadline

_KIB, _MIB = 1 << 10, 1 << 20
# A broker leaves out a record batch that is larger than its partition may have in the response. So the first request is
# for small batches, and what it leaves out is requested again with more room.
_ROOMS = (2 * _KIB, 64 * _KIB, 1 * _MIB + 12 * _KIB)
# For a batch that is larger still: a partition alone has its first batch whole, whatever its size.
_ALONE = 1
_MAX_IN_RESPONSE = 8 * _MIB
# What all responses together may take; then times are left unknown.
_MAX_BYTES = 64 * _MIB
_HAS_DELETE_HORIZON = 0x40
# A batch whose records are that close in time is not decoded to tell one from the other.
_CLOSE_MS = 1_000


@dataclass(frozen=True, slots=True)
class RecordTimes:
    """The times of records at positions.

    Attributes:
        times: milliseconds since 1970-01-01 UTC, by partition.
        errors: why a time is not known, by partition.
        too_large: partitions without a request, because their record batches are large and enough bytes were read.
    """

    times: Mapping[TopicPartition, int]
    errors: Mapping[TopicPartition, ConnectorError]
    too_large: frozenset[TopicPartition]


def fetch_record_times(
    client: KafkaClient,
    positions: Sequence[tuple[PartitionMetadata, int]],
    deadline: Deadline,
    *,
    max_bytes: int = _MAX_BYTES,
) -> RecordTimes:
    """Return the time of the record at a position, for any number of partitions.

    One request has thousands of partitions, with room for one small record batch each. All leaders are queried side
    by side. A failed broker gets no further request.

    Runs on: driver and executor; blocks. Holds at most about 8 MiB for each broker.

    Args:
        client: the cluster.
        positions: partitions with their leaders, and the offset to look at; there must be a record at it or after it.
            The first ones matter most: where batches are large, the bytes may not suffice for all.
        deadline: for everything.
        max_bytes: how many bytes of records are read in all, apart from one batch.

    Returns:
        The time of the first record at or after each position, exact to a second. Of a control record, or of one that a
        compaction has removed, the time of its batch. A partition with nothing to read is in none of the mappings.
    """
    found = _FoundTimes()
    lanes: dict[int, _TimeLane] = {}
    for leader, position in positions:
        lane = lanes.setdefault(leader.leader_id, _TimeLane())
        lane.rooms[0].append((leader, position))
    while lanes and not deadline.expired:
        requests = {broker_id: lane.next_request() for broker_id, lane in lanes.items()}
        for broker_id, done in call_brokers(client, requests, deadline, min_version=OLDEST_VERSION).items():
            lane = lanes[broker_id]
            if done.error is not None:
                found.errors.update(dict.fromkeys(lane.partitions(), done.error))
                del lanes[broker_id]
                continue
            lane.take_times(done.response, found, done.address)
        spent = found.read_bytes >= max_bytes
        for broker_id, lane in list(lanes.items()):
            if spent:
                found.too_large.update(lane.partitions())
            if spent or lane.is_done:
                del lanes[broker_id]
    for lane in lanes.values():
        error = deadline.error("Looking up the times of records")
        found.errors.update(dict.fromkeys(lane.partitions(), error))
    for refused in found.errors.values():
        if isinstance(refused, AccessError):
            name_user(refused, client.options)
    return RecordTimes(found.times, found.errors, frozenset(found.too_large))


@dataclass(slots=True)
class _FoundTimes:
    times: dict[TopicPartition, int] = field(default_factory=dict)
    errors: dict[TopicPartition, ConnectorError] = field(default_factory=dict)
    too_large: set[TopicPartition] = field(default_factory=set)
    read_bytes: int = 0


class _TimeLane:
    """The remaining look-ups of one broker, by the room for a record batch."""

    def __init__(self) -> None:
        self.rooms: list[deque[tuple[PartitionMetadata, int]]] = [deque() for _ in (*_ROOMS, _ALONE)]
        self._asked: dict[TopicPartition, tuple[PartitionMetadata, int]] = {}
        self._room = 0

    @property
    def is_done(self) -> bool:
        return not any(self.rooms)

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions without a time so far."""
        waiting = [leader.topic_partition for queue in self.rooms for leader, _ in queue]
        return [*self._asked, *waiting]

    def next_request(self) -> _TimesRequest:
        self._room = next(number for number, queue in enumerate(self.rooms) if queue)
        queue = self.rooms[self._room]
        room = (*_ROOMS, _ALONE)[self._room]
        most = 1 if room == _ALONE else max(1, _MAX_IN_RESPONSE // room)
        taken = [queue.popleft() for _ in range(min(most, len(queue)))]
        self._asked = {leader.topic_partition: (leader, position) for leader, position in taken}
        return _TimesRequest(taken, room)

    def take_times(self, response: FetchResponse, found: _FoundTimes, address: str) -> None:
        """Take the times out of a response; what it leaves out is requested again, with more room."""
        asked, self._asked = self._asked, {}
        for entry in response.partitions:
            topic_partition = TopicPartition(entry.topic or "", entry.partition)
            known = asked.get(topic_partition)
            if known is None:
                continue
            if entry.error_code != ErrorCode.NONE:
                found.errors[topic_partition] = _refused(entry.error_code, topic_partition, address)
                del asked[topic_partition]
                continue
            found.read_bytes += len(entry.records)
            try:
                time_ms = find_time(entry.records, known[1])
            except ConnectorError as error:
                found.errors[topic_partition] = error.located(str(topic_partition))
                del asked[topic_partition]
                continue
            if time_ms is not None:
                found.times[topic_partition] = time_ms
                del asked[topic_partition]
        if response.error_code != ErrorCode.NONE:
            failure = broker_error(response.error_code, f"Fetching records at {address} failed", rights=())
            found.errors.update(dict.fromkeys(asked, failure))
        elif self._room + 1 < len(self.rooms):
            self.rooms[self._room + 1].extend(asked.values())


class _TimesRequest(FetchFrame):
    """A Fetch request whose response is decoded without copying the records."""

    valid_versions = (OLDEST_VERSION, LAST_VERSION_WITH_NAMES)

    def __init__(self, positions: Sequence[tuple[PartitionMetadata, int]], room: int) -> None:
        options = FetchOptions(max_wait_ms=0, min_bytes=0, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        wanted = [
            FetchPosition(leader.topic_partition, position, None, leader.leader_epoch, room)
            for leader, position in positions
        ]
        super().__init__(wanted, options, max_bytes=_MAX_IN_RESPONSE, rack=None)

    @staticmethod
    def response_class(version: int) -> Any:
        return _ResponseOf(version)


@dataclass(frozen=True, slots=True)
class _ResponseOf:
    """Decodes a Fetch response, in the place of kafka-python's class."""

    version: int

    def decode(self, body: memoryview) -> FetchResponse:
        return parse_fetch_response(body, self.version)


def find_time(records: memoryview, position: int) -> int | None:
    """Return the time of the first record at or after a position; None if no whole record batch with it is there.

    Mostly the batch header has the time. A batch that begins before the position is decoded, unless all of its records
    are within a second: then it is the time of the first of them.

    Units: milliseconds since 1970-01-01 UTC.

    Raises:
        CorruptRecordsError: the bytes are not record batches.
        RecordError: the time does not fit in 64 bits of microseconds.
    """
    try:
        header = next((each for each in HeaderWalk(records, check_crcs=False) if each.last_offset >= position), None)
    except CorruptRecordsError as error:
        if error.condition == "NO_COMPLETE_RECORD_BATCH":
            return None
        raise
    if header is None:
        return None
    if header.attributes & LOG_APPEND_TIME:
        return header.max_timestamp
    is_close = header.base_offset >= position or header.max_timestamp - header.base_timestamp <= _CLOSE_MS
    # With a delete horizon, the base timestamp is not the timestamp of a record (KIP-534).
    told = is_close and not header.attributes & _HAS_DELETE_HORIZON
    if told or header.attributes & CONTROL or not header.record_count:
        return header.base_timestamp
    batch = records[header.start : header.end]
    for decoded in iter_decode(batch, start_offset=position, columns=("timestamp",), target_rows=1):
        if decoded.batch.num_rows:
            return int(decoded.batch.column(0).cast(pa.int64())[0].as_py()) // 1000
    return header.max_timestamp


def _refused(code: int, topic_partition: TopicPartition, address: str) -> ConnectorError:
    right = Right("Read", "topic", topic_partition.topic)
    return broker_error(
        code, f"Fetching the record at the position of {topic_partition} from {address} failed", rights=(right,)
    )
