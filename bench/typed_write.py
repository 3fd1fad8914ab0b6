"""Six columns as Avro to Kafka: with typed values, and with Spark's to_avro before our sink and before Spark's own.

Run: python bench/typed_write.py --jars FOLDER [--records 2000000 --runs 5]

FOLDER has the jars of spark-avro and of spark-sql-kafka-0-10, with what they depend on. Without it only our own sink
runs: typed, with bytes of the same size as they are, and with JSON. `--no-as-advised` is without the settings of Spark
that docs/performance.md advises.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import cpu_seconds_below, time_in_turns
from prepared import SINK_NAME, register_sink
from session import JVM, OURS, jvm_process, start_spark

from pyspark_kafka.testing import EmbeddedKafka

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Event",
        "fields": [
            {"name": "id", "type": ["null", "long"]},
            {"name": "city", "type": ["null", "string"]},
            {"name": "amount", "type": ["null", "double"]},
            {"name": "count", "type": ["null", "int"]},
            {"name": "new", "type": ["null", "boolean"]},
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        ],
    }
)
COLUMNS = (
    "id",
    "concat('city ', id % 1000, ' with a longer name') AS city",
    "id / 7D AS amount",
    "CAST(id % 100000 AS INT) AS count",
    "id % 2 = 0 AS new",
    "timestamp_micros(1700000000000000 + id * 1000) AS at",
)


def alternatives(rows: DataFrame, servers: str, *, jars: bool) -> dict[str, Callable[[], None]]:
    """Return the writes by name."""

    def write(frame: DataFrame, name: str, **options: Any) -> Callable[[], None]:
        writer = frame.write.format(name).options(
            **{"kafka.bootstrap.servers": servers, "topic": "typed-write", "kafka.compression.type": "lz4", **options}
        )
        return lambda: writer.mode("append").save()

    typed = rows.selectExpr("struct(*) AS value")
    found = {
        "typed avro": write(typed, OURS, valueFormat="avro", valueSchema=SCHEMA),
        "typed json": write(typed, OURS, valueFormat="json"),
        "bytes as they are": write(rows.selectExpr("CAST(concat(city, city) AS BINARY) AS value"), OURS),
        # What Spark itself needs to hand over such rows.
        "typed, thrown away": write(typed, SINK_NAME),
        "to_json, our sink": write(rows.selectExpr("to_json(struct(*)) AS value"), OURS),
    }
    if jars:
        from pyspark.sql.avro.functions import to_avro  # noqa: PLC0415 - of the jars
        from pyspark.sql.functions import struct  # noqa: PLC0415 - beside it

        encoded = rows.select(to_avro(struct("*"), SCHEMA).alias("value"))
        found["to_avro, our sink"] = write(encoded, OURS)
        found["to_avro, Spark's connector"] = write(encoded, JVM)
    return found


def main() -> None:
    """Print the median of each alternative, and how many times the typed write's it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jars", type=Path)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--warm-ups", type=int, default=2)
    parser.add_argument("--as-advised", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    jars = sorted(arguments.jars.glob("*.jar")) if arguments.jars else []
    with EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as directory:
        kafka.create_topic("typed-write", partitions=4)
        spark = start_spark(directory, jars, as_advised=arguments.as_advised)
        try:
            rows = spark.range(0, arguments.records, 1, 4).selectExpr(*COLUMNS).cache()
            rows.count()
            register_sink(spark)
            jvm = jvm_process(spark)
            used: dict[str, list[float]] = {}

            def noting(name: str, call: Callable[[], None]) -> Callable[[], None]:
                def noted() -> None:
                    began = cpu_seconds_below(jvm)
                    call()
                    used.setdefault(name, []).append(cpu_seconds_below(jvm) - began)

                return noted

            writes = alternatives(rows, kafka.bootstrap_servers, jars=bool(jars))
            timings = time_in_turns(
                {name: noting(name, call) for name, call in writes.items()},
                warm_ups=arguments.warm_ups,
                runs=arguments.runs,
                broker_pid=kafka.pid,
            )
        finally:
            spark.stop()
    cpu = {name: statistics.median(seconds[arguments.warm_ups :]) for name, seconds in used.items()}
    first = "typed avro"
    print(f"{'':28}   wall s   times   CPU s of Spark and Python   times")
    for name, timing in timings.items():
        print(
            f"{name:28} {timing.median:8.2f} {timing.median / timings[first].median:7.2f} {cpu[name]:27.2f} "
            f"{cpu[name] / cpu[first]:7.2f}"
        )


if __name__ == "__main__":
    main()
