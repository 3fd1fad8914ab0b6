"""Measure what `commitOffsetsToGroup` adds to the plan of a micro-batch: streams with and without it, batch by batch.

Goal: less than 2 ms at the median. Each batch moves all partitions, so every commit has all of them.
Run: python bench/group_commit.py [--partitions N] [--batches N]
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Annotated

import typer
from planning import add_one_record_each

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka.connector import ReadAllAvailable
from pyspark_kafka.testing import EmbeddedKafka

GOAL_MS = 2.0


def plan_ms(stream: KafkaMicroBatchStream, start: KafkaSourceOffset) -> float:
    """Return how long the calls take that an engine makes after a batch."""
    begun = time.perf_counter()
    stream.latestOffset(start, ReadAllAvailable())
    stream.commit(start)
    return (time.perf_counter() - begun) * 1000


def main(partitions: Annotated[int, typer.Option()] = 1_000, batches: Annotated[int, typer.Option()] = 200) -> None:
    """Print the times of both, and what the option adds."""
    with EmbeddedKafka() as kafka:
        options = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "subscribe": "measured",
            "startingOffsets": "earliest",
            "failOnDataLoss": "false",
        }
        kafka.create_topic("measured", partitions)
        add_one_record_each(kafka.bootstrap_servers, partitions, "measured")
        streams = {
            name: KafkaMicroBatchStream.from_options({**options, **more})
            for name, more in (("without", {}), ("with", {"commitOffsetsToGroup": "measured-lag"}))
        }
        times: dict[str, list[float]] = {name: [] for name in streams}
        begin = streams["with"].initialOffset()
        for batch in range(batches):
            # In turn, so that whatever else the machine does falls on both; offsets differ from batch to batch.
            start = KafkaSourceOffset(dict.fromkeys(begin.partitions, batch % 2))
            for name, stream in streams.items():
                times[name].append(plan_ms(stream, start))
        for stream in streams.values():
            stream.stop()
        close_clients()
    middle = {name: statistics.median(found) for name, found in times.items()}
    added = middle["with"] - middle["without"]
    print(
        f"{partitions:,} partitions, {batches} batches: {middle['without']:.2f} ms without, {middle['with']:.2f} ms "
        f"with commitOffsetsToGroup: {added:+.2f} ms, goal < {GOAL_MS:g} ms"
    )
    sys.exit(added >= GOAL_MS)


if __name__ == "__main__":
    typer.run(main)
