"""The sides of the comparison of continuous queries: each copies a topic to another until it is stopped."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from continuous_figures import AT_LEAST_ONCE, EXACTLY_ONCE, REAL_TIME
from load import open_reader
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from session import JVM, OURS, jvm_process

from pyspark_kafka import continuous, lineage
from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from pyspark_kafka.continuous.state.by_key import StateByKey

CLIENTS, JVM_CONTINUOUS = "our clients, no engine", "Spark, continuous"
SEEN = "pyspark-kafka, at least once, traces and lineage"
COUNTING = "pyspark-kafka, running count by key"
COUNTING_ONCE = "pyspark-kafka, running count by key, exactly once"
JVM_COUNTING = "Spark, micro-batches, running count by key"
REAL_TIME_COUNTING = "Spark, real-time mode, running count by key"
OF_JVM = (JVM_CONTINUOUS, REAL_TIME, JVM_COUNTING, REAL_TIME_COUNTING)
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CONTEXT = multiprocessing.get_context("spawn")
_END_S = 20.0


class Copying(Protocol):
    """A copy that runs."""

    def failure(self) -> object:
        """Return why it ended; None if it runs."""

    def pids(self) -> tuple[list[int], list[int]]:
        """Return its processes: those that count alone, and those that count with all below them."""

    def stop(self) -> None:
        """End it."""


@dataclass(frozen=True)
class Place:
    """Where a copy reads and writes.

    Attributes:
        spark: the session.
        servers: of the broker.
        source, target: topics.
        checkpoint: a folder of its own.
    """

    spark: SparkSession
    servers: str
    source: str
    target: str
    checkpoint: str

    @property
    def kafka(self) -> dict[str, str]:
        """The option that all have."""
        return {"kafka.bootstrap.servers": self.servers}


class SparkCopy:
    """A query of Spark's JVM connector, or one of ours: their handles have the same names."""

    def __init__(self, place: Place, query: Any) -> None:
        self._place, self._query = place, query

    def failure(self) -> object:
        """Return why it ended; None if it runs."""
        return None if self._query.isActive else self._query.exception() or "it has ended"

    def pids(self) -> tuple[list[int], list[int]]:
        """Return this process, alone, and Spark's JVM with its Python workers."""
        return [os.getpid()], [jvm_process(self._place.spark)]

    def stop(self) -> None:
        """End the query."""
        self._query.stop()


