"""Clients kept between the tasks of one worker process, so that a warm task starts without connecting.

Keyed by the connection options: two clusters, or two users of one, never share a client. Layer: client.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.options import ConnectionOptions

# Brokers close connections idle for 10 minutes (connections.max.idle.ms); be gone before.
_IDLE_SECONDS = 300.0
# A worker runs one task at a time; threads of a driver may hold some more.
_KEPT_PER_KEY = 4
# Of so many clusters, the brokers that were learned are remembered.
_LEARNED_KEPT = 64
# So many of them are tried by a new client.
_LEARNED_TRIED = 16


class ClientPool:
    """Lends clients, one borrower at a time each, and keeps what comes back.

    Safe to use from threads. After a fork the child starts empty: two processes must not share a socket.

    Runs on: driver and executor.

    Args:
        idle_seconds: unused clients are closed after that, at the next borrowing.
        clock: monotonic seconds; tests give their own.
    """

    def __init__(self, idle_seconds: float = _IDLE_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._reset()

    def _reset(self) -> None:
        self._process_id = os.getpid()
        self._lock = threading.Lock()
        self._resting: dict[ConnectionOptions, list[tuple[KafkaClient, float]]] = {}
        # Brokers that clients have learned of, for new ones.
        self._learned: dict[ConnectionOptions, tuple[tuple[str, int], ...]] = {}

    def _leave_parent(self) -> None:
        """In a forked child: close our copies of the parent's sockets (which does not end them) and start anew."""
        if self._process_id != os.getpid():
            inherited = self._resting
            # A lock that another thread of the parent held would stay held here for ever.
            self._reset()
            for resting in inherited.values():
                for client, _ in resting:
                    client.close()

    @contextmanager
    def borrow(self, options: ConnectionOptions) -> Iterator[KafkaClient]:
        """Lend a client for these options; it comes back when the block ends, also by an error.

        Connecting is left to the first request, so borrowing itself does not fail.
        """
        self._leave_parent()
        client = self._take(options)
        if client is None:
            client = self._new(options)
        elif options.learned_servers:
            # What it knows itself may be older.
            client.learn_servers(options.learned_servers)
        try:
            yield client
        finally:
            self._put(client)

    def learned_servers(self, options: ConnectionOptions) -> tuple[tuple[str, int], ...]:
        """Give some brokers of the cluster, as far as clients of this process have learned of them."""
        self._leave_parent()
        with self._lock:
            return self._learned.get(options, options.learned_servers)

    def close(self) -> None:
        """Close all resting clients; the pool can be used again."""
        self._leave_parent()
        with self._lock:
            resting, self._resting = self._resting, {}
        for entries in resting.values():
            for client, _ in entries:
                client.close()

    def _new(self, options: ConnectionOptions) -> KafkaClient:
        with self._lock:
            learned = self._learned.get(options, ())
        # With it come the protocol's classes. Most processes of a driver ask no brokers, and are done sooner without.
        from pyspark_kafka.client.cluster.kafka_client import KafkaClient  # noqa: PLC0415

        # The bootstrap servers may be gone for good by now.
        servers = dict.fromkeys((*options.learned_servers, *learned))
        return KafkaClient(replace(options, learned_servers=tuple(servers)[:_LEARNED_TRIED]))

    def _take(self, options: ConnectionOptions) -> KafkaClient | None:
        oldest = self._clock() - self._idle_seconds
        expired: list[KafkaClient] = []
        with self._lock:
            for key in list(self._resting):
                expired.extend(client for client, since in self._resting[key] if since < oldest)
                self._resting[key] = [entry for entry in self._resting[key] if entry[1] >= oldest]
                if not self._resting[key]:
                    del self._resting[key]
            entries = self._resting.get(options)
            taken = entries.pop()[0] if entries else None
        for client in expired:
            client.close()
        return taken

    def _put(self, client: KafkaClient) -> None:
        client.rest()
        if client.created_in == os.getpid() == self._process_id:
            with self._lock:
                self._learned.pop(client.options, None)
                if len(self._learned) >= _LEARNED_KEPT:
                    del self._learned[next(iter(self._learned))]
                self._learned[client.options] = client.learned_servers()
                entries = self._resting.setdefault(client.options, [])
                if len(entries) < _KEPT_PER_KEY:
                    entries.append((client, self._clock()))
                    return
        client.close()


_POOL = ClientPool()


@contextmanager
def borrow_client(options: ConnectionOptions) -> Iterator[KafkaClient]:
    """Lend a client of this process's pool; see `ClientPool.borrow`."""
    with _POOL.borrow(options) as client:
        yield client


def learned_servers(options: ConnectionOptions) -> tuple[tuple[str, int], ...]:
    """Give some brokers that this process has learned of: what travels to executors, as bootstrap servers may retire.

    Runs on: driver; a look into memory. A few addresses, whatever the size of the cluster.
    """
    return _POOL.learned_servers(options)


def close_clients() -> None:
    """Close the clients that rest in this process's pool."""
    _POOL.close()
