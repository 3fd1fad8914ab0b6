"""Executors as processes of their own, for driver programs. Started and ended with the JVM of the program."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from pyspark import SparkConf, SparkContext

# A core each, and as little memory as Spark takes.
_CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # However many executors are killed, there are new ones.
    "spark.deploy.maxExecutorRetries": "-1",
}
_WORKER_MB = 1024
# Spark runs a second attempt of a task on another host only; a `local-cluster` has one.
_HOSTS = ("127.0.0.1", "127.0.0.2")


def prepare(conf: SparkConf, place: str) -> None:
    """Make what a cluster of this program needs; before the JVM is started.

    Args:
        conf: of the session; what executors need is put into it, and the address where its master is `two-hosts`.
        place: a folder for what Spark's workers leave.
    """
    home = Path(place, "home")
    home.mkdir()
    # Workers keep the folders of their executors in SPARK_HOME, which is the installed package otherwise.
    (home / "work").mkdir()
    for each in Path(str(find_spec("pyspark").origin)).parent.iterdir():  # type: ignore[union-attr]
        if each.name != "work":
            (home / each.name).symlink_to(each)
    os.environ.update(SPARK_HOME=str(home), SPARK_LOCAL_IP=_HOSTS[0])
    for name, value in _CONF.items():
        conf.setIfMissing(name, value)
    if conf.get("spark.master") == "two-hosts":
        # What starts the JVM looks whether it knows such a master.
        conf.setMaster("local")
        conf.setMaster(_start(conf, str(home / "work")))


def _start(conf: SparkConf, work: str) -> str:
    """Start a master and a worker on each host, as `local-cluster` does, and return the master's address."""
    SparkContext._ensure_initialized(conf=conf)
    gateway = SparkContext._gateway
    jvm = gateway.jvm  # type: ignore[union-attr]
    settings = jvm.org.apache.spark.SparkConf(True)
    for name, value in conf.getAll():
        settings.set(name, value)
    deploy = jvm.org.apache.spark.deploy
    master = deploy.master.Master.startRpcEnvAndEndpoint(_HOSTS[0], 0, 0, settings)._1()
    addresses = gateway.new_array(jvm.java.lang.String, 1)  # type: ignore[union-attr]
    addresses[0] = str(master.address().toSparkURL())
    for number, host in enumerate(_HOSTS):
        option = jvm.scala.Option
        deploy.worker.Worker.startRpcEnvAndEndpoint(
            host, 0, 0, 1, _WORKER_MB, addresses, work, option.apply(number), settings, option.empty()
        )
    return str(addresses[0])
