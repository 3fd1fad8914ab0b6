"""The `kafka.` options that have an effect: Java's client properties, each with what it does here.

Data only. The other properties of Java's clients are in `kafka_answered`.
"""

from __future__ import annotations

from functools import partial

from pyspark_kafka._base.model import IsolationLevel
from pyspark_kafka._client.options.catalogue.option import EVERYWHERE, READS, WRITES, Option
from pyspark_kafka._client.options.catalogue.parity import NO_TRANSACTION, SAME
from pyspark_kafka._client.options.parse import scalars

_MS = scalars.whole_number(0, scalars.INT32_MAX, "milliseconds")
_POSITIVE_MS = scalars.whole_number(1, scalars.INT32_MAX, "milliseconds")
_LONG_MS = scalars.whole_number(0, scalars.INT64_MAX, "milliseconds")
_BYTES = scalars.whole_number(1, scalars.INT32_MAX, "bytes")
_BUFFER_BYTES = scalars.whole_number(-1, scalars.INT32_MAX, "bytes")

_NUMBER = "whole number"
_FLAG = "true, false"

_shared = partial(Option, scopes=EVERYWHERE)
_consumer = partial(Option, scopes=READS, no_effect_in=WRITES)
_producer = partial(Option, scopes=WRITES, no_effect_in=READS)


CONNECTION_PROPERTIES: tuple[Option, ...] = (
    _shared(
        "kafka.bootstrap.servers",
        "The first brokers to connect to, `host:port` separated by commas; the other brokers are learned from them.",
        parity="same; a sink without it is refused when it starts, not by its first task",
        field="connection.bootstrap_servers",
        parse=scalars.bootstrap_servers,
        kind="host:port list",
        default_doc="required",
    ),
    _shared(
        "kafka.client.id",
        "The name of all requests in the logs, metrics and quotas of brokers. By default, each task has its own name, "
        "such as `pyspark-kafka-q8c0e91aa-r53f2c001-t3`: the beginning of the query's id and of its run's id, and the "
        "number of the task. In a batch job, `pyspark-kafka-s5-t3` has the stage and the number of the task. All other "
        "requests have `pyspark-kafka`. With one name, all tasks share a quota.",
        parity="there, each client has a name of its own if none is set",
        field="connection.client_id",
        parse=scalars.text,
        default_doc="a name a task",
    ),
    _consumer(
        "kafka.client.rack",
        "The location of the reader, as in the brokers' `broker.rack`; it can then read from a replica near it.",
        parity=SAME,
        field="connection.client_rack",
        parse=scalars.optional_text,
    ),
    _shared(
        "kafka.request.timeout.ms",
        "The maximum wait for the response to one request. A response may take longer while at least 1 kB/s of it "
        "arrives: a fetch response as long as it needs, others up to `kafka.default.api.timeout.ms`. The wait for the "
        "acknowledgement of a write begins with the acknowledgement before it.",
        parity="there, for the whole response, however large",
        field="connection.request_timeout_ms",
        also=("producer.request_timeout_ms",),
        parse=_POSITIVE_MS,
        kind=_NUMBER,
        unit="ms",
    ),
    _shared(
        "kafka.default.api.timeout.ms",
        "The deadline of a whole step (metadata, an offset look-up), retries included. The wait for one broker's "
        "response is at most half of it, so that another broker can be tried.",
        parity="60000 by default there",
        field="connection.api_timeout_ms",
        parse=_POSITIVE_MS,
        kind=_NUMBER,
        unit="ms",
    ),
    _shared(
        "kafka.socket.connection.setup.timeout.ms",
        "The maximum wait for a connection, TLS and SASL included.",
        parity="there, the time of one attempt without TLS and SASL",
        field="connection.connect_timeout_ms",
        parse=_POSITIVE_MS,
        kind=_NUMBER,
        unit="ms",
    ),
    _shared(
        "kafka.retry.backoff.ms",
        "Initial delay before a failed request is retried; doubles after each failure, up to "
        "`kafka.retry.backoff.max.ms`.",
        parity=SAME,
        field="connection.retry_backoff_ms",
        parse=_MS,
        kind=_NUMBER,
        unit="ms",
    ),
    _shared(
        "kafka.retry.backoff.max.ms",
        "Upper bound of the delay before a failed request is retried; at least `kafka.retry.backoff.ms`.",
        parity=SAME,
        field="connection.retry_backoff_max_ms",
        parse=_MS,
        kind=_NUMBER,
        unit="ms",
    ),
    _shared(
        "kafka.connections.max.idle.ms",
        "A connection that was idle for longer is replaced before its next request: firewalls and load balancers "
        "forget idle connections silently. -1 sets no limit.",
        parity="540000 by default there",
        field="connection.max_idle_ms",
        parse=scalars.whole_number(-1, scalars.INT32_MAX, "milliseconds"),
        kind=_NUMBER,
        unit="ms",
    ),
    _shared(
        "kafka.metadata.max.age.ms",
        "The maximum age of information about brokers and partitions before it is requested again. A continuous query "
        "with `subscribePattern` looks for new topics at the same interval, a micro-batch query at each micro-batch.",
        parity=SAME,
        field="connection.metadata_max_age_ms",
        parse=_MS,
        kind=_NUMBER,
        unit="ms",
    ),
    _shared(
        "kafka.receive.buffer.bytes",
        "The size of the socket's receive buffer; -1 keeps the default of the operating system.",
        parity="65536 by default in reads there",
        field="connection.receive_buffer_bytes",
        parse=_BUFFER_BYTES,
        kind=_NUMBER,
        unit="bytes",
    ),
    _shared(
        "kafka.send.buffer.bytes",
        "The size of the socket's send buffer; -1 keeps the default of the operating system.",
        parity=SAME,
        field="connection.send_buffer_bytes",
        parse=_BUFFER_BYTES,
        kind=_NUMBER,
        unit="bytes",
    ),
)

