"""The `kafka.` options that have an effect: Java's client properties, each with what it does here.

Data only. The other properties of Java's clients are answered in `other_properties`. Layer: options.
"""

from __future__ import annotations

from pyspark_kafka.model import IsolationLevel
from pyspark_kafka.options.catalogue.option import EVERYWHERE, READS, WRITES, Option
from pyspark_kafka.options.parse import scalars
from pyspark_kafka.options.values.connection import ConnectionOptions
from pyspark_kafka.options.values.fetch import FetchOptions
from pyspark_kafka.options.values.producer import ProducerOptions

_MS = scalars.whole_number(0, scalars.INT32_MAX, "milliseconds")
_POSITIVE_MS = scalars.whole_number(1, scalars.INT32_MAX, "milliseconds")
_LONG_MS = scalars.whole_number(0, scalars.INT64_MAX, "milliseconds")
_BYTES = scalars.whole_number(1, scalars.INT32_MAX, "bytes")
_BUFFER_BYTES = scalars.whole_number(-1, scalars.INT32_MAX, "bytes")

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_NUMBER = "whole number"
_CONNECTION = ConnectionOptions(())
_FETCH = FetchOptions()
_PRODUCER = ProducerOptions()


def _mechanism(raw: str) -> object:
    name = raw.strip().upper()
    if name in SASL_MECHANISMS:
        return name
    raise ValueError(
        f"must be one of {', '.join(SASL_MECHANISMS)} (others are not supported yet); got {scalars.shorten(raw)}"
    )


def _host_check(raw: str) -> bool:
    if raw.strip().lower() not in ("", "https"):
        raise ValueError(f"must be https, or empty to accept any host name; got {scalars.shorten(raw)}")
    return bool(raw.strip())


def _store_type(raw: str) -> str:
    if raw.strip().upper() == "PEM":
        return "PEM"
    raise ValueError(
        f"must be PEM; got {scalars.shorten(raw)}. Java's key stores cannot be read here; convert them. Trusted "
        "certificates: keytool -exportcert -rfc -alias <alias> -keystore <store> -file ca.pem. Certificate and key: "
        "keytool -importkeystore -srckeystore <store> -destkeystore client.p12 -deststoretype PKCS12, then openssl "
        "pkcs12 -in client.p12 -out client.pem"
    )


