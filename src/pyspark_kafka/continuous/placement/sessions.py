"""Where a session's driver is, as its executors see it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from pyspark_kafka.continuous.placement.slots import is_connect, is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"


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


def own_address_towards(host: str) -> str:
    """Return the address of this machine from which it reaches another; asks the routing table, and sends nothing."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            # Any port: a datagram socket that connects sends nothing.
            probe.connect((host, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return _LOOPBACK
