"""Look-ups and reads over 40 brokers, and the metadata of 10,000 topics, against the TCP fake of the tests.

What is measured is the client's own doing: how many connections it opens at once, for whom it waits, what it does with
an answer. The fake's brokers are threads of this process; where they work and not only wait, it is said.
"""

from __future__ import annotations

import re
import struct
import time
import uuid
from collections.abc import Callable
from typing import Any

from goals import Figure, seconds
from kafka.protocol.metadata import MetadataResponse

from kit.fakes.handlers.fetch import BrokerLog
from kit.fakes.logs import batches_of
from kit.fakes.scripts import Raw, Silence
from kit.fakes.tcp_cluster import TcpCluster
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.metadata import parse_metadata
from pyspark_kafka._client.client.cluster.metadata_cache import MetadataCache
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.wire.messages import (
    ApiVersionsRequest,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
)
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition, KafkaPartitionReaderFactory
from pyspark_kafka.errors import ConnectorError

_BROKERS = 40
_SET_UP_S = 0.3
_SILENT = 7
# Of the fakes that are silent: a step of the client is as long as users have it by default, no test of patience.
_TIMEOUT_MS = 20_000
_LEADER_MOVES_AFTER_S = 3.0
_RECORDS = 200
_TOPICS, _PARTITIONS_EACH = 10_000, 3
_METADATA_VERSION = 12


def measure() -> list[Figure]:
    """Return the lines of this part."""
    return [*look_up_cold(), *look_up_with_one_silent(), *read_with_one_silent(), *remember_metadata()]


def look_up_cold() -> list[Figure]:
    """Look up the ends of 40 partitions at 40 brokers that take a while to set up a connection; cold, then warm."""
    cluster = _cluster()

    def late(request: Any) -> Any:
        time.sleep(_SET_UP_S)
        return cluster.api_versions(request)

    with cluster, KafkaClient(ConnectionOptions(cluster.bootstrap_servers)) as client:
        cluster.script(ApiVersionsRequest, late)
        cold, failed = _timed(lambda: list_offsets(client, _ends()))
        warm, failed_warm = _timed(lambda: list_offsets(client, _ends()))
        opened = cluster.connections
    name = f"look-up over {_BROKERS} brokers, {_SET_UP_S} s of set-up each, cold"
    if failed or failed_warm:
        return [Figure(name, f"failed after {cold:.1f} s: {failed or failed_warm}", "< 2 s", met=False)]
    return [
        seconds(name, cold, 2, connections=opened),
        Figure("the same look-up, warm", f"{warm:.2f} s, {opened} connections opened in all"),
    ]


def look_up_with_one_silent() -> list[Figure]:
    """Look up the same with one broker that accepts connections and says nothing, until its partition moves."""
    cluster = _cluster()
    with cluster, KafkaClient(ConnectionOptions(cluster.bootstrap_servers, api_timeout_ms=_TIMEOUT_MS)) as client:
        list_offsets(client, _ends())
        # Warm, it falls silent; so do connections that are opened from now on.
        cluster.seen.clear()
        cluster.script(ListOffsetsRequest, Silence, broker_id=_SILENT)
        cluster.script(ApiVersionsRequest, Silence, broker_id=_SILENT)
        took, failed = _timed(lambda: list_offsets(client, _ends()))
        asked = [seen.broker_id for seen in cluster.requests(ListOffsetsRequest) if seen.broker_id != _SILENT]
        others = [end for end in _ends() if end.partition != _SILENT]
        others_took, others_failed = _timed(lambda: list_offsets(client, dict.fromkeys(others, Latest())))
    # An error of 40 partitions must name one; asked twice, a broker's first answer was thrown away.
    again = len(asked) - len(set(asked))
    left = re.search(r"(\d+) of \d+ left", failed)
    figures = [
        Figure(
            f"one silent broker of {_BROKERS}, warm: requests to the other {_BROKERS - 1}",
            f"{len(asked)}, {again} of them again; {left[0] if left else failed or 'no error'} after {took:.1f} s",
            f"{_BROKERS - 1}, none again; one partition left",
            len(asked) == _BROKERS - 1 and left is not None and left[1] == "1",
            {"requests": len(asked), "seconds": took},
        ),
        Figure(
            f"the look-up of the other {_BROKERS - 1} after it",
            others_failed or f"{others_took:.2f} s",
            "< 0.5 s",
            not others_failed and others_took < 0.5,
            {"seconds": others_took},
        ),
    ]
    cluster = _cluster()
    with cluster, KafkaClient(ConnectionOptions(cluster.bootstrap_servers, api_timeout_ms=_TIMEOUT_MS)) as client:
        cluster.script(ApiVersionsRequest, Silence, broker_id=_SILENT)
        began = time.monotonic()

        def metadata(request: Any) -> Any:
            if time.monotonic() - began > _LEADER_MOVES_AFTER_S:
                cluster.leaders["topic", _SILENT] = (0, 1)
            return cluster.metadata(request)

        cluster.script(MetadataRequest, metadata)
        took, failed = _timed(lambda: list_offsets(client, _ends()))
    figures.append(
        Figure(
            f"cold, and its partition has another leader after {_LEADER_MOVES_AFTER_S:g} s: look-up of all",
            f"failed after {took:.1f} s: {failed}" if failed else f"{took:.1f} s",
            "< 12 s",
            not failed and took < 12,
            {"seconds": took},
        )
    )
    return figures


