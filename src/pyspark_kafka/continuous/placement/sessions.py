"""The kind of a session, its ability to run a continuous query, its file system, the address of its driver."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from pyspark_kafka.errors import CapabilityError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"


def check_session(spark: SparkSession) -> None:
    """Check that a session can run tasks that must all run at the same time.

    Raises:
        CapabilityError: it has dynamic allocation, with which Spark refuses such a job.
    """
    dynamic = (spark.conf.get("spark.dynamicAllocation.enabled", "false") or "").lower() == "true"
    master = spark.conf.get("spark.master", "") or ""
    if dynamic and not is_local(master):
        raise CapabilityError(
            "A continuous query needs all its tasks at the same time, and Spark runs no such job with dynamic "
            "allocation. Nothing was read.",
            condition="CONTINUOUS_DYNAMIC_ALLOCATION",
            hint="Set spark.dynamicAllocation.enabled to false for this application.",
        )


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session belongs to a client of Spark Connect; both kinds have the same attributes."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_local(master: str) -> bool:
    """Return whether tasks run in the JVM of the driver."""
    return master == "local" or master.startswith("local[")


def address_of_driver(spark: SparkSession) -> str:
    """Return the address at which executors reach this process.

    On classic Spark it is `spark.driver.host`, where the JVM of the driver is reached as well, and the loopback where
    tasks run in that JVM. On Spark Connect it is the address from which this machine reaches the server: of a server on
    this machine, the loopback.
    """
    if is_connect(spark):
        return own_address_towards(spark.client.host.strip("[]"))
    if is_local(spark.conf.get("spark.master", "") or ""):
        return _LOOPBACK
    return (spark.conf.get("spark.driver.host", _LOOPBACK) or _LOOPBACK).strip("[]")


def default_file_system(spark: SparkSession) -> str | None:
    """Return the URI of Hadoop's default file system as the JVM of the driver knows it; None on Spark Connect.

    There the checkpoint belongs to the client, which has no JVM.
    """
    context = getattr(spark, "_jsc", None)
    return None if context is None else str(context.hadoopConfiguration().get("fs.defaultFS"))


def own_address_towards(host: str) -> str:
    """Return the address of this machine from which it reaches another; reads the routing table, and sends nothing."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            # Any port: a datagram socket that connects sends nothing.
            probe.connect((host, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return _LOOPBACK
