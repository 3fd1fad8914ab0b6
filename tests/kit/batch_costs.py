"""What one micro-batch costs in Kafka's source and sink, in calls: numbers that do not depend on the machine.

The steps are those of the driver and of one task, without Spark. The broker is a fake in other threads.
"""

from __future__ import annotations

import pickle
import time
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING
from unittest.mock import patch

from kit.costs import without_collections
from kit.cycle import SOURCE, TARGET, CallCount, Shape, Turn, record_batches
from kit.fakes.tcp_cluster import TcpCluster
from pyspark_kafka._client.client.cluster.pool import ClientPool, close_clients
from pyspark_kafka._client.client.produce.pool import ProducerPool
from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

# Connections are made, leaders are known, workers keep their producers.
_WARM_BATCHES = 5
LATEST, PLAN, READ, WRITE = "driver: latestOffset", "driver: planInputPartitions", "task: read", "task: write"
STEPS = (LATEST, PLAN, READ, WRITE)


def count_batch(partitions: int, *, records: int = 10, batches: int = 10) -> dict[str, Turn]:
    """Return what the steps of a micro-batch cost: of several micro-batches the fewest Python calls of each step.

    Args:
        partitions: of the source, each with a task of its own; the target has as many.
        records: of each partition.
        batches: how many are counted.
    """
    with _open(partitions) as cycle, without_collections():
        arrived = record_batches(Shape(partitions, records))
        for _ in range(_WARM_BATCHES):
            cycle.run(arrived)
        timed = [cycle.run(arrived, counts=False) for _ in range(batches)]
        counted = [cycle.run(arrived) for _ in range(batches)]
    found = {step: min((turns[step] for turns in counted), key=lambda turn: turn.python_calls) for step in STEPS}
    for step, turn in found.items():
        turn.cpu_ms = min(turns[step].cpu_ms for turns in timed)
    return found


class _Batches:
    """Micro-batches of one stream, from a topic to another."""

    def __init__(self, cluster: TcpCluster, partitions: int, resources: ExitStack) -> None:
        self._cluster, self._partitions = cluster, partitions
        for topic in (SOURCE, TARGET):
            cluster.add_topic(topic, partitions=partitions)
        kafka = {"kafka.bootstrap.servers": ",".join(f"{host}:{port}" for host, port in cluster.bootstrap_servers)}
        resources.callback(close_clients)
        self._stream = KafkaMicroBatchStream.from_options(kafka | {"subscribe": SOURCE, "startingOffsets": "earliest"})
        resources.callback(self._stream.stop)
        self._write_options = parse_write_options(kafka | {"topic": TARGET}, streaming=True)
        self._start = self._stream.initialOffset()

    def run(self, arrived: list[bytes], *, counts: bool = True) -> dict[str, Turn]:
        """Run one micro-batch; return what each step took, of its last task: calls, or only CPU time."""
        for number in range(self._partitions):
            for each in arrived:
                self._cluster.logs[SOURCE, number].append(each)
        found = {step: Turn() for step in STEPS}

        @contextmanager
        def step(name: str) -> Iterator[None]:
            count = CallCount()
            began = time.thread_time()
            with count if counts else nullcontext():
                yield
            found[name] = count.turn
            found[name].cpu_ms = (time.thread_time() - began) * 1000

        with step(LATEST):
            end = self._stream.latestOffset(self._start, self._stream.getDefaultReadLimit())
        with step(PLAN):
            planned = self._stream.planInputPartitions(self._start, end)
        # As Spark sends them to tasks.
        sent = pickle.dumps((self._stream.createReaderFactory(), planned))
        factory, tasks = pickle.loads(sent)  # noqa: S301 - our own bytes
        for task in tasks:
            rows: list[pa.RecordBatch] = []
            with step(READ):
                reader = factory.createReader(task)
                while reader.next():
                    rows.append(reader.get())
                reader.close()
            selected = [each.select(["key", "value", "partition"]) for each in rows]
            with step(WRITE):
                writer = KafkaDataWriter(self._write_options, SinkColumns(key=0, value=1, partition=2))
                for each in selected:
                    writer.write(each)
                writer.commit()
                writer.close()
        self._stream.commit(end)
        self._start = end
        return found


@contextmanager
def _open(partitions: int) -> Iterator[_Batches]:
    with (
        # Without the clusters that other tests of this process have talked to.
        patch("pyspark_kafka._client.client.cluster.pool._POOL", ClientPool()),
        patch("pyspark_kafka._client.client.produce.pool._POOL", ProducerPool()),
        TcpCluster() as cluster,
        ExitStack() as resources,
    ):
        yield _Batches(cluster, partitions, resources)