CONSUMER_PROPERTIES: tuple[Option, ...] = (
    _consumer(
        "kafka.isolation.level",
        "`read_committed` hides records of open and aborted transactions; `latest` is then the last stable offset.",
        parity=SAME,
        field="fetch.isolation_level",
        parse=scalars.choice({level.value: level for level in IsolationLevel}),
        kind="read_uncommitted, read_committed",
        default_doc="`read_uncommitted`",
    ),
    _consumer(
        "kafka.group.id",
        "Accepted for compatibility: this connector does not use consumer groups and commits no offsets to one.",
        parity="there, the group of all consumers, with a warning",
        field="read.group_id",
        parse=scalars.text,
    ),
    _consumer(
        "kafka.fetch.max.bytes",
        "The maximum size of a fetch response, by default at most `maxBufferedBytesPerTask`. If the first record batch "
        "is larger, it still arrives whole.",
        parity="52428800 by default there",
        field="fetch.max_bytes_per_fetch",
        parse=_BYTES,
        kind=_NUMBER,
        unit="bytes",
    ),
    _consumer(
        "kafka.max.partition.fetch.bytes",
        "The maximum size of one partition's part of a fetch response. If the first record batch is larger, it still "
        "arrives whole. Less is requested over a slow link and under a quota.",
        parity="1048576 by default there",
        field="fetch.max_partition_fetch_bytes",
        parse=_BYTES,
        kind=_NUMBER,
        unit="bytes",
    ),
    _consumer(
        "kafka.fetch.min.bytes",
        "A broker responds to a fetch when it has this many bytes, or after `kafka.fetch.max.wait.ms`.",
        parity=SAME,
        field="fetch.min_bytes",
        parse=_BYTES,
        kind=_NUMBER,
        unit="bytes",
    ),
    _consumer(
        "kafka.fetch.max.wait.ms",
        "The maximum time a broker waits for `kafka.fetch.min.bytes` before it responds to a fetch.",
        parity=SAME,
        field="fetch.max_wait_ms",
        parse=_MS,
        kind=_NUMBER,
        unit="ms",
    ),
    _consumer(
        "kafka.check.crcs",
        "Whether the checksums of record batches are verified. They do not cover the offset at which a batch begins: "
        "this is compared with the batches around it, whatever this option says.",
        parity=SAME,
        field="fetch.check_crcs",
        parse=scalars.boolean,
        kind=_FLAG,
    ),
)

