"""`pyspark-kafka demo`: from an empty machine to a streaming aggregation on a real Kafka, and back out again."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from rich.table import Table

from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter
from pyspark_kafka._connector.spark.processes.prepare import worker_program
from pyspark_kafka._ops.cli.common.heartbeat import Step
from pyspark_kafka._ops.cli.common.interrupts import (
    handled_by,
    interruptible,
    note_interrupt,
    raise_if_interrupted,
    was_interrupted,
)
from pyspark_kafka._ops.cli.orders import OrderEvents
from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka.testing import EmbeddedKafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from pyspark.sql import DataFrame
    from rich.console import Console

_ORDERS, _REVENUE = "orders", "revenue_by_country"
_PARTITIONS = 4
# Printed orders.
_SHOWN = 3
_ORDER_SCHEMA = "order_id LONG, customer STRING, country STRING, item STRING, cents LONG, time_ms LONG"
_REVENUE_SCHEMA = "country STRING, start TIMESTAMP, cents LONG, orders LONG"


def run_demo(console: Console, *, records: int, codec: str, keep_running: bool) -> None:
    """Run the whole demo; whatever it starts or writes is gone when it returns, also after Ctrl-C.

    Args:
        console: with `soft_wrap`: lines are to be copied as they are, whatever the width of the terminal.
        records: how many orders to produce.
        codec: the compression of the topics.
        keep_running: whether the broker stays up at the end, until Ctrl-C.

    Raises:
        KeyboardInterrupt: after Ctrl-C or SIGTERM; the Ctrl-C that `keep_running` waits for raises nothing.
        MissingDependencyError: without the packages that read JSON.
    """
    # Said before anything is started.
    JsonDecoder(pa.struct([]))
    with interruptible(), ExitStack() as stack:
        kafka = _start_kafka(console, stack)
        events = OrderEvents(records)
        raise_if_interrupted()
        _produce(console, kafka.bootstrap_servers, events, codec)
        raise_if_interrupted()
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-demo-"))
        spark = _start_spark(console, stack, directory)
        _show_orders(console, spark, kafka.bootstrap_servers)
        raise_if_interrupted()
        _aggregate(console, spark, kafka.bootstrap_servers, directory, codec, records)
        raise_if_interrupted()
        _show(console, spark, kafka.bootstrap_servers, events)
        raise_if_interrupted()
        if keep_running:
            _keep_running(console, kafka.bootstrap_servers)


@contextmanager
def _spark_log_in(file: Path) -> Iterator[None]:
    """Keep what Spark prints at its start in a file, and print it if Spark does not start.

    The JVM keeps the standard error that it is started with. Its first lines come before any log level can be set.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with file.open("wb") as log:
            os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
    except Exception:
        sys.stderr.write(file.read_text(errors="replace"))
        raise
    finally:
        os.close(kept)


def _start_kafka(console: Console, stack: ExitStack) -> EmbeddedKafka:
    began = time.monotonic()
    with Step(console, "Starting Apache Kafka") as step:
        kafka = EmbeddedKafka(progress=step.update)
        stack.callback(_stop_kafka, console, kafka)
        kafka.start()
        step.update("Creating topics")
        kafka.create_topic(_ORDERS, partitions=_PARTITIONS)
        kafka.create_topic(_REVENUE, partitions=1)
    console.print(
        f"Apache Kafka {kafka.version} is up at {kafka.bootstrap_servers} after {time.monotonic() - began:.1f} s.",
        highlight=False,
    )
    return kafka


def _stop_kafka(console: Console, kafka: EmbeddedKafka) -> None:
    with Step(console, "Stopping Apache Kafka"):
        kafka.close()


def _produce(console: Console, bootstrap_servers: str, events: OrderEvents, codec: str) -> None:
    options = parse_write_options(
        {"kafka.bootstrap.servers": bootstrap_servers, "topic": _ORDERS, "kafka.compression.type": codec},
        streaming=False,
    )
    began = time.monotonic()
    produced = 0
    writer = KafkaDataWriter(options, SinkColumns(key=0, value=1))
    try:
        with Step(console, f"Producing orders to '{_ORDERS}'") as step:
            for batch in events.batches():
                writer.write(batch)
                produced += batch.num_rows
                step.update(f"Producing orders to '{_ORDERS}': {produced:,} of {events.count:,}")
            writer.commit()
    finally:
        writer.close()
    _report(
        console,
        f"Produced {events.count:,} orders to '{_ORDERS}' ({_PARTITIONS} partitions, {codec})",
        events.count,
        began,
    )