CONNECTION_PROPERTIES: tuple[Option, ...] = (
    Option(
        "kafka.bootstrap.servers",
        "Brokers to begin with, `host:port` with commas between them; the others are learned from them.",
        parse=scalars.bootstrap_servers,
        kind="host:port list",
        default_doc="must be given",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.client.id",
        "The name that brokers see in requests, logs and quotas.",
        parse=scalars.text,
        default=_CONNECTION.client_id,
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.client.rack",
        "Where the reader is, by the brokers' `broker.rack`, so that it may read from a replica near it.",
        parse=scalars.optional_text,
        scopes=READS,
        no_effect_in=WRITES,
    ),
    Option(
        "kafka.security.protocol",
        "Whether connections are encrypted (SSL) and authenticated (SASL).",
        parse=scalars.words(*SECURITY_PROTOCOLS),
        kind=", ".join(SECURITY_PROTOCOLS),
        default=_CONNECTION.security_protocol,
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.sasl.mechanism",
        "How to log in, with a SASL security protocol.",
        parse=_mechanism,
        kind=", ".join(SASL_MECHANISMS),
        default_doc="must be given with SASL",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.sasl.jaas.config",
        "User name and password, as Java clients take them: `org.apache.kafka.common.security.plain.PlainLoginModule "
        'required username="…" password="…";`, or `…security.scram.ScramLoginModule…`.',
        # The value stays a Secret here; options.security reads it together with the mechanism.
        parse=scalars.secret,
        kind="JAAS configuration",
        default_doc="must be given with SASL",
        scopes=EVERYWHERE,
        secret=True,
    ),
    Option(
        "kafka.ssl.truststore.location",
        "PEM file of the certificates to trust, on every machine that runs the driver or an executor.",
        parse=scalars.text,
        kind="file",
        default_doc="the system's certificates",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.ssl.truststore.type",
        "The type of `kafka.ssl.truststore.location`.",
        parse=_store_type,
        kind="PEM",
        default_doc="must be given with the location",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.ssl.keystore.location",
        "PEM file with the client's certificate chain and its private key, on every machine.",
        parse=scalars.text,
        kind="file",
        default_doc="no client certificate",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.ssl.keystore.type",
        "The type of `kafka.ssl.keystore.location`.",
        parse=_store_type,
        kind="PEM",
        default_doc="must be given with the location",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.ssl.key.password",
        "The password of the private key in `kafka.ssl.keystore.location`.",
        parse=scalars.secret,
        default_doc="the key is not encrypted",
        scopes=EVERYWHERE,
        secret=True,
    ),
    Option(
        "kafka.ssl.endpoint.identification.algorithm",
        "`https` checks that a broker's certificate is for its host name; empty accepts any name.",
        parse=_host_check,
        kind="`https` or empty",
        default=True,
        default_doc="`https`",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.request.timeout.ms",
        "The longest wait for the answer to one request.",
        parse=_POSITIVE_MS,
        kind=_NUMBER,
        default=_CONNECTION.request_timeout_ms,
        unit="ms",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.default.api.timeout.ms",
        "The deadline of a whole step (metadata, an offset look-up), retries included. One broker's answer is waited "
        "for half as long at most, so that another one can be asked.",
        parse=_POSITIVE_MS,
        kind=_NUMBER,
        default=_CONNECTION.api_timeout_ms,
        unit="ms",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.socket.connection.setup.timeout.ms",
        "The longest wait for a connection, TLS and SASL included.",
        parse=_POSITIVE_MS,
        kind=_NUMBER,
        default=_CONNECTION.connect_timeout_ms,
        unit="ms",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.retry.backoff.ms",
        "The first pause before a failed request is sent again; it doubles…",
        parse=_MS,
        kind=_NUMBER,
        default=_CONNECTION.retry_backoff_ms,
        unit="ms",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.retry.backoff.max.ms",
        "…up to this.",
        parse=_MS,
        kind=_NUMBER,
        default=_CONNECTION.retry_backoff_max_ms,
        unit="ms",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.metadata.max.age.ms",
        "How long the knowledge of brokers and partitions is used before it is asked for again.",
        parse=_MS,
        kind=_NUMBER,
        default=_CONNECTION.metadata_max_age_ms,
        unit="ms",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.receive.buffer.bytes",
        "The socket's receive buffer; -1 leaves the operating system's.",
        parse=_BUFFER_BYTES,
        kind=_NUMBER,
        default=_CONNECTION.receive_buffer_bytes,
        unit="bytes",
        scopes=EVERYWHERE,
    ),
    Option(
        "kafka.send.buffer.bytes",
        "The socket's send buffer; -1 leaves the operating system's.",
        parse=_BUFFER_BYTES,
        kind=_NUMBER,
        default=_CONNECTION.send_buffer_bytes,
        unit="bytes",
        scopes=EVERYWHERE,
    ),
)

CONSUMER_PROPERTIES: tuple[Option, ...] = (
    Option(
        "kafka.isolation.level",
        "`read_committed` hides records of open and aborted transactions; `latest` is then the last stable offset.",
        parse=scalars.choice({level.value: level for level in IsolationLevel}),
        kind="read_uncommitted, read_committed",
        default=_FETCH.isolation_level,
        default_doc="`read_uncommitted`",
        scopes=READS,
        no_effect_in=WRITES,
    ),
    Option(
        "kafka.group.id",
        "Accepted for a query's sake that has it: no consumer group is joined, nothing is committed to it.",
        parse=scalars.text,
        scopes=READS,
        no_effect_in=WRITES,
    ),
    *(
        Option(name, doc, parse=parse, kind=kind, default=default, unit=unit, scopes=READS, no_effect_in=WRITES)
        for name, doc, parse, kind, default, unit in (
            (
                "kafka.fetch.max.bytes",
                "The most bytes of one fetch. A first record batch that is larger comes whole.",
                _BYTES,
                _NUMBER,
                _FETCH.max_bytes_per_fetch,
                "bytes",
            ),
            (
                "kafka.max.partition.fetch.bytes",
                "The most bytes of one partition in a fetch. A first record batch that is larger comes whole.",
                _BYTES,
                _NUMBER,
                _FETCH.max_partition_fetch_bytes,
                "bytes",
            ),
            (
                "kafka.fetch.min.bytes",
                "A broker answers a fetch when it has so many bytes…",
                _BYTES,
                _NUMBER,
                _FETCH.min_bytes,
                "bytes",
            ),
            ("kafka.fetch.max.wait.ms", "…or after this time.", _MS, _NUMBER, _FETCH.max_wait_ms, "ms"),
            (
                "kafka.check.crcs",
                "Whether the checksums of record batches are verified.",
                scalars.boolean,
                "true, false",
                _FETCH.check_crcs,
                "",
            ),
        )
    ),
)

