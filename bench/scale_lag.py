"""The lag of 10,000 partitions on a real broker: all of them behind, with and without the times of records."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from goals import Figure, seconds
from kafka import KafkaProducer

from kit.independent_client import commit_positions
from pyspark_kafka import lag
from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka.testing import EmbeddedKafka

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._ops.operations.lag.values import LagReport

_TOPICS, _PARTITIONS_EACH = 20, 500
_RECORDS_EACH = 3
_GROUP = "bench-lag"
_LOOKS = 5
_GOAL_S = 2


def measure() -> list[Figure]:
    """Return the lines of this part."""
    with EmbeddedKafka(heap="1g") as kafka:
        _fill(kafka)
        options = {"kafka.bootstrap.servers": kafka.bootstrap_servers}
        cold, report = _timed(lambda: lag(options, group=_GROUP, timeout_s=60))
        warm = sorted(_timed(lambda: lag(options, group=_GROUP, timeout_s=60))[0] for _ in range(_LOOKS))
        timeless = sorted(
            _timed(lambda: lag(options, group=_GROUP, timeout_s=60, times=False))[0] for _ in range(_LOOKS)
        )
        close_clients()
    known = sum(each.records_behind == _RECORDS_EACH - 1 and each.seconds_behind is not None for each in report)
    name = f"lag of {len(report):,} partitions, all behind"
    return [
        seconds(f"{name}, first look", cold, _GOAL_S, known=known),
        seconds(f"{name}, warm, median of {_LOOKS}", warm[_LOOKS // 2], _GOAL_S),
        seconds("the same without the times of records", timeless[_LOOKS // 2], _GOAL_S),
        Figure(
            "partitions whose records and times are known", f"{known:,} of {len(report):,}", "all", known == len(report)
        ),
    ]


def _fill(kafka: EmbeddedKafka) -> None:
    for topic in range(_TOPICS):
        kafka.create_topic(f"lag-{topic}", _PARTITIONS_EACH)
    producer: Any = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=50)
    for topic in range(_TOPICS):
        for partition in range(_PARTITIONS_EACH):
            for _ in range(_RECORDS_EACH):
                producer.send(f"lag-{topic}", b"v" * 100, partition=partition)
    producer.flush()
    producer.close()
    partitions = [(f"lag-{topic}", partition) for topic in range(_TOPICS) for partition in range(_PARTITIONS_EACH)]
    commit_positions(kafka.bootstrap_servers, _GROUP, dict.fromkeys(partitions, 1))


def _timed(call: Callable[[], LagReport]) -> tuple[float, LagReport]:
    began = time.monotonic()
    report = call()
    return time.monotonic() - began, report
