"""Print what exactly-once micro-batches cost whose tasks publish, beside those that the driver publishes.

In one process, with a broker of its own and without Spark: the CPU time of a task for each GB, from rows to bytes that
are acknowledged or spooled; the CPU time of the driver for each GB, from its planning to the end of its commit; and
how many transactions of tasks a driver ends in a second. CPU times are of this process, and so mean something on a
machine with other work; seconds do not.
Run: python bench/task_commits.py [--mb 200 --partitions 4]
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table

from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.options import ExactlyOnceOptions, WriteOptions, parse_write_options
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.driver.exactly_once import KafkaExactlyOnceStreamingWrite
from pyspark_kafka._connector.sink.driver.tasks.commit_calls import BrokerTaskCommitCalls
from pyspark_kafka._connector.sink.driver.tasks.exactly_once import KafkaTaskCommitStreamingWrite
from pyspark_kafka.connector import PhysicalWriteInfo
from pyspark_kafka.testing import EmbeddedKafka

_ROW_BYTES, _KEY_BYTES = 1_000, 16
_ROWS = 4_000


def main(
    mb: Annotated[int, typer.Option(help="Bytes of a micro-batch, in MB.")] = 200,
    partitions: Annotated[int, typer.Option(help="Of the topic.")] = 4,
    tasks: Annotated[int, typer.Option(help="Of a micro-batch, one after another.")] = 4,
    transactions: Annotated[int, typer.Option(help="Transactions of tasks that are ended at once.")] = 64,
    buffer_mib: Annotated[int, typer.Option(help="kafka.buffer.memory, half of which a task gathers.")] = 32,
) -> None:
    """Print the table."""
    # The keys spread the rows over all partitions.
    keys = [row.to_bytes(_KEY_BYTES, "big") for row in range(_ROWS)]
    values = [bytes([row % 251]) * (_ROW_BYTES - _KEY_BYTES) for row in range(_ROWS)]
    rows = pa.RecordBatch.from_pydict({"key": keys, "value": values})
    figures = []
    with EmbeddedKafka(heap="1g") as kafka, tempfile.TemporaryDirectory() as place:
        kafka.create_topic("out", partitions)
        for commit in ("driver", "tasks"):
            query = _Query(kafka.bootstrap_servers, Path(place, commit), commit, buffer_mib)
            query.run(rows, 1, 1)
            count = max(1, mb * 1_000_000 // (tasks * rows.nbytes))
            figures.append((commit, *query.run(rows, tasks, count)))
        ends, ends_s = query.end_transactions(rows, transactions)
    console = Console(width=110)
    how = f"{tasks} tasks, kafka.buffer.memory {buffer_mib} MiB"
    table = Table(title=f"{mb} MB into {partitions} partitions, {how}; CPU of this process")
    for heading in (
        "exactlyOnceCommit",
        "task, s for 1 GB",
        "MB/s a core",
        "driver, s for 1 GB",
        "planning and commit, s",
    ):
        table.add_column(heading, justify="right")
    for commit, gb, task_s, driver_s, wall_s in figures:
        table.add_row(
            commit, f"{task_s / gb:.2f}", f"{1000 * gb / task_s:.0f}", f"{driver_s / gb:.3f}", f"{wall_s:.2f}"
        )
    console.print(table)
    console.print(f"{transactions} transactions ended in {ends_s:.2f} s: {ends / ends_s:.0f} a second")


class _Query:
    """A query without Spark; each micro-batch is planned, written task by task, and committed."""

    def __init__(self, servers: str, checkpoint: Path, commit: str, buffer_mib: int) -> None:
        (checkpoint / "offsets").mkdir(parents=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": uuid.uuid4().hex}))
        self._checkpoint, self._batch = checkpoint, -1
        given = {
            "kafka.bootstrap.servers": servers,
            "topic": "out",
            "kafka.buffer.memory": str(buffer_mib << 20),
        }
        options = parse_write_options(given, streaming=True)
        self.settings = ExactlyOnceOptions(
            checkpoint_location=str(checkpoint), spool_location=str(checkpoint / "spool"), commit=commit
        )
        self.options: WriteOptions = replace(options, exactly_once=self.settings)
        self._kind = KafkaTaskCommitStreamingWrite if commit == "tasks" else KafkaExactlyOnceStreamingWrite

    def run(self, rows: pa.RecordBatch, tasks: int, count: int) -> tuple[float, float, float, float]:
        """Run one micro-batch; return its GB, the CPU seconds of tasks and driver, and the driver's seconds."""
        self._batch += 1
        log = self._checkpoint / "offsets" / str(self._batch)
        log.write_text(f"v1\n{{}}\n{json.dumps({'source': {'0': self._batch + 1}})}")
        factory, plan_cpu, plan_s = _timed(
            lambda: self._job().createStreamingWriterFactory(PhysicalWriteInfo()).for_tasks()
        )

        def write() -> list[Any]:
            return [self._task(factory, number, rows, count) for number in range(tasks)]

        messages, task_s, _ = _timed(write)
        _, commit_cpu, commit_s = _timed(lambda: self._job().commit(self._batch, messages))
        return tasks * count * rows.nbytes / 1e9, task_s, plan_cpu + commit_cpu, plan_s + commit_s

    def end_transactions(self, rows: pa.RecordBatch, count: int) -> tuple[int, float]:
        """End transactions of as many tasks; return their number and the seconds."""
        self._batch += 1
        log = self._checkpoint / "offsets" / str(self._batch)
        log.write_text(f"v1\n{{}}\n{json.dumps({'source': {'0': self._batch + 1}})}")
        factory = self._job().createStreamingWriterFactory(PhysicalWriteInfo()).for_tasks()
        messages = [self._task(factory, number, rows.slice(0, 10), 1) for number in range(count)]
        sink_id = factory.planning.transaction.name
        with borrow_client(self.options.connection) as client:
            calls = BrokerTaskCommitCalls(client, self.options, self.settings, sink_id)
            done, _, seconds = _timed(lambda: calls.commit_tasks([message.task for message in messages]))
        return sum(done), seconds

    def _job(self) -> Any:
        return self._kind(self.options, self.settings, SinkColumns(key=0, value=1))

    @staticmethod
    def _task(factory: Any, number: int, rows: pa.RecordBatch, count: int) -> Any:
        writer = factory.createWriter(number, number, 1)
        for _ in range(count):
            writer.write(rows)
        message = writer.commit()
        writer.close()
        return message


def _timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    cpu, began = time.process_time(), time.monotonic()
    result = call()
    return result, time.process_time() - cpu, time.monotonic() - began


if __name__ == "__main__":
    typer.run(main)
