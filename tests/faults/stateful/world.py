"""The topics of the stateful queries, their checkpoints, the drivers that run them, and what they have written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafka import KafkaProducer

from faults.harness import Driver, DriverSpec, Stop
from faults.stateful.events import PARTITIONS, RECORDS, Event, left_events, right_events
from faults.stateful.expected import Rows
from faults.stateful.queries import HDFS, ROCKSDB
from faults.topics import read_values
from pyspark_kafka.checkpoint import CheckpointFiles, OffsetSeqLog
from pyspark_kafka.testing import EmbeddedKafka

PROGRAM = Path(__file__).with_name("driver.py")
_PATIENCE_S = 30.0


@dataclass(frozen=True)
class StatefulSpec(DriverSpec):
    """The specification that a driver program of stateful queries reads."""

    topics: Mapping[str, str] = field(default_factory=dict)
    queries: list[dict[str, object]] = field(default_factory=list)


class StatefulWorld:
    """Two source topics with all their records, and for each query a checkpoint and a sink topic.

    Args:
        kafka: the broker.
        place: a folder of this world alone.
        run: begins the names of the topics.
        queries: which of `queries.py` run.
        batches: micro-batches before the one that reads the last records.
        rocksdb: which of the queries keep their state in RocksDB; the others in Spark's default.
        conf: more settings of Spark.
    """

    def __init__(
        self,
        kafka: EmbeddedKafka,
        place: Path,
        run: str,
        queries: Iterable[str],
        batches: int,
        rocksdb: Iterable[str],
        conf: Mapping[str, str] | None = None,
    ) -> None:
        self.batches = batches
        self.queries = list(queries)
        self._servers, self._place, self._run = kafka.bootstrap_servers, place, run
        self._rocksdb = set(rocksdb)
        self._conf = dict(conf or {})
        self._drivers = 0
        # The records are old, and brokers delete what is old.
        kept = {"retention.ms": "-1"}
        for side, events in (("left", left_events(batches)), ("right", right_events(batches))):
            kafka.create_topic(f"{run}-{side}", PARTITIONS, kept)
            _send(self._servers, f"{run}-{side}", events)
        for query in self.queries:
            kafka.create_topic(f"{run}-{query}", 2)
            # One for each: who stands with an open transaction keeps all readers of a partition from its end.
            kafka.create_topic(f"{run}-{query}-markers", 1, {"cleanup.policy": "compact"})

    def checkpoint(self, query: str) -> Path:
        """Return the checkpoint of a query."""
        return self._place / "checkpoints" / query

    def driver(self, *stops: Stop) -> Driver:
        """Start a driver with all queries, which stop where `stops` says and otherwise end when they have read all."""
        self._drivers += 1
        spec = StatefulSpec(
            place=str(self._place / f"run-{self._drivers}"),
            checkpoint="",
            source_options={
                "kafka.bootstrap.servers": self._servers,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(PARTITIONS * RECORDS),
            },
            sink_options={},
            stops=list(stops),
            # Each query may stand in a task.
            master=f"local[{len(self.queries) + 2}]",
            conf={
                "spark.sql.shuffle.partitions": "2",
                "spark.sql.session.timeZone": "UTC",
                "spark.ui.showConsoleProgress": "false",
                **self._conf,
            },
            topics={side: f"{self._run}-{side}" for side in ("left", "right")},
            queries=[
                {
                    "name": query,
                    "checkpoint": str(self.checkpoint(query)),
                    "provider": ROCKSDB if query in self._rocksdb else HDFS,
                    "files": str(self._files(query)),
                    "sink_options": self._sink_options(query),
                }
                for query in self.queries
            ],
        )
        return Driver(spec, PROGRAM)

    def _sink_options(self, query: str) -> dict[str, str]:
        topic = f"{self._run}-{query}"
        common = {"kafka.bootstrap.servers": self._servers, "topic": topic}
        if query.endswith("at_least_once"):
            return common
        return {**common, "deliveryGuarantee": "exactly_once", "commitTopic": f"{topic}-markers"}

    def _files(self, query: str) -> Path:
        return self._place / "files" / query

    def written(self, query: str) -> Rows:
        """Return the rows that a query has written: those that readers of committed records see, or those in files."""
        if files := list(self._files(query).glob("*/part-*")):
            return Counter(line for file in files for line in file.read_text().splitlines())
        partitions = read_values(self._servers, f"{self._run}-{query}")
        return Counter(value.decode() for values in partitions.values() for value in values)

    def planned(self, query: str) -> dict[int, tuple[list[list[int]], int]]:
        """Return of each micro-batch in the offset log the ends of each source's partitions, and the watermark."""
        log = OffsetSeqLog(CheckpointFiles(str(self.checkpoint(query))))
        found = {}
        for batch in log.batch_ids():
            entry = log.get(batch)
            assert entry is not None
            offsets = [json.loads(offset or "{}") for offset in entry.offsets]
            ends = [list(partitions.values()) for topics in offsets for partitions in topics.values()]
            found[batch] = ends, entry.metadata["batchWatermarkMs"]
        return found


def _send(servers: str, topic: str, events: list[Event]) -> None:
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    try:
        futures = [
            producer.send(
                topic, event.value, event.key.encode(), partition=event.partition, timestamp_ms=event.timestamp_ms
            )
            for event in events
        ]
        for future in futures:
            future.get(timeout=_PATIENCE_S)
    finally:
        producer.close()
