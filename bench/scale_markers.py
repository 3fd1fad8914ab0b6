"""What transaction markers cost a broker, and how epochs get longer for them: a real query into 100 partitions.

Each lane ends a transaction in each epoch, and each output partition that it has written to gets a marker. They are
counted from the ends of the logs: whatever is there beside the rows of the query. The broker has the same cores.
"""

from __future__ import annotations

import json
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from goals import Figure
from measure import cpu_seconds
from session import OURS, start_spark

from pyspark_kafka import continuous
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.pool import borrow_client, close_clients
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

_LANES, _PARTITIONS = 2, 100
_ROWS_A_LANE, _EVERY_S = 200, 0.08
_WARM_UP_S, _MEASURED_S, _FIRST_S = 10.0, 15.0, 120.0
_UNBOUNDED = 10**9
# Guarantee, epoch, markers a second.
_CASES = (
    ("at_least_once", "100 ms", None),
    ("exactly_once", "1 second", _UNBOUNDED),
    ("exactly_once", "100 ms", _UNBOUNDED),
    ("exactly_once", "100 ms", 500),
)


def measure() -> list[Figure]:
    """Return the lines of this part."""
    with (
        tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-") as place,
        EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS) as kafka,
    ):
        spark = start_spark(place, driver_memory="1g", slots=_LANES)
        try:
            return [
                _measured(spark, kafka, Path(place, f"checkpoint-{number}"), number, case)
                for number, case in enumerate(_CASES)
            ]
        finally:
            spark.stop()
            close_clients()


def _measured(
    spark: SparkSession, kafka: EmbeddedKafka, checkpoint: Path, number: int, case: tuple[str, str, int | None]
) -> Figure:
    guarantee, epoch, bound = case
    source, target = f"in-{number}", f"out-{number}"
    kafka.create_topic(source, _LANES)
    kafka.create_topic(target, _PARTITIONS)
    servers = {"kafka.bootstrap.servers": kafka.bootstrap_servers}
    markers = {} if bound is None else {"maxTransactionMarkersPerSecond": str(bound)}
    over = threading.Event()
    feeding = threading.Thread(target=_feed, args=({**servers, "topic": source}, over), daemon=True)
    feeding.start()
    query = (
        continuous.read(spark).format(OURS).options(**servers).option("subscribe", source).load()
        .mapInArrow(spread(_PARTITIONS), "value binary, partition int")
        .writeStream.format(OURS).options(**servers, **markers).option("topic", target)
        .option("deliveryGuarantee", guarantee).option("checkpointLocation", str(checkpoint))
        .trigger(continuous=epoch).start()
    )  # fmt: skip
    try:
        until = time.monotonic() + _FIRST_S
        while query.lastProgress is None and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(_WARM_UP_S)
        first: Any = query.lastProgress
        ends, cpu, began = _ends(servers, target), cpu_seconds(kafka.pid), time.monotonic()
        time.sleep(_MEASURED_S)
        last: Any = query.lastProgress
        written, used = _ends(servers, target) - ends, cpu_seconds(kafka.pid) - cpu
        took = time.monotonic() - began
        # Each record that was read is a row that was written; the source has no markers.
        rows = _read_to(last) - _read_to(first)
    finally:
        over.set()
        feeding.join()
        query.stop()
    found = max(0, written - rows) / took
    bounded = "" if bound in (None, _UNBOUNDED) else f", at most {bound} markers/s"
    return Figure(
        f"{_LANES} lanes into {_PARTITIONS} partitions, {guarantee}, epochs of {epoch}{bounded}",
        f"{found:,.0f} markers/s; broker {used / took:.2f} of a core; epochs of {last['epochIntervalMs']:,} ms"
        + (f" ({last['epochIntervalReason']})" if last["epochIntervalReason"] else ""),
        f"<= {bound} markers/s" if bounded else "",
        found <= 1.1 * bound if bounded and bound is not None else None,
        {"markers_s": found, "broker_cores": used / took, "epoch_ms": last["epochIntervalMs"]},
    )


def _read_to(progress: Any) -> int:
    nested = json.loads(progress["sources"][0]["endOffset"])
    return sum(offset for topic in nested.values() for offset in topic.values())


def spread(partitions: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that writes each row to a random partition."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = [random.randrange(partitions) for _ in range(batch.num_rows)]
            columns = [batch.column("value"), pa.array(numbers, pa.int32())]
            yield pa.RecordBatch.from_arrays(columns, ["value", "partition"])

    return write


def _feed(options: dict[str, str], over: threading.Event) -> None:
    partitions = pa.array([lane for lane in range(_LANES) for _ in range(_ROWS_A_LANE)], pa.int32())
    rows = pa.record_batch([pa.array([b"v" * 100] * len(partitions), pa.binary()), partitions], ["value", "partition"])
    writer = KafkaDataWriter(parse_write_options(options, streaming=False), SinkColumns(value=0, partition=1))
    try:
        while not over.wait(_EVERY_S):
            writer.write(rows)
            writer.flushNow()
        writer.commit()
    finally:
        writer.close()


def _ends(options: dict[str, str], topic: str) -> int:
    parsed = parse_write_options({**options, "topic": topic}, streaming=False)
    wanted = {TopicPartition(topic, number): Latest() for number in range(_PARTITIONS)}
    with borrow_client(parsed.connection) as client:
        return sum(list_offsets(client, wanted).values())
