"""Where a client looks for its cluster, and which brokers it passes on to others."""

from __future__ import annotations

from dataclasses import replace

from pyspark_kafka._client.client.cluster.known_servers import KnownServers
from pyspark_kafka._client.client.cluster.metadata import BrokerNode, ClusterMetadata
from pyspark_kafka._client.client.cluster.metadata_cache import MetadataCache
from pyspark_kafka._client.options import ConnectionOptions

BOOTSTRAP = (("boot-0", 9092), ("boot-1", 9092))
OPTIONS = ConnectionOptions(BOOTSTRAP)


def servers_of(brokers: int, options: ConnectionOptions = OPTIONS) -> KnownServers:
    cache = MetadataCache(60_000)
    cache.remember(ClusterMetadata({number: BrokerNode(number, f"broker-{number}", 9092) for number in range(brokers)}))
    return KnownServers(options, cache)


def test_servers_of_the_options_are_tried_in_their_order_before_anything_is_known() -> None:
    assert servers_of(0, replace(OPTIONS, learned_servers=(("other", 1),))).search_order() == [*BOOTSTRAP, ("other", 1)]


def test_brokers_are_tried_before_the_servers_of_the_options() -> None:
    order = servers_of(2).search_order()
    assert set(order[:2]) == {("broker-0", 9092), ("broker-1", 9092)}
    assert order[2:] == list(BOOTSTRAP)


def test_brokers_of_a_large_cluster_are_tried_in_part() -> None:
    assert len(servers_of(1_000).search_order()) == 16 + len(BOOTSTRAP)


def test_server_that_metadata_came_from_is_tried_last_when_it_is_avoided() -> None:
    servers = servers_of(2)
    servers.last_asked = ("broker-0", 9092)
    assert servers.avoid_last_asked() == ("broker-0", 9092)
    assert servers.search_order()[-1] == ("broker-0", 9092)


def test_few_brokers_are_passed_on_whatever_the_size_of_the_cluster() -> None:
    assert len(servers_of(1_000).for_other_clients()) == 5


def test_brokers_that_were_passed_on_are_passed_on_again_until_one_is_gone() -> None:
    servers = servers_of(1_000)
    before = servers.for_other_clients()
    assert all(servers.for_other_clients(before) == before for _ in range(10))
    assert servers_of(3).for_other_clients(before) != before


def test_only_brokers_are_passed_on() -> None:
    servers = servers_of(0)
    servers.learn((("learned", 1),))
    assert servers.for_other_clients((("before", 1),)) == ()