def _start_spark(console: Console, stack: ExitStack, directory: str) -> SparkSession:
    # Workers must run the interpreter that has this package, whatever `python3` is on PATH.
    program = worker_program()
    python = str(program) if program.is_file() else sys.executable
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python
    began = time.monotonic()
    settings = SparkConf().setMaster("local[2]").setAppName("pyspark-kafka demo")
    settings.setAll(
        [
            ("spark.ui.enabled", "false"),
            ("spark.ui.showConsoleProgress", "false"),
            ("spark.log.level", "ERROR"),
            ("spark.driver.host", "127.0.0.1"),
            ("spark.driver.bindAddress", "127.0.0.1"),
            ("spark.local.dir", directory),
            # An interrupt may end the JVM before it has removed what it unpacked.
            ("spark.driver.extraJavaOptions", f'"-Djava.io.tmpdir={directory}"'),
            ("spark.sql.warehouse.dir", f"{directory}/warehouse"),
            ("spark.sql.shuffle.partitions", "2"),
            ("spark.sql.session.timeZone", "UTC"),
        ]
    )
    with Step(console, "Starting Spark") as step, _spark_log_in(Path(directory) / "spark.log"):
        spark = _start_uninterrupted(console, settings, stack, step)
    console.print(f"Spark {spark.version} is up after {time.monotonic() - began:.1f} s.", highlight=False)
    return spark


def _start_uninterrupted(console: Console, settings: SparkConf, stack: ExitStack, step: Step) -> SparkSession:
    """Start Spark; an interrupt meanwhile is raised when it is up, and only then can be stopped.

    Broken off earlier, PySpark forgets the JVM that it has launched, and that lives on.
    """

    def hold(*signal_and_frame: object) -> None:
        # Where the signal went to the JVM as well, what fails now would be logged with its traceback.
        note_interrupt(*signal_and_frame)
        step.update("Interrupted: stopping as soon as Spark is up")

    with handled_by(hold), ThreadPoolExecutor(1) as thread:
        try:
            # In the main thread PySpark would put its own handler in place of `hold`. The session must be made in the
            # main thread, though: in the JVM it belongs to the thread.
            thread.submit(SparkContext.getOrCreate, settings).result()
            spark = SparkSession.builder.config(conf=settings).getOrCreate()
            stack.push(partial(_stop_spark, console, spark))
        except Exception:
            if not was_interrupted():
                raise
    raise_if_interrupted()
    return spark


