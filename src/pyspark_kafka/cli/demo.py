"""`pyspark-kafka demo`: from an empty machine to a streaming aggregation on a real Kafka, and back out again."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from pyspark_kafka.cli.orders import OrderEvents
from pyspark_kafka.options import parse_write_options
from pyspark_kafka.sink.columns import SinkColumns
from pyspark_kafka.sink.executor.data_writer import KafkaDataWriter
from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

    from pyspark.sql import DataFrame
    from rich.status import Status

_ORDERS, _REVENUE = "orders", "revenue_by_country"
_PARTITIONS = 4
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_interrupted = threading.Event()
_ORDER_SCHEMA = "order_id LONG, customer STRING, country STRING, item STRING, cents LONG, time_ms LONG"


def run_demo(*, records: int, codec: str, keep_running: bool) -> None:
    """Run the whole demo; whatever it starts or writes is gone when it returns, also after Ctrl-C.

    Raises:
        KeyboardInterrupt: after Ctrl-C or SIGTERM, but for the one that `keep_running` waits for.
    """
    # Lines are left whole: the terminal breaks them where they are shown, not where they are copied.
    console = Console(soft_wrap=True)
    with ExitStack() as stack:
        _interrupted.clear()
        # SIGTERM too must run the clean-up below.
        stack.enter_context(_handled_by(_interrupt))
        ensure_java_for_spark()
        kafka = _start_kafka(console, stack)
        events = OrderEvents(records)
        _go_on()
        _produce(console, kafka.bootstrap_servers, events, codec)
        _go_on()
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-demo-"))
        spark = _start_spark(console, stack, directory)
        _aggregate(console, spark, kafka.bootstrap_servers, directory, codec, records)
        _go_on()
        _show(console, spark, kafka.bootstrap_servers, events)
        _go_on()
        if keep_running:
            _keep_running(console, kafka.bootstrap_servers)


@contextmanager
def _working(console: Console, text: str) -> Iterator[Status]:
    """Show what takes a while: as a spinner, or as a line where there is no terminal."""
    if not console.is_terminal:
        console.print(text)
    with console.status(text) as status:
        yield status


@contextmanager
def _spark_log_in(file: Path) -> Iterator[None]:
    """Have what Spark says at its start in a file, and show it if Spark does not start.

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


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    previous = [(number, signal.signal(number, handler)) for number in _ENDING_SIGNALS]
    try:
        yield
    finally:
        for number, handler_before in previous:
            signal.signal(number, handler_before)


def _interrupt(*_: object) -> None:
    # The call into the JVM that is broken off here would be logged as an error, with its traceback.
    logging.disable(logging.CRITICAL)
    _interrupted.set()
    raise KeyboardInterrupt


def _go_on() -> None:
    """End here if a signal has come before: raised within a finalizer, Python has dropped it."""
    if _interrupted.is_set():
        raise KeyboardInterrupt


def _start_kafka(console: Console, stack: ExitStack) -> EmbeddedKafka:
    began = time.monotonic()
    with _working(console, "Starting Apache Kafka (the first time, 44 MB of jars are fetched) …"):
        kafka = stack.enter_context(EmbeddedKafka())
        kafka.create_topic(_ORDERS, partitions=_PARTITIONS)
        kafka.create_topic(_REVENUE, partitions=1)
    console.print(
        f"Apache Kafka {kafka.version} is up at {kafka.bootstrap_servers} after {time.monotonic() - began:.1f} s.",
        highlight=False,
    )
    return kafka


def _produce(console: Console, bootstrap_servers: str, events: OrderEvents, codec: str) -> None:
    options = parse_write_options(
        {"kafka.bootstrap.servers": bootstrap_servers, "topic": _ORDERS, "kafka.compression.type": codec},
        streaming=False,
    )
    began = time.monotonic()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    writer = KafkaDataWriter(options, SinkColumns(key=0, value=1))
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task(f"Producing orders to '{_ORDERS}'", total=events.count)
            for batch in events.batches():
                writer.write(batch)
                progress.advance(task, batch.num_rows)
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
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
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
            ("spark.sql.warehouse.dir", f"{directory}/warehouse"),
            ("spark.sql.shuffle.partitions", "2"),
            ("spark.sql.session.timeZone", "UTC"),
        ]
    )
    with _working(console, "Starting Spark …") as status, _spark_log_in(Path(directory) / "spark.log"):
        spark = _start_uninterrupted(settings, stack, status)
    console.print(f"Spark {spark.version} is up after {time.monotonic() - began:.1f} s.", highlight=False)
    return spark


