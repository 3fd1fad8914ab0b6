"""The servers of a cluster: its brokers from the last response, then the servers of the options.

Pure: no sockets, no clock. `bootstrap.py` connects to the servers.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_kafka._client.client.cluster.metadata_cache import MetadataCache
    from pyspark_kafka._client.options import ConnectionOptions

# How many brokers are passed on to other clients, and with each task of a read.
_SHARED = 5
# How many brokers of a large cluster are tried in one search: with all of them, each would have little time before the
# next one is connected to as well.
_SEARCHED = 16

Server = tuple[str, int]


class KnownServers:
    """The servers that one client tries when it needs a connection to any broker.

    Runs on: driver and executor. Not thread-safe.

    Args:
        options: has the bootstrap servers, and brokers that other clients have learned of.
        cache: has the brokers from the last response.

    Attributes:
        last_asked: the server that the last metadata came from; None before.
    """

    def __init__(self, options: ConnectionOptions, cache: MetadataCache) -> None:
        self._bootstrap = options.bootstrap_servers
        self._learned = options.learned_servers
        self._cache = cache
        self._avoided: Server | None = None
        self.last_asked: Server | None = None

    def search_order(self) -> list[Server]:
        """Return what to try: brokers from the last response, then the options' servers; an avoided one comes last."""
        servers = [*self._sample(_SEARCHED), *self._bootstrap, *self._learned]
        return sorted(servers, key=lambda server: server == self._avoided)

    def for_other_clients(self, before: tuple[Server, ...] = ()) -> tuple[Server, ...]:
        """Return some brokers from the last response, for `ConnectionOptions.learned_servers` of other clients.

        Args:
            before: the result for an earlier client; it is returned again while these are brokers.
        """
        brokers = self._cache.brokers
        if len(before) == min(_SHARED, len(brokers)) and {
            (node.host, node.port) for node in brokers.values()
        }.issuperset(before):
            return before
        return tuple(self._sample(_SHARED))

    def learn(self, servers: tuple[Server, ...]) -> None:
        """Take over brokers that another client has learned of; they replace those taken over before."""
        self._learned = servers

    def avoid_last_asked(self) -> Server | None:
        """Move the server of the last metadata to the end of the order from now on, and return it."""
        self._avoided = self.last_asked
        return self._avoided

    def _sample(self, count: int) -> list[Server]:
        known = list(self._cache.brokers.values())
        # Random: tasks and attempts must not all try the same brokers, in the same order.
        return [(node.host, node.port) for node in random.sample(known, min(count, len(known)))]
