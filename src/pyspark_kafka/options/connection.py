"""What a Kafka client is told: how to connect, how to fetch, how to produce. Plain frozen data.

The values are parsed and checked by `options.parsing`; the classes here only hold them, so that they can be pickled to
executors and used as pool keys. No parsing, no I/O. Layer: options, the part that client/ reads.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from pyspark_kafka.model import IsolationLevel

MIB = 1 << 20


class Secret:
    """A text that no repr, log line or error message shows.

    Not a `str`: formatting, joining or serializing it by accident gives stars or fails. Pickling keeps the value, as
    executors need it.

    Example:
        >>> print(Secret("hunter2"), repr(Secret("hunter2")))
        *** Secret('***')
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        """Keep the value out of sight."""
        self._value = value

    def reveal(self) -> str:
        """Give the value, to hand it to a security mechanism."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return (Secret, (self._value,))


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How to reach a cluster and prove who we are. Hashable: pools of clients are keyed by it.

    Units: `_ms` milliseconds, `_bytes` bytes. A buffer size of -1 leaves the operating system's default.

    Attributes:
        bootstrap_servers: (host, port) pairs; IPv6 hosts without brackets.
        security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        sasl_mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI or OAUTHBEARER; None without SASL.
        ssl_ca_location: PEM file of trusted certificates; None trusts the system's.
        ssl_certificate_location: PEM file with the client's certificate chain; None without client authentication.
        ssl_key_location: PEM file with the client's private key; may be the same file.
        request_timeout_ms: longest wait for one answer.
        connect_timeout_ms: longest wait for one connection attempt, TLS and SASL included.
        api_timeout_ms: deadline of a whole step on the driver, retries included.
        learned_servers: addresses of brokers that were learned elsewhere, tried behind the bootstrap servers. They make
            no other cluster of it: options that differ in them only are equal.
    """

    bootstrap_servers: tuple[tuple[str, int], ...]
    client_id: str = "pyspark-kafka"
    client_rack: str | None = None
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: Secret | None = None
    sasl_kerberos_service_name: str | None = None
    ssl_ca_location: str | None = None
    ssl_certificate_location: str | None = None
    ssl_key_location: str | None = None
    ssl_key_password: Secret | None = None
    ssl_check_hostname: bool = True
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    # Below 30 s on purpose: a query on an unreachable cluster fails, with its reason, before a user gives up on it.
    api_timeout_ms: int = 20_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    receive_buffer_bytes: int = 4 * MIB
    send_buffer_bytes: int = 128 * 1024
    learned_servers: tuple[tuple[str, int], ...] = field(default=(), compare=False, repr=False)

    @property
    def answer_timeout_ms(self) -> float:
        """The longest wait for one answer within a step: half of it at most, so that another broker can be asked.

        A machine that is gone says nothing: connections to it stay open, while its partitions have other leaders.
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


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How records are fetched and how much a task may hold.

    Attributes:
        max_bytes_per_fetch: the most bytes of one fetch response (`kafka.fetch.max.bytes`).
        max_partition_fetch_bytes: the most bytes of one partition in a response (`kafka.max.partition.fetch.bytes`).
        min_bytes: the broker waits until it has so many (`kafka.fetch.min.bytes`)…
        max_wait_ms: …or so long (`kafka.fetch.max.wait.ms`).
        check_crcs: whether checksums of record batches are verified.
        max_decompressed_bytes: the most bytes one record batch may decompress to.
        buffer_bytes: the most fetched bytes a task holds at a time.
        poll_timeout_ms: the longest wait without any progress before the task fails…
        outage_timeout_ms: …and where brokers are away all the while, if it is longer; 0 in batch reads.
    """

    max_bytes_per_fetch: int = 8 * MIB
    max_partition_fetch_bytes: int = 8 * MIB
    min_bytes: int = 1
    max_wait_ms: int = 500
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    check_crcs: bool = True
    max_decompressed_bytes: int = 256 * MIB
    buffer_bytes: int = 64 * MIB
    poll_timeout_ms: int = 120_000
    outage_timeout_ms: int = 0


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """How records are batched, compressed and acknowledged.

    Attributes:
        acks: -1 all in-sync replicas, 1 the leader alone, 0 none.
        idempotence: whether brokers drop duplicates of retried requests; needs acks -1.
        compression: none, gzip, snappy, lz4 or zstd.
        compression_level: None takes the codec's default.
        batch_size: aim for uncompressed bytes of a record batch; a batch never exceeds `max_request_size`.
        max_request_size: the most bytes of one record batch on the wire.
        delivery_timeout_ms: deadline for a batch, retries included.
        max_in_flight: requests under way on one connection, at most 5.
    """

    acks: int = -1
    idempotence: bool = True
    compression: str = "none"
    compression_level: int | None = None
    batch_size: int = MIB
    max_request_size: int = MIB
    delivery_timeout_ms: int = 120_000
    request_timeout_ms: int = 30_000
    max_in_flight: int = 5
