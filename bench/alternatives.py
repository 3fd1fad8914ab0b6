"""What `run.py` measures: reads, writes and copies of each connector, and of sources and sinks without Kafka."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import prepared
from measure import time_in_turns
from session import JVM, OURS
from topics import fill_topic, order_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from measure import Timing
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_kafka.testing import EmbeddedKafka

PARTITIONS = 4
KEY_VALUE = "key binary, value binary"


@dataclass(frozen=True)
class Case:
    """One line of the result: rows/s of each side, and what the ratio has to be."""

    name: str
    rows: int
    ours_seconds: float
    jvm_seconds: float | None
    goal: float
    ours_broker_seconds: float
    jvm_broker_seconds: float | None

    @property
    def ratio(self) -> float | None:
        """How many times the JVM connector's rows/s ours are."""
        return None if self.jvm_seconds is None else self.jvm_seconds / self.ours_seconds


class Bench:
    """One broker, one Spark session, and the sides that take part.

    Args:
        kafka: the broker.
        spark: the session.
        spool: where exactly-once writes put what tasks do not return.
        with_jvm: whether the JVM connector takes part.
        runs: counted runs of each case.
        warm_ups: runs before these.
        on_run: told after each run of all alternatives: how many there were, and how many seconds it took.
    """

    def __init__(
        self,
        kafka: EmbeddedKafka,
        spark: SparkSession,
        spool: str,
        *,
        with_jvm: bool,
        runs: int,
        warm_ups: int,
        on_run: Callable[[int, float], None],
    ) -> None:
        self._kafka = kafka
        self._spool = spool
        self._spark = spark
        self._sides = (OURS, JVM) if with_jvm else (OURS,)
        self._runs = runs
        self._warm_ups = warm_ups
        self._on_run = on_run
        self._numbers = itertools.count()

    def topic(self, name: str, *, records: int, codec: str, value_bytes: int = 90) -> str:
        """Create a topic and fill it."""
        self._kafka.create_topic(name, partitions=PARTITIONS)
        fill_topic(self._kafka.bootstrap_servers, name, records=records, codec=codec, value_bytes=value_bytes)
        return name

    def read(self, side: str, topic: str, columns: str | None = None) -> Callable[[], None]:
        """Return a call that reads a whole topic and throws the rows away."""
        reader = self._spark.read.format(side).option("kafka.bootstrap.servers", self._kafka.bootstrap_servers)
        reader = reader.option("subscribe", topic)
        if columns is None:
            rows = reader.load()
        elif side == OURS:
            rows = reader.schema(columns).load()
        else:
            rows = reader.load().select(*(column.split()[0] for column in columns.split(", ")))
        return lambda: rows.write.format("noop").mode("overwrite").save()

    def floor(self, topic: str, records: int) -> dict[str, float]:
        """Return the rows/s of a Python source that has its batches ready: what Spark allows, whatever the source."""
        found = {}
        for name, columns in (("all columns", None), ("key + value", KEY_VALUE)):
            rows = self._prepared(topic, records, columns)
            found[f"source with its batches ready, {name}"] = records / self._median(
                rows.write.format("noop").mode("overwrite").save
            )
        return found

    def copy_floor(self, topic: str, records: int) -> dict[str, float]:
        """Return the rows/s from that source to a Python sink that throws its rows away."""
        prepared.register_sink(self._spark)
        writer = self._prepared(topic, records, KEY_VALUE).write.format(prepared.SINK_NAME).mode("append")
        return {"source with its batches ready, to a sink that throws them away": records / self._median(writer.save)}

    def _prepared(self, topic: str, records: int, columns: str | None) -> DataFrame:
        reader = self._spark.read.format(OURS).option("kafka.bootstrap.servers", self._kafka.bootstrap_servers)
        prepared.register(self._spark, reader.option("subscribe", topic).load().schema, PARTITIONS)
        source = self._spark.read.format(prepared.NAME).option("records", str(records))
        return (source.schema(columns) if columns else source).load()

    def sink_floor(self, rows: DataFrame, records: int) -> dict[str, float]:
        """Return the rows/s of a Python sink that throws its rows away: what Spark allows, whatever the sink."""
        prepared.register_sink(self._spark)
        writer = rows.write.format(prepared.SINK_NAME).mode("append")
        return {"sink that throws its rows away": records / self._median(writer.save)}

    def _median(self, call: Callable[[], None]) -> float:
        return self._time({"": call})[""].median

    def _time(self, calls: dict[str, Callable[[], None]]) -> dict[str, Timing]:
        return time_in_turns(
            calls, warm_ups=self._warm_ups, runs=self._runs, broker_pid=self._kafka.pid, on_run=self._on_run
        )

    def write(self, side: str, rows: DataFrame, *, exactly_once: bool = False) -> Callable[[], None]:
        """Return a call that writes all rows, with lz4, to a topic of its own.

        Spark's connector writes at least once, whatever is asked of ours.
        """
        topic = f"written-{next(self._numbers)}"
        self._kafka.create_topic(topic, partitions=PARTITIONS)
        writer = rows.write.format(side).option("kafka.bootstrap.servers", self._kafka.bootstrap_servers)
        writer = writer.option("topic", topic).option("kafka.compression.type", "lz4").mode("append")
        if exactly_once and side == OURS:
            writer = writer.option("deliveryGuarantee", "exactly_once").option("spoolLocation", self._spool)
        return writer.save

    def copy(self, side: str, topic: str, *, exactly_once: bool = False) -> Callable[[], None]:
        """Return a call that reads key and value of a whole topic and writes them to another."""
        reader = self._spark.read.format(side).option("kafka.bootstrap.servers", self._kafka.bootstrap_servers)
        reader = reader.option("subscribe", topic)
        rows = (reader.schema(KEY_VALUE) if side == OURS else reader).load().select("key", "value")
        return self.write(side, rows, exactly_once=exactly_once)

    def case(self, name: str, rows: int, goal: float, build: Callable[[str], Callable[[], None]]) -> Case:
        """Measure one case on every side, in turns."""
        calls = {side: build(side) for side in self._sides}
        timings = self._time(calls)
        ours, jvm = timings[OURS], timings.get(JVM)
        return Case(
            name,
            rows,
            ours.median,
            jvm.median if jvm else None,
            goal,
            ours.broker_median,
            jvm.broker_median if jvm else None,
        )


def rows_to_write(spark: SparkSession, records: int) -> DataFrame:
    """Return a cached DataFrame of `key` and `value`, two partitions, the same rows as the topics to read hold."""
    batch = order_rows(90)
    values = spark.createDataFrame(batch.to_pandas())
    copies = spark.range(0, -(-records // batch.num_rows), numPartitions=2)
    rows = copies.join(values).select("key", "value").cache()
    rows.count()
    return rows
