"""A program that `spark-submit` starts on a cluster: a batch, a micro-batch query and a continuous query, at once.

Its results are in topics, because a driver may run on a node of the cluster.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kit.independent_client import Record, consume_committed, produce
from kit.pointers import REPO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kit.fixtures.broker import TopicMaker

SPARK = Path(str(find_spec("pyspark").origin)).parent  # type: ignore[union-attr]
# Of an archive that Spark unpacks in the folder of each container or executor.
PYTHON = "./environment/bin/python"
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# The two queries have two tasks each: two executors must have a slot for every task.
CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "2",
    "spark.executor.instances": "2",
    "spark.driver.extraJavaOptions": QUICK_JVM,
    "spark.executor.extraJavaOptions": QUICK_JVM,
    "spark.sql.shuffle.partitions": "2",
}
_PROGRAM = """
import os, sys, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
import pyspark_kafka
from pyspark_kafka import continuous

servers, source, batch, micro, flow, checkpoints, stop = sys.argv[1:]
connection = {"kafka.bootstrap.servers": servers}
read = {**connection, "subscribe": source, "startingOffsets": "earliest"}
written = {**connection, "deliveryGuarantee": "exactly_once"}
rows = spark.read.format("pyspark_kafka").options(**read).load().select("key", "value")
rows.write.format("pyspark_kafka").options(**connection, topic=batch).mode("append").save()
queries = [
    spark.readStream.format("pyspark_kafka").options(**read).load().select("key", "value")
    .writeStream.format("pyspark_kafka").options(**written, topic=micro)
    .option("checkpointLocation", checkpoints + "/micro").trigger(processingTime="500 milliseconds").start(),
    continuous.read(spark).format("pyspark_kafka").options(**read).load().select("key", "value")
    .writeStream.format("pyspark_kafka").options(**written, topic=flow)
    .option("checkpointLocation", checkpoints + "/flow").trigger(continuous="500 milliseconds").start(),
]
while not os.path.exists(stop) and all(query.isActive for query in queries):
    time.sleep(0.2)
for query in queries:
    query.stop()
    if query.exception() is not None:
        raise query.exception()
print("PACKAGE", pyspark_kafka.__file__, flush=True)
spark.stop()
"""


class Submitted:
    """A program that was submitted; killed, if it still runs, at the end of the block.

    Args:
        place: a folder for its files.
        servers: the brokers.
        make_topic: makes its topics.
        checkpoints: a folder or URI for the checkpoints, without a slash at the end.
        arguments: of `spark-submit`.
        environment: variables of `spark-submit`.
    """

    def __init__(
        self,
        place: Path,
        servers: str,
        make_topic: TopicMaker,
        *,
        checkpoints: str,
        arguments: list[str],
        environment: Mapping[str, str],
    ) -> None:
        self._place, self._servers = place, servers
        self._values: list[bytes] = []
        self.source, self.batch, *self.targets = (make_topic(partitions=2) for _ in range(4))
        self.add_records()
        program = place / "program.py"
        program.write_text(_PROGRAM)
        settings = [part for name, value in CONF.items() for part in ("--conf", f"{name}={value}")]
        topics = [self.source, self.batch, *self.targets]
        with (place / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [SPARK / "bin" / "spark-submit", *settings, *arguments, program,
                 servers, *topics, checkpoints, place / "stop"],
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True, cwd=place,
                env=clean_environment(environment),
            )  # fmt: skip

    def __enter__(self) -> Submitted:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def log(self) -> str:
        return (self._place / "log").read_text(errors="replace")

    def add_records(self) -> None:
        """Produce some records."""
        new = [b"%d" % (len(self._values) + number) for number in range(20)]
        produce(self._servers, self.source, [Record(value, value, partition=i % 2) for i, value in enumerate(new)])
        self._values += new

    def await_records(self) -> None:
        """Wait until readers of committed records see each record once in the topics of both queries."""
        expected = sorted(self._values)
        for topic in self.targets:
            self.until(lambda topic=topic: len(self._committed(topic)) >= len(expected))  # type: ignore[misc]
            assert self._committed(topic) == expected
        # The first records were there when the program began.
        assert self._committed(self.batch) == sorted(self._values[:20])

    def until(self, condition: Callable[[], bool], seconds: float = 300.0) -> None:
        """Wait until something holds; fails at once if the program has ended."""
        end = time.monotonic() + seconds
        while not condition():
            assert self._process.poll() is None, f"the program has ended\n{self.log[-6000:]}"
            assert time.monotonic() < end, f"not within {seconds:g} s\n{self.log[-6000:]}"
            time.sleep(0.2)

    def stop(self) -> None:
        """Stop both queries, and wait until the application has succeeded."""
        (self._place / "stop").touch()
        assert self._process.wait(120) == 0, self.log[-6000:]

    def _committed(self, topic: str) -> list[bytes]:
        return sorted(record.value or b"" for record in consume_committed(self._servers, topic))


def clean_environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a shell from which programs are submitted, without the Pythons of the tests."""
    kept = {
        name: value for name, value in os.environ.items() if name not in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    }
    return {**kept, "SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1", **more}