PRODUCER_PROPERTIES: tuple[Option, ...] = tuple(
    Option(
        name,
        doc,
        parse=parse,
        kind=kind,
        default=default,
        default_doc=default_doc,
        unit=unit,
        scopes=WRITES,
        no_effect_in=READS,
    )
    for name, doc, parse, kind, default, default_doc, unit in (
        (
            "kafka.acks",
            "Who must have a record before it counts as written: `all` in-sync replicas, `1` the leader, `0` nobody.",
            scalars.choice({"all": -1, "-1": -1, "1": 1, "0": 0}),
            "all, 1, 0",
            _PRODUCER.acks,
            "`all`",
            "",
        ),
        (
            "kafka.enable.idempotence",
            "Whether brokers drop the duplicates that retried requests would make.",
            scalars.boolean,
            "true, false",
            _PRODUCER.idempotence,
            "",
            "",
        ),
        (
            "kafka.compression.type",
            "How record batches are compressed.",
            scalars.words("none", "gzip", "snappy", "lz4", "zstd"),
            "none, gzip, snappy, lz4, zstd",
            _PRODUCER.compression,
            "",
            "",
        ),
        (
            "kafka.compression.gzip.level",
            "1 to 9, or -1 for the codec's own, with `kafka.compression.type=gzip`.",
            scalars.whole_number(-1, 9),
            _NUMBER,
            None,
            "the codec's",
            "",
        ),
        (
            "kafka.compression.lz4.level",
            "1 to 17, with `kafka.compression.type=lz4`.",
            scalars.whole_number(1, 17),
            _NUMBER,
            None,
            "the codec's",
            "",
        ),
        (
            "kafka.compression.zstd.level",
            "-131072 to 22, with `kafka.compression.type=zstd`.",
            scalars.whole_number(-131_072, 22),
            _NUMBER,
            None,
            "the codec's",
            "",
        ),
        (
            "kafka.batch.size",
            "How large record batches are made, before compression, where a task has that many rows for a partition.",
            _BYTES,
            _NUMBER,
            _PRODUCER.batch_size,
            "",
            "bytes",
        ),
        (
            "kafka.max.request.size",
            "The most bytes of one record batch; a topic's `max.message.bytes` must allow it.",
            scalars.whole_number(128, scalars.INT32_MAX, "bytes"),
            _NUMBER,
            _PRODUCER.max_request_size,
            "",
            "bytes",
        ),
        (
            "kafka.delivery.timeout.ms",
            "The deadline for a record batch, retries included; then the task fails. A stream takes `outageTimeout`.",
            _POSITIVE_MS,
            _NUMBER,
            _PRODUCER.delivery_timeout_ms,
            "",
            "ms",
        ),
        (
            "kafka.max.in.flight.requests.per.connection",
            "How many requests to one broker may wait for their answers.",
            scalars.whole_number(1, 5, "requests"),
            _NUMBER,
            _PRODUCER.max_in_flight,
            "",
            "requests",
        ),
        (
            "kafka.buffer.memory",
            "The most bytes that a task has encoded and not yet seen acknowledged; below 1 MiB, 1 MiB are used.",
            scalars.whole_number(0, scalars.INT64_MAX, "bytes"),
            _NUMBER,
            32 << 20,
            "",
            "bytes",
        ),
        (
            "kafka.max.block.ms",
            "How long a topic that is written to and does not exist is waited for.",
            _LONG_MS,
            _NUMBER,
            15_000,
            "",
            "ms",
        ),
        (
            "kafka.transactional.id",
            "The name of an exactly-once sink, by which brokers shut out a former driver. Each query has its own.",
            scalars.text,
            "text",
            None,
            "`pyspark-kafka-` and the query's id; in a batch write a new one each time",
            "",
        ),
        (
            "kafka.transaction.timeout.ms",
            "The longest time in which an exactly-once write hands its prepared records to the brokers.",
            _POSITIVE_MS,
            _NUMBER,
            60_000,
            "",
            "ms",
        ),
    )
)

USED_PROPERTIES: tuple[Option, ...] = (*CONNECTION_PROPERTIES, *CONSUMER_PROPERTIES, *PRODUCER_PROPERTIES)