def _stop_spark(
    console: Console,
    spark: SparkSession,
    kind: type[BaseException] | None,
    _error: BaseException | None,
    _trace: TracebackType | None,
) -> None:
    with Step(console, "Stopping Spark"):
        if kind is not KeyboardInterrupt and not was_interrupted():
            spark.stop()
            return
        # A signal to the whole process group may have ended the JVM already.
        with suppress(Py4JError, OSError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spark.stop()


def _show_orders(console: Console, spark: SparkSession, bootstrap_servers: str) -> None:
    """Print the first orders: JSON in the topic, columns in Spark."""
    with Step(console, f"Reading the first records of '{_ORDERS}'"):
        orders = (
            spark.read.format("pyspark_kafka")
            .option("kafka.bootstrap.servers", bootstrap_servers)
            .option("subscribe", _ORDERS)
            .option("valueFormat", "json")
            .option("valueSchema", _ORDER_SCHEMA)
            .load()
            .select("value.*")
        )
        rows = orders.limit(_SHOWN).collect()
    table = Table(title=f"First records of topic '{_ORDERS}': JSON, read as columns with valueFormat=json")
    for field in orders.schema.fields:
        table.add_column(f"{field.name} {field.dataType.simpleString()}")
    for row in rows:
        table.add_row(*map(str, row))
    console.print(table)


def _aggregate(
    console: Console, spark: SparkSession, bootstrap_servers: str, directory: str, codec: str, records: int
) -> None:
    began = time.monotonic()
    with Step(console, f"Spark reads '{_ORDERS}' as a stream, sums by country and 10 minutes, writes '{_REVENUE}'"):
        orders = (
            spark.readStream.format("pyspark_kafka")
            .option("kafka.bootstrap.servers", bootstrap_servers)
            .option("subscribe", _ORDERS)
            .option("startingOffsets", "earliest")
            .option("valueFormat", "json")
            .option("valueSchema", _ORDER_SCHEMA)
            .load()
        )
        query = (
            _sums(orders)
            .writeStream.format("pyspark_kafka")
            .option("kafka.bootstrap.servers", bootstrap_servers)
            .option("kafka.compression.type", codec)
            .option("topic", _REVENUE)
            .option("valueFormat", "json")
            # A path without a scheme may be on HDFS.
            .option("checkpointLocation", Path(directory, "checkpoint").as_uri())
            .outputMode("append")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    read = sum(progress.numInputRows for progress in query.recentProgress)
    _report(console, f"Streamed {read:,} orders through Spark into '{_REVENUE}'", records, began)


def _sums(orders: DataFrame) -> DataFrame:
    """Return a record for each country and 10 minutes of event time, with what its orders come to."""
    timed = orders.select("value.*", sf.timestamp_millis("value.time_ms").alias("time"))
    return (
        timed.withWatermark("time", "10 minutes")
        .groupBy(sf.window("time", "10 minutes").alias("w"), "country")
        .agg(sf.sum("cents").alias("cents"), sf.count("*").alias("orders"))
        .select(
            sf.concat_ws("@", "country", sf.col("w.start")).alias("key"),
            sf.struct("country", sf.col("w.start").alias("start"), "cents", "orders").alias("value"),
        )
    )


def _show(console: Console, spark: SparkSession, bootstrap_servers: str, events: OrderEvents) -> None:
    began = time.monotonic()
    with Step(console, f"Reading '{_REVENUE}' back"):
        revenue = (
            spark.read.format("pyspark_kafka")
            .option("kafka.bootstrap.servers", bootstrap_servers)
            .option("subscribe", _REVENUE)
            .option("valueFormat", "json")
            .option("valueSchema", _REVENUE_SCHEMA)
            .load()
        )
        rows = _totals(revenue).collect()
    windows = sum(row["windows"] for row in rows)
    # No rate: with a handful of records it would measure Spark's start of the query.
    console.print(
        f"Read '{_REVENUE}' back in batch: {windows:,} records in {time.monotonic() - began:.1f} s.", highlight=False
    )
    table = Table(title=f"Revenue by country, from topic '{_REVENUE}'")
    for name in ("country", "windows", "orders", "revenue"):
        table.add_column(name, justify="left" if name == "country" else "right")
    for row in rows:
        table.add_row(row["country"], str(row["windows"]), f"{row['orders']:,}", f"{row['cents'] / 100:,.2f}")
    console.print(table)
    found = {row["country"]: row["cents"] for row in rows}
    if found != events.cents_by_country:
        raise RuntimeError(f"the sums differ from what was produced: expected {events.cents_by_country}, read {found}")
    console.print(
        f"Checked: every country's sum equals what was produced, {sum(row['orders'] for row in rows):,} orders in all. "
        "One more, dated a day later, closed their windows; its own window is still open.",
        style="green",
        highlight=False,
    )


def _totals(revenue: DataFrame) -> DataFrame:
    return (
        revenue.select("value.*")
        .groupBy("country")
        .agg(sf.count("*").alias("windows"), sf.sum("orders").alias("orders"), sf.sum("cents").alias("cents"))
        .orderBy(sf.desc("cents"))
    )


def _report(console: Console, what: str, records: int, began: float) -> None:
    seconds = time.monotonic() - began
    console.print(f"{what}: {seconds:.1f} s, {records / seconds:,.0f} records/s.", highlight=False)


def _keep_running(console: Console, bootstrap_servers: str) -> None:
    beside = Path(sys.executable).with_name("pyspark")
    shell = f"PYSPARK_PYTHON={shlex.quote(sys.executable)} {shlex.quote(str(beside)) if beside.exists() else 'pyspark'}"
    text = (
        f"\nThe broker stays up at {bootstrap_servers} until Ctrl-C. Start a shell in another terminal:\n\n{shell}\n\n"
        "Paste there:\n\n"
        'df = (spark.read.format("pyspark_kafka")\n'
        f'      .option("kafka.bootstrap.servers", "{bootstrap_servers}")\n'
        f'      .option("subscribe", "{_ORDERS}").option("valueFormat", "json")\n'
        f'      .option("valueSchema", "{_ORDER_SCHEMA}").load())\n'
        'df.select("value.*", "partition", "offset").show(truncate=False)\n'
    )
    # The awaited signal is the requested end, not an interruption. It may come during the print,
    # and must not raise there: rich would print the text again with the next line. A SimpleQueue takes what a signal
    # handler puts even while the main thread is about to wait; an Event's lock would be held by that thread itself.
    signals: SimpleQueue[int] = SimpleQueue()
    with handled_by(lambda number, _frame: signals.put(number)):
        console.print(text, markup=False, highlight=False)
        signals.get()
        console.print("Stopping. The broker and its files will be gone.")