def _start_uninterrupted(settings: SparkConf, stack: ExitStack, status: Status) -> SparkSession:
    """Start Spark; an interrupt meanwhile is raised when it is up, and only then can be stopped.

    Broken off earlier, PySpark forgets the JVM that it has launched, and that lives on.
    """
    interrupted = threading.Event()

    def hold(*_: object) -> None:
        # Where the signal went to the JVM as well, what fails now would be logged with its traceback.
        logging.disable(logging.CRITICAL)
        interrupted.set()
        status.update("Interrupted: stopping as soon as Spark is up …")

    with _handled_by(hold), ThreadPoolExecutor(1) as thread:
        try:
            # In the main thread PySpark would put its own handler in place of `hold`. The session must be made in the
            # main thread, though: in the JVM it belongs to the thread.
            thread.submit(SparkContext.getOrCreate, settings).result()
            spark = SparkSession.builder.config(conf=settings).getOrCreate()
            stack.push(partial(_stop_spark, spark))
        except Exception:
            if not interrupted.is_set():
                raise
    if interrupted.is_set():
        raise KeyboardInterrupt
    return spark


def _stop_spark(
    spark: SparkSession, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
) -> None:
    if kind is not KeyboardInterrupt and not _interrupted.is_set():
        spark.stop()
        return
    # A signal to the whole process group may have ended the JVM already.
    with suppress(Py4JError, OSError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark.stop()


def _aggregate(
    console: Console, spark: SparkSession, bootstrap_servers: str, directory: str, codec: str, records: int
) -> None:
    orders = (
        spark.readStream.format("pyspark_kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", _ORDERS)
        .option("startingOffsets", "earliest")
        .load()
        .select(sf.from_json(sf.col("value").cast("string"), _ORDER_SCHEMA).alias("o"))
        .select("o.*", sf.timestamp_millis("o.time_ms").alias("time"))
    )
    revenue = (
        orders.withWatermark("time", "10 minutes")
        .groupBy(sf.window("time", "10 minutes").alias("w"), "country")
        .agg(sf.sum("cents").alias("cents"), sf.count("*").alias("orders"))
        .select(
            sf.concat_ws("@", "country", sf.col("w.start")).alias("key"),
            sf.to_json(sf.struct("country", sf.col("w.start").alias("start"), "cents", "orders")).alias("value"),
        )
    )
    began = time.monotonic()
    with _working(
        console, f"Spark reads '{_ORDERS}' as a stream, sums by country and 10 minutes, writes '{_REVENUE}' …"
    ):
        query = (
            revenue.writeStream.format("pyspark_kafka")
            .option("kafka.bootstrap.servers", bootstrap_servers)
            .option("kafka.compression.type", codec)
            .option("topic", _REVENUE)
            .option("checkpointLocation", f"{directory}/checkpoint")
            .outputMode("append")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    read = sum(progress.numInputRows for progress in query.recentProgress)
    _report(console, f"Streamed {read:,} orders through Spark into '{_REVENUE}'", records, began)


def _show(console: Console, spark: SparkSession, bootstrap_servers: str, events: OrderEvents) -> None:
    began = time.monotonic()
    console.print(f"Reading '{_REVENUE}' back …")
    revenue = (
        spark.read.format("pyspark_kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", _REVENUE)
        .load()
    )
    rows = _totals(revenue).collect()
    windows = sum(row["windows"] for row in rows)
    # No rate: of a handful of records it would be that of Spark's start of the query.
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
    parsed = sf.from_json(sf.col("value").cast("string"), "country STRING, cents LONG, orders LONG").alias("v")
    return (
        revenue.select(parsed)
        .groupBy("v.country")
        .agg(sf.count("*").alias("windows"), sf.sum("v.orders").alias("orders"), sf.sum("v.cents").alias("cents"))
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
        f'      .option("subscribe", "{_ORDERS}").load())\n'
        'df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)", "partition", "offset").show(truncate=False)\n'
    )
    # The signal that is waited for is the end that was asked for, not an interruption. It may come during the print,
    # and must not raise there: rich would print the text again with the next line. A SimpleQueue takes what a signal
    # handler puts even while the main thread is about to wait; an Event's lock would be held by that thread itself.
    signals: SimpleQueue[int] = SimpleQueue()
    with _handled_by(lambda number, _frame: signals.put(number)):
        console.print(text, markup=False, highlight=False)
        signals.get()
        console.print("Stopping. The broker and its files will be gone.")
