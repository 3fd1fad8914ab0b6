"""Planning a micro-batch of 10,000 partitions of a real broker, and packing them into tasks."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence

from goals import Figure
from planning import add_one_record_each, times_ms

from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.options import parse_stream_read_options
from pyspark_kafka._connector.planning import pack_ranges
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka.connector import ReadAllAvailable
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

# A controller makes no more than some thousand partitions at once.
_TOPICS, _PARTITIONS_EACH = 10, 1_000
_PARTITIONS = _TOPICS * _PARTITIONS_EACH
_REPEATS = 10


def measure() -> list[Figure]:
    """Return the lines of this part."""
    ranges = [OffsetRange(TopicPartition("many", number), 0, 5) for number in range(_PARTITIONS)]
    figures = [_packed(ranges, most) for most in (100, 1_000, _PARTITIONS)]
    topics = [f"many-{number}" for number in range(_TOPICS)]
    with EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS) as kafka:
        for topic in topics:
            kafka.create_topic(topic, partitions=_PARTITIONS_EACH)
            add_one_record_each(kafka.bootstrap_servers, _PARTITIONS_EACH, topic)
        names = {"subscribe": ",".join(topics)}
        return [
            _planned("subscribe", kafka.bootstrap_servers, topics, names),
            _planned("subscribePattern", kafka.bootstrap_servers, topics, {"subscribePattern": "many-.*"}),
            _planned(
                "subscribe, maxPartitionsPerTask=1000",
                kafka.bootstrap_servers,
                topics,
                {**names, "maxPartitionsPerTask": "1000"},
            ),
            *figures,
        ]


def _planned(name: str, servers: str, topics: Sequence[str], subscription: dict[str, str]) -> Figure:
    options = parse_stream_read_options({"kafka.bootstrap.servers": servers, **subscription})
    stream = KafkaMicroBatchStream(options, SOURCE_SCHEMA)
    nothing_read = {topic: {str(number): 0 for number in range(_PARTITIONS_EACH)} for topic in topics}
    start = stream.deserializeOffset(json.dumps(nothing_read))

    def plan() -> None:
        end = stream.latestOffset(start, ReadAllAvailable())
        planned = stream.planInputPartitions(start, end)
        ranges = sum(len(task.offset_ranges) for task in planned if isinstance(task, KafkaInputPartition))
        if ranges != _PARTITIONS:
            raise RuntimeError(f"{ranges} of {_PARTITIONS} partitions are planned")

    return _in_ms(f"{_PARTITIONS:,} partitions planned, {name}", times_ms(plan, _REPEATS), 1_000)


def _packed(ranges: list[OffsetRange], most: int) -> Figure:
    def pack() -> None:
        pack_ranges(ranges, max_ranges=most, max_offsets=100_000)

    name = f"{_PARTITIONS:,} partitions packed, {most:,} a task"
    began = time.perf_counter()
    pack()
    first = (time.perf_counter() - began) * 1000
    # What takes seconds is not done ten times.
    return _in_ms(name, [first] if first > 1_000 else times_ms(pack, _REPEATS), 200)


def _in_ms(name: str, found: list[float], most: float) -> Figure:
    middle, longest = statistics.median(found), max(found)
    return Figure(
        name,
        f"{middle:,.0f} ms, longest {longest:,.0f}",
        f"< {most:,.0f} ms",
        middle < most,
        {"p50_ms": middle, "longest_ms": longest},
    )
