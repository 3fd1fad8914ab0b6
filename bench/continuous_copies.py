"""Whole topics copied to others, as they are and with a field of their JSON changed: a batch of each side, in turns."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from continuous_figures import Copy
from measure import cpu_seconds, cpu_seconds_below
from pyspark import cloudpickle
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom
from session import JVM, OURS, jvm_process
from topics import fill_topic

from pyspark_kafka import continuous

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from rich.console import Console

    from pyspark_kafka.testing import EmbeddedKafka

PARTITIONS = 4
AS_IT_IS, JSON = "as it is", "JSON, a field changed"
GOALS = {AS_IT_IS: 8.0, JSON: 4.0}
BASELINE = "Spark, batch"
_OURS = "pyspark-kafka, availableNow"
_FIELDS = pa.schema([("id", pa.int64()), ("city", pa.string()), ("amount", pa.int64()), ("note", pa.string())])
_LZ4 = {"kafka.compression.type": "lz4"}
_DDL = "id bigint, city string, amount bigint, note string"


def with_other_amount(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows whose JSON has another amount: parsed, changed and written in Arrow.

    Args:
        batch: key, and value with JSON objects of `_FIELDS`, each on one line.
    """
    # Lines end to end are what Arrow's reader of JSON takes.
    lines = pc.binary_join_element_wise(batch.column("value"), b"", b"\n").buffers()[2]
    parsed = pyarrow.json.read_json(
        pa.BufferReader(lines),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=lines.size + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=_FIELDS, unexpected_field_behavior="ignore"),
    ).combine_chunks()
    values = pc.binary_join_element_wise(
        '{"id":',
        parsed["id"].cast(pa.string()),
        ',"city":"',
        _escaped(parsed["city"]),
        '","amount":',
        pc.add(parsed["amount"], 1).cast(pa.string()),
        ',"note":"',
        _escaped(parsed["note"]),
        '"}',
        "",
    )
    values = values.chunk(0) if isinstance(values, pa.ChunkedArray) else values
    return pa.record_batch([batch.column("key"), values.cast(pa.binary())], names=["key", "value"])


def _escaped(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts as they are in JSON, without the quotes around them; few need another form."""
    if not pc.any(pc.match_substring_regex(texts, r'["\\\x00-\x1f]')).as_py():
        return texts
    return pa.chunked_array([pa.array([json.dumps(text)[1:-1] for text in texts.to_pylist()], pa.string())])


class CopyBench:
    """One broker, one Spark session, and a topic to copy.

    Args:
        kafka: the broker.
        spark: the session.
        directory: for checkpoints.
        records: of the topic.
        runs: counted copies of each side, after one that is not counted.
        with_jvm: whether the JVM connector takes part.
        console: where each copy is noted.
    """

    def __init__(
        self,
        kafka: EmbeddedKafka,
        spark: SparkSession,
        directory: str,
        records: int,
        runs: int,
        *,
        with_jvm: bool,
        console: Console,
    ) -> None:
        self._kafka, self._spark, self._directory = kafka, spark, directory
        self._records, self._runs, self._with_jvm = records, runs, with_jvm
        self._console = console
        self._numbers = itertools.count()

    def measure(self) -> list[Copy]:
        """Run every case."""
        # Workers cannot import this module.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
        self._kafka.create_topic("orders", partitions=PARTITIONS)
        fill_topic(self._kafka.bootstrap_servers, "orders", records=self._records, codec="lz4")
        return [copy for case in GOALS for copy in self._case(case)]

    def _case(self, case: str) -> list[Copy]:
        sides: dict[str, Callable[[str, str], None]] = {_OURS: self._ours}
        if self._with_jvm:
            sides = {BASELINE: self._spark_batch, **sides}
        runs: dict[str, list[tuple[float, float, float]]] = {side: [] for side in sides}
        for run in range(self._runs + 1):
            for side, copy in sides.items():
                target = f"orders-copied-{next(self._numbers)}"
                self._kafka.create_topic(target, partitions=PARTITIONS)
                began, cpu = time.monotonic(), self._cpu()
                copy(case, target)
                took, after = time.monotonic() - began, self._cpu()
                rate = f"{self._records / took / 1e6:.2f} M records/s"
                self._console.print(f"copy, {case}, {side}, run {run}: {took:.2f} s, {rate}", highlight=False)
                if run:
                    runs[side].append((took, after[0] - cpu[0], after[1] - cpu[1]))
                self._kafka.delete_topic(target)
        return [self._copy_of(case, side, found) for side, found in runs.items()]

    def _copy_of(self, case: str, side: str, runs: list[tuple[float, float, float]]) -> Copy:
        seconds, engine, broker = zip(*runs, strict=True)
        per_record = 1e6 / self._records
        return Copy(
            case,
            side,
            self._records,
            seconds,
            per_record * statistics.median(engine),
            per_record * statistics.median(broker),
        )

    def _cpu(self) -> tuple[float, float]:
        return cpu_seconds(os.getpid()) + cpu_seconds_below(jvm_process(self._spark)), cpu_seconds(self._kafka.pid)

    def _spark_batch(self, case: str, target: str) -> None:
        reader = self._spark.read.format(JVM).options(**self._options, subscribe="orders")
        rows = reader.load().select("key", "value")
        if case == JSON:
            text = F.from_json(F.col("value").cast("string"), _DDL)
            row = rows.select("key", text.alias("row"))
            changed = F.col("row").withField("amount", F.col("row.amount") + 1)
            rows = row.select("key", F.to_json(changed).alias("value"))
        rows.write.format(JVM).options(**self._options, topic=target, **_LZ4).mode("append").save()

    def _ours(self, case: str, target: str) -> None:
        reader = continuous.read(self._spark).format(OURS).options(**self._options, subscribe="orders")
        rows = reader.option("startingOffsets", "earliest").load().select("key", "value")
        if case == JSON:
            rows = rows.mapBatches(with_other_amount)
        writer = rows.writeStream.format(OURS).options(**self._options, topic=target, **_LZ4)
        writer.option("checkpointLocation", f"{self._directory}/{target}")
        writer.trigger(availableNow=True).start().awaitTermination()

    @property
    def _options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self._kafka.bootstrap_servers}