PRODUCER_PROPERTIES: tuple[Option, ...] = (
    _producer(
        "kafka.acks",
        "Which replicas must have a record before it counts as written: `all` in-sync replicas, `1` the leader, `0` "
        "none.",
        parity="same; any value except `all` needs `kafka.enable.idempotence=false`, which Java sets automatically",
        field="producer.acks",
        parse=scalars.choice({"all": -1, "-1": -1, "1": 1, "0": 0}),
        kind="all, 1, 0",
        default_doc="`all`",
    ),
    _producer(
        "kafka.enable.idempotence",
        "Whether brokers drop the duplicates that retried requests would make.",
        parity=SAME,
        field="producer.idempotence",
        parse=scalars.boolean,
        kind=_FLAG,
    ),
    _producer(
        "kafka.compression.type",
        "How record batches are compressed.",
        parity=SAME,
        field="producer.compression",
        parse=scalars.words("none", "gzip", "snappy", "lz4", "zstd"),
        kind="none, gzip, snappy, lz4, zstd",
    ),
    _producer(
        "kafka.compression.gzip.level",
        "1 to 9, or -1 for the codec's default, with `kafka.compression.type=gzip`.",
        parity=SAME,
        resolved_by="write",
        parse=scalars.whole_number(-1, 9),
        kind=_NUMBER,
        default_doc="the codec's default",
    ),
    _producer(
        "kafka.compression.lz4.level",
        "1 to 17, with `kafka.compression.type=lz4`.",
        parity=SAME,
        resolved_by="write",
        parse=scalars.whole_number(1, 17),
        kind=_NUMBER,
        default_doc="the codec's default",
    ),
    _producer(
        "kafka.compression.zstd.level",
        "-131072 to 22, with `kafka.compression.type=zstd`.",
        parity=SAME,
        resolved_by="write",
        parse=scalars.whole_number(-131_072, 22),
        kind=_NUMBER,
        default_doc="the codec's default",
    ),
    _producer(
        "kafka.batch.size",
        "The target size of record batches before compression, if a task has that many rows for a partition.",
        parity="16384 by default there",
        field="producer.batch_size",
        parse=_BYTES,
        kind=_NUMBER,
        unit="bytes",
    ),
    _producer(
        "kafka.max.request.size",
        "The maximum size of one record batch; the topic's `max.message.bytes` must allow it.",
        parity="there, of a whole request and of one record",
        field="producer.max_request_size",
        parse=scalars.whole_number(128, scalars.INT32_MAX, "bytes"),
        kind=_NUMBER,
        unit="bytes",
    ),
    _producer(
        "kafka.delivery.timeout.ms",
        "The deadline for a record batch, retries included; then the task fails. A batch that was never sent does not "
        "expire while the broker acknowledges the batches before it. If it is not set, a streaming query "
        "that has run uses `outageTimeout`.",
        parity="same; in a stream that has run, `outageTimeout` if it is not set",
        field="producer.delivery_timeout_ms",
        parse=_POSITIVE_MS,
        kind=_NUMBER,
        unit="ms",
    ),
    _producer(
        "kafka.max.in.flight.requests.per.connection",
        "The maximum number of requests to one broker that are in flight.",
        parity="same; Java allows more than 5 without idempotence",
        field="producer.max_in_flight",
        parse=scalars.whole_number(1, 5, "requests"),
        kind=_NUMBER,
        unit="requests",
    ),
    _producer(
        "kafka.buffer.memory",
        "The maximum of encoded and unacknowledged bytes in a task; at least 1 MiB is used. Half of it, but at "
        "least 4 MiB, bounds the rows that are gathered for record batches.",
        parity="there, of all tasks of an executor together",
        field="write.max_unacknowledged_bytes",
        parse=scalars.whole_number(0, scalars.INT64_MAX, "bytes"),
        kind=_NUMBER,
        unit="bytes",
    ),
    _producer(
        "kafka.max.block.ms",
        "The maximum time a write waits for a topic that does not exist.",
        parity="60000 by default there",
        field="write.max_block_ms",
        parse=_LONG_MS,
        kind=_NUMBER,
        unit="ms",
    ),
    _producer(
        "kafka.transactional.id",
        "The name of an exactly-once sink: with it brokers fence a former driver. Each query needs its own. In a "
        "continuous query, each lane has this name with its number.",
        parity=NO_TRANSACTION,
        field="exactly_once.transactional_id",
        parse=scalars.text,
        default_doc="`pyspark-kafka-` and the query's id; in a batch write a new one each time",
    ),
    _producer(
        "kafka.transaction.timeout.ms",
        "The maximum time in which an exactly-once write sends its prepared records to the brokers. In a continuous "
        "query three epochs must fit into it. With `exactlyOnceCommit` `tasks`: how long a micro-batch may take, "
        "900000 by default if brokers allow that.",
        parity=NO_TRANSACTION,
        field="exactly_once.transaction_timeout_ms",
        parse=_POSITIVE_MS,
        kind=_NUMBER,
        unit="ms",
    ),
)

USED_PROPERTIES: tuple[Option, ...] = (*CONNECTION_PROPERTIES, *CONSUMER_PROPERTIES, *PRODUCER_PROPERTIES)
