"""The Spark session that benchmarks run in, and the names of the two connectors."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

OURS, JVM = "pyspark_kafka", "kafka"
ADVISED = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.driver.extraJavaOptions": "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false",
}
"""As docs/performance.md advises. It concerns Python workers only; the JVM connector has none."""


def start_spark(
    directory: str,
    jars: Sequence[Path] = (),
    *,
    driver_memory: str = "3g",
    slots: int = 2,
    workers: int = 0,
    as_advised: bool = True,
) -> SparkSession:
    """Start a session, with the JVM connector's jars if there are any, and with the settings of `ADVISED`.

    Its tasks run in this process, or on a cluster of as many standalone workers with a core each.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(f"local-cluster[{workers},1,1024]" if workers else f"local[{slots}]")
        .appName("pyspark-kafka bench")
        .config("spark.driver.memory", driver_memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", directory)
        .config("spark.sql.warehouse.dir", f"{directory}/warehouse")
    )
    if as_advised:
        for name, value in ADVISED.items():
            builder = builder.config(name, value)
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    return builder.getOrCreate()


def jvm_process(spark: SparkSession) -> int:
    """Return the process id of Spark's JVM, the ancestor of its Python workers."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - there is no public way
    return int(jvm.java.lang.ProcessHandle.current().pid())
