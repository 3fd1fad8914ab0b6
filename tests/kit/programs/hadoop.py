"""Hadoop's own servers on the loopback: HDFS, and YARN if it is wanted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kit.maven import MavenFile, get_once
from kit.programs.submitted import SPARK
from pyspark_kafka.testing.java import find_java

# Of the version that PySpark has in its jars.
JAR = MavenFile(
    "org.apache.hadoop",
    "hadoop-client-minicluster",
    "3.5.0",
    sha256="06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
)
# The resource manager of YARN needs them, and that jar has them not; of the version that Hadoop has.
_FOR_YARN = tuple(
    MavenFile("org.bouncycastle", f"{name}-jdk18on", "1.82", sha256)
    for name, sha256 in (
        ("bcprov", "14cde2fdfaa8890480a8e5b67aceef0c90f96682c1e23c133bafdc9e0b3255ce"),
        ("bcpkix", "bdc723e20834832ac6af136cb5b5ff05e43b71d4fa151cc6510d9212ee086e63"),
        ("bcutil", "4420691958ad1c0ba275a6d6d8a6317adbdbdc9277055b6a72aa89c88cda8c7d"),
    )
)
_PROGRAM = Path(__file__).with_name("OneMachine.java")
_END_S = 60.0


@dataclass(frozen=True)
class Hadoop:
    """Servers that run.

    Attributes:
        files: the URI of the root of HDFS, Hadoop's default file system there.
        settings: a folder for `HADOOP_CONF_DIR`.
        place: the folder with their files; the logs of containers are below `logs-0`, `logs-1`, and so on.
    """

    files: str
    settings: Path
    place: Path


@contextmanager
def running_hadoop(place: Path, *, node_managers: int = 0) -> Iterator[Hadoop]:
    """Run HDFS with one data node and, with node managers, YARN; everything that they have started ends with the block.

    Args:
        place: an empty folder.
        node_managers: each has 4 slots, and 4 GiB for containers.
    """
    jars = [SPARK / "jars" / "*"]
    jars += [get_once(each, f"{each.name}-{each.version}.jar") for each in (JAR, *(_FOR_YARN if node_managers else ()))]
    java = find_java().executable.resolve()
    with (
        (place / "log").open("w") as log,
        subprocess.Popen(
            [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
             "-cp", os.pathsep.join(map(str, jars)), _PROGRAM, place, str(node_managers)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=place,
            # Node managers hand them to containers.
            env={**os.environ, "JAVA_HOME": str(java.parents[1]), "HADOOP_CONF_DIR": str(place / "conf")},
        ) as servers,
    ):  # fmt: skip
        try:
            assert servers.stdout is not None
            uri = next((line.split()[1] for line in servers.stdout if line.startswith("READY ")), None)
            assert uri is not None, (place / "log").read_text()[-2000:]
            yield Hadoop(uri, place / "conf", place)
        finally:
            # They end when nobody holds their input.
            assert servers.stdin is not None
            servers.stdin.close()
            try:
                servers.wait(_END_S)
            except subprocess.TimeoutExpired:
                servers.kill()
                raise
