"""Streaming queries as a program, for tests that kill it: `held_query.py SERVERS QUERIES`, these as JSON.

Each of the queries reads its `topic` into Parquet files below its `place`, from the latest offsets, with its checkpoint
there and its `options`. Its `holds` are the steps at which it stands still: `latest` (before the first end is looked
up, until a file `go` is there) and `read` (in every task, for good). At each it leaves a file of that name there, with
the id of the process that waits.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from pyspark_kafka import DefaultSource
from pyspark_kafka.testing import ensure_java_for_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
    from pyspark.sql.types import StructType

# A test that fails to kill it does not leave it behind for ever.
_MAX_S = 120.0


def hold(place: str, step: str, until: str = "") -> None:
    """Say who waits, and wait."""
    beside = Path(place, f"{step}.{os.getpid()}")
    beside.write_text(str(os.getpid()))
    beside.replace(Path(place, step))
    end = time.monotonic() + _MAX_S
    while time.monotonic() < end and not (until and Path(place, until).exists()):
        time.sleep(0.02)


class HeldSource(DefaultSource):
    """The package's source, which stands still at the steps that its options name."""

    def __init__(self, options: dict[str, str]) -> None:
        """Take what is not for the package's source out of the options."""
        own = dict(options)
        self.place, self.holds = own.pop("place"), own.pop("holds").split(",")
        super().__init__(own)

    @classmethod
    def name(cls) -> str:
        """Another name than the package's own."""
        return "held_kafka"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's contract
        """Return the package's reader, wrapped."""
        place, holds = self.place, self.holds
        plain = super().streamReader(schema)

        class Held(type(plain)):  # type: ignore[misc]
            def latestOffset(self, start: dict[str, Any], limit: Any) -> Any:  # noqa: N802 - Spark's contract
                if "latest" in holds and not Path(place, "latest").exists():
                    hold(place, "latest", until="go")
                return super().latestOffset(start, limit)

            def read(self, partition: InputPartition) -> Iterator[Any]:
                if "read" in holds:
                    hold(place, "read")
                return super().read(partition)  # type: ignore[no-any-return]

        plain.__class__ = Held
        return plain


def main(servers: str, queries: str) -> None:
    """Run the queries until the program is killed."""
    ensure_java_for_spark()
    held = json.loads(queries)
    spark = (
        # A task that stands still has its core for good.
        SparkSession.builder.master(f"local[{len(held)}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", f"{held[0]['place']}/local")
        .getOrCreate()
    )
    spark.dataSource.register(HeldSource)
    for each in held:
        place = each["place"]
        reader = spark.readStream.format("held_kafka").option("kafka.bootstrap.servers", servers)
        reader = reader.options(subscribe=each["topic"], place=place, holds=",".join(each["holds"]), **each["options"])
        rows = reader.load().selectExpr("topic", "partition", "offset", "CAST(value AS STRING) AS value")
        writer = rows.writeStream.format("parquet").option("path", f"{place}/out")
        query = writer.option("checkpointLocation", f"{place}/checkpoint").start()
        # Spark waits 10 s for each process that plans a query: on a busy machine four at once take longer.
        while query.isActive and not Path(place, "latest").exists():
            time.sleep(0.02)
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
