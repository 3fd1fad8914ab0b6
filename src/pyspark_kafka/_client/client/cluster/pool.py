"""Clients that the tasks of one worker process share, so that a warm task starts without connecting.

The key is the connection options: two clusters, or two users of one cluster, never share a client. When an idle client
is closed: `_client/client/reuse/idle_pool.py`.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka._base.counters import CLIENTS_IDLE, CLIENTS_LENT, COUNTERS
from pyspark_kafka._client.client.reuse.idle_pool import IDLE_SECONDS, IdlePool
from pyspark_kafka._client.client.reuse.learned_servers import LearnedServers, application_directory
from pyspark_kafka._client.client.wire.missing_rights import name_user
from pyspark_kafka.errors import AccessError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.options import ConnectionOptions

# A worker runs one task at a time; threads of a driver may hold some more.
_KEPT_PER_CLUSTER = 4
# The number of learned brokers that a new client tries.
_LEARNED_TRIED = 16


class ClientPool:
    """Lends clients, each to one borrower at a time, and keeps returned clients.

    Runs on: driver and executor; any thread.

    Args:
        idle_seconds: how long a client is kept without a borrower.
        clock: monotonic seconds; tests pass their own.
        learned: brokers that clients have learned of, for new clients; tests pass their own.
    """

    def __init__(
        self,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        learned: LearnedServers | None = None,
    ) -> None:
        self._idle: IdlePool[ConnectionOptions, KafkaClient] = IdlePool(
            max_per_key=_KEPT_PER_CLUSTER, idle_seconds=idle_seconds, clock=clock
        )
        self._learned = LearnedServers(None) if learned is None else learned

    @contextmanager
    def borrow(self, options: ConnectionOptions) -> Iterator[KafkaClient]:
        """Lend a client for these options; it comes back when the block ends, also by an error.

        Connecting is left to the first request, so borrowing itself does not fail.
        """
        client = self._idle.take_value(options)
        if client is None:
            client = self._new(options)
        elif options.learned_servers:
            # Its own metadata may be older.
            client.servers.learn(options.learned_servers)
        self._count(1)
        try:
            yield client
        except AccessError as error:
            name_user(error, options)
            raise
        finally:
            self._put_back(client)
            self._count(-1)

    def _count(self, lent: int) -> None:
        COUNTERS.add_count(CLIENTS_LENT, lent)
        COUNTERS.set(CLIENTS_IDLE, len(self._idle))

    def learned_servers(self, options: ConnectionOptions) -> tuple[tuple[str, int], ...]:
        """Return some of the cluster's brokers, as far as this machine's processes have learned them."""
        return self._learned.get(options.bootstrap_servers) or options.learned_servers

    def close(self) -> None:
        """Close all idle clients. The pool can be used again."""
        self._idle.close()

    def _new(self, options: ConnectionOptions) -> KafkaClient:
        # With it come the protocol's classes. Most processes of a driver send no requests, and end sooner without.
        from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient  # noqa: PLC0415

        # The bootstrap servers may be gone for good by now.
        servers = dict.fromkeys((*options.learned_servers, *self._learned.newest(options.bootstrap_servers)))
        return KafkaClient(replace(options, learned_servers=tuple(servers)[:_LEARNED_TRIED]))

    def _put_back(self, client: KafkaClient) -> None:
        client.connections.close_unfinished()
        bootstrap = client.options.bootstrap_servers
        self._learned.put(bootstrap, client.servers.for_other_clients(self._learned.get(bootstrap)))
        self._idle.put_back(client.options, client)


_POOL = ClientPool(learned=LearnedServers(application_directory()))


@contextmanager
def borrow_client(options: ConnectionOptions) -> Iterator[KafkaClient]:
    """Lend a client of this process's pool; see `ClientPool.borrow`."""
    with _POOL.borrow(options) as client:
        yield client


def learned_servers(options: ConnectionOptions) -> tuple[tuple[str, int], ...]:
    """Return some brokers that this machine has learned of, for executors: bootstrap servers may retire.

    Runs on: driver; a look into memory, or into a small file. A few addresses, whatever the size of the cluster.
    """
    return _POOL.learned_servers(options)


def close_clients() -> None:
    """Close the idle clients of this process's pool."""
    _POOL.close()