class ClientsCopy:
    """Reader and writer of the connector in a loop, in a process of its own, without Spark and without epochs."""

    def __init__(self, place: Place) -> None:
        self._stop = _CONTEXT.Event()
        self._process = _CONTEXT.Process(
            target=_copy, args=(place.servers, place.source, place.target, self._stop), daemon=True
        )
        self._process.start()

    def failure(self) -> object:
        """Return why it ended; None if it runs."""
        return None if self._process.is_alive() else f"its process ended with {self._process.exitcode}"

    def pids(self) -> tuple[list[int], list[int]]:
        """Return the process."""
        pid = self._process.pid
        return ([] if pid is None else [pid]), []

    def stop(self) -> None:
        """End the process."""
        self._stop.set()
        self._process.join(_END_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _copy(servers: str, source: str, target: str, stop: threading.Event) -> None:
    kafka = {"kafka.bootstrap.servers": servers}
    writer = KafkaDataWriter(
        parse_write_options(kafka | {"topic": target}, streaming=True), SinkColumns(key=0, value=1)
    )
    with open_reader(servers, source, startingOffsets="latest") as reader:
        while not stop.is_set():
            if reader.next():
                writer.write(reader.get().select(["key", "value"]))
            writer.flushNow()
        writer.commit()
        writer.close()


def start_clients(place: Place) -> Copying:
    """Start the clients without an engine."""
    return ClientsCopy(place)


class SeenCopy(SparkCopy):
    """A query of ours whose session has lineage."""

    def __init__(self, place: Place, query: Any, listener: lineage.LineageListener) -> None:
        super().__init__(place, query)
        self._listener = listener

    def failure(self) -> object:
        """Return why it ended, or what was lost; None if it runs."""
        return super().failure() or (f"{self._listener.lost} events were lost" if self._listener.lost else None)

    def stop(self) -> None:
        """End the query and the lineage."""
        super().stop()
        self._listener.stop()


def start_seen(place: Place, epoch: str) -> Copying:
    """Start a continuous query of this package with spans and events; needs collectors."""
    listener = lineage.listen(place.spark)
    return SeenCopy(place, _started(place, epoch, {"traceContext": "link"}), listener)


def start_ours(place: Place, epoch: str, **options: str) -> Copying:
    """Start a continuous query of this package."""
    return SparkCopy(place, _started(place, epoch, {}, **options))


def _started(place: Place, epoch: str, both: dict[str, str], **options: str) -> Any:
    rows = continuous.read(place.spark).format(OURS).options(**place.kafka, **both, subscribe=place.source)
    writer = (
        rows.option("startingOffsets", "latest")
        .load()
        .select("key", "value")
        .writeStream.format(OURS)
        .options(**place.kafka, **both, topic=place.target, checkpointLocation=place.checkpoint, **options)
        .trigger(continuous=epoch)
    )
    return writer.start()


def start_counting(place: Place, epoch: str, **options: str) -> Copying:
    """Start a continuous query of this package whose keys become a running count, of 8,192 keys a partition."""

    # Within this function, so that it travels with the code: executors do not find this module.
    def counted(batch: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch:
        import pyarrow as pa  # noqa: PLC0415 - see above
        import pyarrow.compute as pc  # noqa: PLC0415 - see above

        def as_text(numbers: pa.Array) -> pa.Array:
            return pc.cast(pc.cast(numbers, pa.string()), pa.binary())

        keys = as_text(pc.bit_wise_and(batch.column("offset"), 8191))
        n = pc.add(pc.fill_null(state.get(keys).column("n"), 0), 1)
        state.update(keys, n=n)
        # The reader takes values of one length.
        return pa.RecordBatch.from_arrays([as_text(n), batch.column("value")], ["key", "value"])

    rows = continuous.read(place.spark).format(OURS).options(**place.kafka, subscribe=place.source)
    writer = (
        rows.option("startingOffsets", "latest")
        .load()
        .select("value", "offset")
        .mapWithState(counted, "key binary, value binary", "n bigint")
        .writeStream.format(OURS)
        .options(**place.kafka, topic=place.target, checkpointLocation=place.checkpoint, **options)
        .trigger(continuous=epoch)
    )
    return SparkCopy(place, writer.start())


def start_jvm(place: Place, trigger: dict[str, str]) -> Copying:
    """Start a query of Spark's JVM connector."""
    reader = place.spark.readStream.format(JVM).options(**place.kafka, subscribe=place.source)
    rows = reader.option("startingOffsets", "latest").load().select("key", "value")
    writer = rows.writeStream.format(JVM).options(**place.kafka, topic=place.target)
    # Real-time mode knows no other one; without aggregation it says the same as append.
    mode = "update" if "realTime" in trigger else "append"
    writer = writer.option("checkpointLocation", place.checkpoint).outputMode(mode).trigger(**trigger)
    return SparkCopy(place, writer.start())


def start_jvm_counting(place: Place, trigger: dict[str, str]) -> Copying:
    """Start a query of Spark's JVM connector with the count of `start_counting`, by `transformWithState`."""

    # Within this function, so that it travels with the code: executors do not find this module.
    class Counted(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._n = handle.getValueState("n", "n bigint")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: ARG002, N802, N803 - PySpark's
            (n,) = self._n.get() or (0,)
            for row in rows:
                n += 1
                yield Row(key=str(n).encode(), value=row.value)
            self._n.update((n,))

        def close(self) -> None:
            pass

    place.spark.conf.set("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
    # As many as there are partitions; the default is 200.
    place.spark.conf.set("spark.sql.shuffle.partitions", "2")
    reader = place.spark.readStream.format(JVM).options(**place.kafka, subscribe=place.source)
    rows = reader.option("startingOffsets", "latest").load().selectExpr("partition", "offset & 8191 AS id", "value")
    mode = "update" if "realTime" in trigger else "append"
    counted = rows.groupBy("partition", "id").transformWithState(Counted(), "key binary, value binary", mode, "None")
    writer = counted.writeStream.format(JVM).options(**place.kafka, topic=place.target)
    writer = writer.option("checkpointLocation", place.checkpoint).outputMode(mode).trigger(**trigger)
    return SparkCopy(place, writer.start())


def sides_of(
    *, with_jvm: bool, real_time: str, with_exactly_once: bool, with_state: bool, with_seen: bool
) -> dict[str, Callable[[Place], Copying]]:
    """Return the sides that take part, by name, in the order in which they run."""
    sides: dict[str, Callable[[Place], Copying]] = {CLIENTS: start_clients}
    if with_jvm:
        sides[JVM_CONTINUOUS] = lambda place: start_jvm(place, {"continuous": "1 second"})
        sides[REAL_TIME] = lambda place: start_jvm(place, {"realTime": real_time})
    sides[AT_LEAST_ONCE] = lambda place: start_ours(place, "1 second")
    if with_seen:
        sides[SEEN] = lambda place: start_seen(place, "1 second")
    if with_exactly_once:
        sides[EXACTLY_ONCE] = lambda place: start_ours(place, "100 ms", deliveryGuarantee="exactly_once")
    if with_state and with_jvm:
        sides[JVM_COUNTING] = lambda place: start_jvm_counting(place, {"processingTime": "0 seconds"})
        sides[REAL_TIME_COUNTING] = lambda place: start_jvm_counting(place, {"realTime": real_time})
    if with_state:
        sides[COUNTING] = lambda place: start_counting(place, "1 second")
        if with_exactly_once:
            sides[COUNTING_ONCE] = lambda place: start_counting(place, "100 ms", deliveryGuarantee="exactly_once")
    return sides
