"""A load balancer forgets idle connections: a look at metadata and offsets took 10 s each, one after the other."""

from __future__ import annotations

import time

from kit.fakes.tcp_cluster import TcpCluster
from kit.network.proxy import Proxies
from kit.reading import client_of
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.queries.offsets import list_offsets


def run() -> None:
    with TcpCluster() as cluster, Proxies() as proxies:
        cluster.add_topic("t")
        (proxy,) = proxies.before(cluster.address(0))
        with client_of(proxy.address) as client:
            for _ in range(2):
                began = time.monotonic()
                client.fetch_metadata(["t"])
                list_offsets(client, {TopicPartition("t", 0): Latest()})
                took_s = time.monotonic() - began
                proxy.forget()
    assert took_s < 9, f"{took_s:.1f} s on forgotten connections"
