"""Access to a cluster, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka._client.options.values.tls import TlsOptions

if TYPE_CHECKING:
    from pyspark_kafka._client.options.values.security import Login

_KIB = 1 << 10
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """A cluster's servers, and the login to it. Hashable: pools of clients are keyed by it.

    Units: `_ms` milliseconds, `_bytes` bytes. A buffer size of -1 leaves the operating system's default.

    Attributes:
        bootstrap_servers: (host, port) pairs; IPv6 hosts without brackets.
        security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        tls: certificates, with SSL and SASL_SSL.
        login: the SASL mechanism and its credentials; None without SASL.
        client_id: of all requests; None for one that names the task (`client/net/client_id.py`).
        request_timeout_ms: longest wait for a response.
        connect_timeout_ms: longest wait for one connection attempt, TLS and SASL included.
        api_timeout_ms: deadline of a whole step, such as an offset look-up, retries included.
        retry_backoff_ms: initial delay before a failed request is retried; doubles after each failure.
        retry_backoff_max_ms: upper bound of that delay; at least `retry_backoff_ms`.
        metadata_max_age_ms: the age of metadata about brokers and partitions, after which they are fetched again.
        max_idle_ms: the maximum idle time of a connection; negative for no limit.
        learned_servers: addresses of brokers that were learned elsewhere, tried after the bootstrap servers. Options
            that differ only in them are equal: it is the same cluster.
    """

    bootstrap_servers: tuple[tuple[str, int], ...]
    client_id: str | None = None
    client_rack: str | None = None
    security_protocol: str = "PLAINTEXT"
    tls: TlsOptions = field(default_factory=TlsOptions)
    login: Login | None = None
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    # Below 30 s on purpose: a query on an unreachable cluster fails, with its reason, before a user gives up on it.
    api_timeout_ms: int = 20_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    # Below 240 s, after which Azure's load balancers forget a connection, and below the 600 s of brokers.
    max_idle_ms: int = 180_000
    receive_buffer_bytes: int = 4 * _MIB
    send_buffer_bytes: int = 128 * _KIB
    learned_servers: tuple[tuple[str, int], ...] = field(default=(), compare=False, repr=False)

    @property
    def answer_timeout_ms(self) -> float:
        """The longest wait for a response within a step: at most half of it, so that another broker can be tried.

        A machine that is gone sends nothing: connections to it stay open, while its partitions have other leaders.
        """
        return min(self.request_timeout_ms, self.api_timeout_ms / 2)

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether connections authenticate with SASL."""
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")