def read_with_one_silent() -> list[Figure]:
    """Read one range of each broker in one task, with one broker that says nothing to fetches."""
    cluster = _cluster()
    batches = {("topic", broker): batches_of(_RECORDS // 10) for broker in range(_BROKERS)}
    fetch = FetchOptions(poll_timeout_ms=5_000)
    ranges = [OffsetRange(where, 0, _RECORDS) for where in _ends()]
    factory = KafkaPartitionReaderFactory(
        ConnectionOptions(cluster.bootstrap_servers), fetch, SOURCE_SCHEMA, fail_on_data_loss=True
    )
    last, rows, failed = 0.0, 0, ""
    with cluster:
        cluster.script(FetchRequest, BrokerLog(batches, cluster.topic_ids))
        cluster.script(FetchRequest, Silence, broker_id=_SILENT)
        reader = factory.createReader(KafkaInputPartition(ranges[0], tuple(ranges[1:])))
        began = time.monotonic()
        try:
            while reader.next():
                rows += reader.get().num_rows
                last = time.monotonic() - began
        except ConnectorError as error:
            failed = error.condition
        finally:
            reader.close()
    expected = (_BROKERS - 1) * _RECORDS
    return [
        Figure(
            f"a task of {_BROKERS} partitions, one silent broker: rows of the other {_BROKERS - 1}",
            f"{rows:,} of {expected:,} in {last:.2f} s; then {failed or 'no error'}",
            "all in < 2 s; then an error",
            rows == expected and last < 2 and bool(failed),
            {"seconds": last, "rows": rows},
        )
    ]


def remember_metadata() -> list[Figure]:
    """Remember an answer about all topics of a large cluster a second time, as each trigger of a pattern does."""
    answer = _large_answer()
    described = parse_metadata(answer, _METADATA_VERSION)
    cache = MetadataCache(300_000)
    cache.remember(described, all_topics=True)
    remembered, _ = _timed(lambda: cache.remember(described, all_topics=True))
    cluster = TcpCluster(1)
    # Encoded once: the fake's work is not to be measured.
    body = bytes(answer.encode(version=_METADATA_VERSION))

    def ready(request: Any) -> Raw:
        # Correlation id, and the tagged fields of a header that are none.
        frame = struct.pack(">i", request.header.correlation_id) + b"\x00" + body
        return Raw(struct.pack(">i", len(frame)) + frame)

    versions = {MetadataRequest.API_KEY: (0, _METADATA_VERSION)}
    with cluster, KafkaClient(ConnectionOptions(cluster.bootstrap_servers)) as client:
        cluster.versions.update(versions)
        cluster.script(MetadataRequest, ready)
        client.fetch_metadata(None)
        asked, failed = _timed(lambda: client.fetch_metadata(None))
    what = f"metadata of {_TOPICS:,} topics x {_PARTITIONS_EACH} partitions"
    return [
        seconds(f"{what} remembered, second time", remembered, 0.3),
        Figure("the same: asked for, decoded and remembered", failed or f"{asked:.2f} s, {len(body) / 1e6:.1f} MB"),
    ]


def _large_answer() -> Any:
    """Return a metadata response about all topics of a large cluster."""
    topic_class = MetadataResponse.MetadataResponseTopic
    topics = [
        topic_class(
            error_code=0,
            name=f"topic-{topic}",
            topic_id=uuid.UUID(int=topic + 1),
            is_internal=False,
            partitions=[
                topic_class.MetadataResponsePartition(
                    error_code=0,
                    partition_index=number,
                    leader_id=0,
                    leader_epoch=0,
                    replica_nodes=[0, 1, 2],
                    isr_nodes=[0, 1, 2],
                    offline_replicas=[],
                )
                for number in range(_PARTITIONS_EACH)
            ],
            authorized_operations=set(),
        )
        for topic in range(_TOPICS)
    ]
    node = MetadataResponse.MetadataResponseBroker(node_id=0, host="127.0.0.1", port=1, rack=None)
    return MetadataResponse(
        throttle_time_ms=0, brokers=[node], cluster_id="fake", controller_id=0, topics=topics, error_code=0
    )


def _cluster() -> TcpCluster:
    cluster = TcpCluster(_BROKERS)
    cluster.add_topic("topic", partitions=_BROKERS)
    for broker in range(_BROKERS):
        cluster.leaders["topic", broker] = (broker, 0)
        cluster.ends["topic", broker] = (0, _RECORDS)
    return cluster


def _ends() -> dict[TopicPartition, Latest]:
    return {TopicPartition("topic", number): Latest() for number in range(_BROKERS)}


def _timed(call: Callable[[], object]) -> tuple[float, str]:
    """Return the seconds of a call, and the error it ended with."""
    began = time.monotonic()
    try:
        call()
    except ConnectorError as error:
        return time.monotonic() - began, _short(error)
    return time.monotonic() - began, ""


def _short(error: ConnectorError) -> str:
    return str(error).partition(" Hint: ")[0][:160]
