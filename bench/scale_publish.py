"""What the driver publishes of an exactly-once batch: rate into 1,000 and into 4 partitions of a real broker.

Without Spark: the product's own writers prepare what tasks prepare, and its own commit publishes it, so the figure is
of that and of the broker, which has the same cores.
"""

from __future__ import annotations

import cProfile
import io
import itertools
import json
import pstats
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from goals import Figure
from measure import cpu_seconds

from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.driver.exactly_once import KafkaExactlyOnceStreamingWrite
from pyspark_kafka._connector.sink.executor.outbox import PreparedMessage
from pyspark_kafka.connector import PhysicalWriteInfo
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

_MIB = 1 << 20
_MANY, _FEW = 1_000, 4
_TASKS, _TASK_MIB = 8, 32
_ROWS, _KEY_BYTES, _VALUE_BYTES = 10_000, 16, 984
# The first batch makes the brokers' segments, and their compilers go on for some more.
_WARM_UPS, _RUNS = 2, 3
_GOAL_MB_S = 150
_PROFILED = 30


@dataclass(frozen=True)
class Published:
    """What batches came to.

    Attributes:
        rates: bytes a second of the whole commit: fence, marker, records, end of the transaction, removal of files.
        prepared: bytes a second of its tasks, one after the other in one process.
        batch_bytes: of a record batch, on average.
        driver_s_per_gb: CPU time of this process for 10^9 bytes.
        broker_s_per_gb: the same of the broker.
        profile: where this process spent it, in one more batch.
    """

    rates: list[float]
    prepared: list[float]
    batch_bytes: float
    driver_s_per_gb: float
    broker_s_per_gb: float
    profile: str

    @property
    def mb_s(self) -> float:
        """The middle rate, 10^6 bytes a second."""
        return statistics.median(self.rates) / 1e6


def measure() -> list[Figure]:
    """Return the lines of this part, and print where the driver's time goes with many partitions."""
    figures = []
    for partitions in (_MANY, _FEW):
        found = publish(partitions)
        if partitions == _MANY:
            print(found.profile)
        figures.append(
            Figure(
                f"{_TASKS} tasks of {_TASK_MIB} MiB published into {partitions:,} partitions",
                f"{found.mb_s:,.0f} MB/s ({min(found.rates) / 1e6:,.0f} to {max(found.rates) / 1e6:,.0f})",
                f">= {_GOAL_MB_S} MB/s" if partitions == _MANY else "",
                found.mb_s >= _GOAL_MB_S if partitions == _MANY else None,
                {
                    "mb_s": found.mb_s,
                    "prepared_mb_s": statistics.median(found.prepared) / 1e6,
                    "driver_s_per_gb": found.driver_s_per_gb,
                    "broker_s_per_gb": found.broker_s_per_gb,
                },
            )
        )
        # CPU time, as it depends less on what else the machine does.
        figures.append(
            Figure(
                "of it: record batches on average; CPU time for 1 GB",
                f"{found.batch_bytes / 1024:,.0f} KiB; driver {found.driver_s_per_gb:.1f} s, "
                f"broker {found.broker_s_per_gb:.1f} s",
            )
        )
    return figures


def publish(partitions: int) -> Published:
    """Publish batches into a number of partitions."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-")))
        kafka = stack.enter_context(EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS))
        stack.callback(close_clients)
        kafka.create_topic("out", partitions=partitions)
        write = streaming_write({"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": "out"}, directory)
        rates, prepared, driver, broker, size = [], [], 0.0, 0.0, 0.0
        profiler = cProfile.Profile()
        for batch in range(_WARM_UPS + _RUNS + 1):
            began = time.perf_counter()
            messages = prepare(write, batch, directory)
            preparing = time.perf_counter() - began
            encoded = sum(message.encoded_bytes for message in messages)
            size = encoded / sum(len(chunk.batches) for message in messages for chunk in message.chunks)
            cpu, broker_cpu, began = time.process_time(), cpu_seconds(kafka.pid), time.perf_counter()
            if batch == _WARM_UPS + _RUNS:
                profiler.runcall(write.commit, batch, messages)
                continue
            write.commit(batch, messages)
            took = time.perf_counter() - began
            if batch >= _WARM_UPS:
                rates.append(encoded / took)
                prepared.append(encoded / preparing)
                driver += (time.process_time() - cpu) / (_RUNS * encoded / 1e9)
                broker += (cpu_seconds(kafka.pid) - broker_cpu) / (_RUNS * encoded / 1e9)
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(_PROFILED)
    return Published(rates, prepared, size, driver, broker, text.getvalue())


def streaming_write(options: dict[str, str], directory: Path) -> KafkaExactlyOnceStreamingWrite:
    """Return the sink of a query whose checkpoint is made here."""
    checkpoint = directory / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text(json.dumps({"id": "bench"}))
    (checkpoint / "offsets").mkdir()
    given = {**options, "deliveryGuarantee": "exactly_once", "checkpointLocation": str(checkpoint)}
    parsed = parse_write_options(given, streaming=True)
    if parsed.exactly_once is None:
        raise RuntimeError("the write is not exactly once")
    return KafkaExactlyOnceStreamingWrite(parsed, parsed.exactly_once, SinkColumns(key=0, value=1))


def prepare(
    write: KafkaExactlyOnceStreamingWrite, batch: int, directory: Path, *, tasks: int = _TASKS, mib: int = _TASK_MIB
) -> Sequence[PreparedMessage]:
    """Run the tasks of a micro-batch: rows of 1 kB, uncompressed; their keys spread them over all partitions."""
    log_entry = ["v1", json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}}), json.dumps(batch)]
    (directory / "checkpoint" / "offsets" / str(batch)).write_text("\n".join(log_entry))
    factory = write.createStreamingWriterFactory(PhysicalWriteInfo())
    draw = random.Random(11)
    keys = pa.array([draw.randbytes(_KEY_BYTES) for _ in range(_ROWS)], pa.binary())
    values = pa.array([draw.randbytes(_VALUE_BYTES)] * _ROWS, pa.binary())
    rows = pa.record_batch([keys, values], names=["key", "value"])
    messages = []
    for task in range(tasks):
        writer = factory.createWriter(task, batch * tasks + task, batch)
        try:
            for first in itertools.count(0, rows.num_rows):
                left = mib * _MIB // (_KEY_BYTES + _VALUE_BYTES) - first
                if left <= 0:
                    break
                writer.write(rows.slice(0, min(left, rows.num_rows)))
            message = writer.commit()
        finally:
            writer.close()
        if not isinstance(message, PreparedMessage):
            raise TypeError(f"a task gave {type(message).__name__}")
        messages.append(message)
    return messages