def unpack(archive: Path, place: Path) -> None:
    """Unpack the archive of an environment."""
    with tarfile.open(archive) as file:
        file.extractall(place)  # noqa: S202 - made by these tests


def executors_of(text: str) -> list[int]:
    """Return the processes of executors whose command line has a text, such as the folder of their cluster."""
    commands = {process: command_of(process) for process in _processes()}
    return [
        process
        for process, words in commands.items()
        if words[0].endswith("java") and "CoarseGrainedExecutorBackend" in " ".join(words) and text in " ".join(words)
    ]


def pythons_of(executor: int) -> set[str]:
    """Return the first words of the command lines of an executor's Python processes."""
    return {command_of(process)[0] for process in _processes() if _parent(process) == executor}


def command_of(process: int) -> list[str]:
    """Return the words of a command line; one empty word if the process has ended."""
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return [""]


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _parent(process: int) -> int:
    with suppress(OSError):
        # Behind the name of the program, which may have spaces, and the state.
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def build_wheel(place: Path) -> Path:
    """Build the wheel in Python only."""
    wheels = place / "wheels"
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(REPO)]
    subprocess.run(build, check=True, env={**os.environ, "PYSPARK_KAFKA_PURE_PYTHON": "1"})
    (wheel,) = wheels.glob("*.whl")
    return wheel


def build_archive_of_environment(place: Path) -> Path:
    """Make an environment with the wheel in Python only, and pack it, as docs/deploy.md describes."""
    wheel = build_wheel(place)
    subprocess.run([sys.executable, "-m", "venv", str(place / "env")], check=True)
    programs = place / "env" / "bin"
    install: list[str | Path] = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, f"{wheel}[hdfs]", "venv-pack"], check=True)
    pack: list[str | Path] = [programs / "venv-pack", "--quiet"]
    pack += ["--exclude", "*/pyspark/jars/*", "--output", place / "env.tar.gz"]
    subprocess.run([*pack, "--prefix", place / "env"], check=True)
    return place / "env.tar.gz"


def python_without_the_package(place: Path) -> Path:
    """Make an environment with everything of the one of the tests, but for packages that are installed in place."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (own,) = place.glob("lib/python*/site-packages")
    # As a line of a .pth file: the .pth files in that folder are not read.
    (own / "dependencies.pth").write_text(str(Path(str(find_spec("pyarrow").origin)).parents[1]))  # type: ignore[union-attr]
    return place / "bin" / "python"


def build_archive_of_package(place: Path) -> Path:
    """Make an archive of the sources, as the wheel in Python only is one."""
    path = place / "pyspark_kafka.zip"
    root = REPO / "src"
    with zipfile.ZipFile(path, "w") as file:
        for each in sorted((root / "pyspark_kafka").rglob("*.py")):
            file.write(each, each.relative_to(root))
    return path
