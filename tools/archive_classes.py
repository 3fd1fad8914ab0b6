"""Keep the loaded classes of a Spark driver and of a broker for those that tests start: each is up in less time.

A JVM reads the archive instead of taking classes out of hundreds of jars, and checks that it fits itself and the jars;
where it does not, nothing changes. Quick when the archives are here. Where one cannot be made, tests go without.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from pyspark_kafka._connector.spark.processes.prepare import worker_program
from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import QUICK_JVM_FLAGS
from pyspark_kafka.testing.jars import DEFAULT_VERSION, class_archive
from pyspark_kafka.testing.java import find_java

# A JVM that is up soon: the first compiler only, and a collector without helper threads. Nothing printed of its own.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"
ENDS_WITHIN_S = 120


def path_of_archive() -> Path:
    """Return where the archive of this environment is, or would be."""
    return Path(sys.prefix) / f"spark-classes-{metadata.version('pyspark')}.jsa"


def start_drivers_quickly() -> None:
    """Have all drivers that this process and its children start be up soon, with the archive if there is one.

    Spark passes SPARK_SUBMIT_OPTS to the driver's JVM, and SPARK_LAUNCHER_OPTS to the one that builds its command. Its
    Python processes are this interpreter, by the program that `pyspark_kafka.prepare()` sets: the default, `python3`
    of PATH, need not have this package, and compiles PySpark in each process.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(worker_program())
    archive = path_of_archive()
    options = f"{QUICK} -XX:SharedArchiveFile={archive}" if archive.exists() else QUICK
    os.environ.setdefault("SPARK_SUBMIT_OPTS", options)
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", QUICK)


def make_for_drivers(archive: Path) -> None:
    """Run a driver through what drivers of tests do, and have its JVM write down its classes when it ends."""
    # Not at the top: who only wants to use the archive does not pay for it.
    from pyspark.sql import SparkSession  # noqa: PLC0415

    os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICK} -XX:ArchiveClassesAtExit={archive}"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(worker_program())
    ensure_java_for_spark()
    with tempfile.TemporaryDirectory(prefix="spark-classes-") as place:
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.log.level", "OFF")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.local.dir", f"{place}/local")
            .config("spark.sql.warehouse.dir", f"{place}/warehouse")
            # The server of Spark Connect, in the same JVM.
            .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
            .config("spark.connect.grpc.binding.port", "0")
            .getOrCreate()
        )
        rows = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
        query = rows.writeStream.format("parquet").option("checkpointLocation", f"{place}/checkpoint")
        query.trigger(availableNow=True).start(f"{place}/out").awaitTermination()
        spark.range(10).mapInArrow(lambda batches: batches, "id long").groupBy("id").count().collect()
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - there is no public way to await the JVM's end
        spark.stop()
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            archive.unlink(missing_ok=True)


def make_for_brokers(archive: Path) -> None:
    """Run a broker, and have its JVM write down its classes when it ends."""
    flags = (*QUICK_JVM_FLAGS, f"-XX:ArchiveClassesAtExit={archive}")
    with tempfile.TemporaryDirectory(prefix="kafka-classes-") as place:
        # A broker whose data are temporary is killed.
        data = Path(place, "data")
        with EmbeddedKafka(jvm_flags=flags, data_dir=data, stop_timeout_s=ENDS_WITHIN_S) as kafka:
            kafka.create_topic("topic")
            kafka.stop()


def keep(what: str, archive: Path, make: Callable[[Path], None]) -> None:
    """Make an archive if there is none."""
    if archive.exists():
        return
    print(f"Keeping the classes of {what} in {archive.name}, for quicker starts", flush=True)
    unfinished = archive.with_suffix(f".{os.getpid()}")
    try:
        make(unfinished)
        unfinished.replace(archive)
    except FileNotFoundError:
        print("There is no archive: this Java makes none, or takes too long. Tests run without, and take longer.")


def main() -> None:
    """Make the archives that are not there."""
    keep("brokers", class_archive(DEFAULT_VERSION, find_java()), make_for_brokers)
    keep("drivers", path_of_archive(), make_for_drivers)


if __name__ == "__main__":
    main()
