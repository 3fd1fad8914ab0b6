"""How each option stands to Spark's own connector: the same, or in what it differs.

Data only, apart from the options' declarations because it is about two programs: `catalogue` puts it beside them, the
documentation page shows it, and a test demands an answer for every option. What Spark's connector hands on to Java's
clients is compared with those of Kafka 4.3. Layer: options.
"""

from __future__ import annotations

from pyspark_kafka.options.catalogue.kafka_answered import REPLACED_PROPERTIES
from pyspark_kafka.options.catalogue.option import Option, Status

SAME = "same"
OURS = "not an option of Spark's connector"
REFUSED_THERE = "refused, too"
_TIMES = "same; ISO 8601 and times back from now are added"
_PEM_ONLY = "Java reads JKS and PKCS12 as well, and takes JKS by default"

PARITY: dict[str, str] = {
    "deliveryGuarantee": OURS,
    "commitTopic": OURS,
    "spoolLocation": OURS,
    "spoolThresholdBytes": OURS,
    "kafka.transactional.id": "handed on there, and of no use: nothing begins a transaction",
    "kafka.transaction.timeout.ms": "handed on there, and of no use: nothing begins a transaction",
    "subscribe": "same; a name that Kafka does not allow is refused at once",
    "subscribePattern": "same, found anywhere in the name; Java's syntax there",
    "assign": "same; a partition that is listed twice is refused",
    "startingOffsets": "same; an offset below -2 is refused at once, words for whole topics need a newer connector "
    "than 4.2, words for partitions are added",
    "endingOffsets": "same; an offset below -2 is refused at once, words for whole topics need a newer connector than "
    "4.2, words for partitions are added",
    "startingTimestamp": _TIMES,
    "startingOffsetsByTimestamp": _TIMES,
    "startingOffsetsByTimestampStrategy": SAME,
    "endingTimestamp": f"{_TIMES}; in a stream it is refused, and ignored there",
    "endingOffsetsByTimestamp": _TIMES,
    "failOnDataLoss": "same; besides, a topic that was deleted and created again is noticed by its id",
    "includeHeaders": SAME,
    "maxOffsetsPerTrigger": "same shares; 0 is refused, where the connector stands still",
    "maxBytesPerTrigger": OURS,
    "minOffsetsPerTrigger": SAME,
    "maxTriggerDelay": "same; names of units such as `5 minutes` are added",
    "minPartitions": "same; split and whole ranges alike have no preferred executor",
    "maxRecordsPerPartition": "same in a stream; there, a batch from earliest to latest is not split",
    "maxPartitionsPerTask": OURS,
    "pushDownPredicate": OURS,
    "fetchOffset.numRetries": "same; what a deadline or missing rights have ended is not tried again",
    "fetchOffset.retryIntervalMs": SAME,
    "kafkaConsumer.pollTimeoutMs": "there, the limit of one poll, with `spark.network.timeout` as its default",
    "outageTimeout": OURS,
    "groupIdPrefix": "there, the beginning of consumer group names; none are used here",
    "checkpointLocation": OURS,
    "sourceIndex": OURS,
    "topic": "same; a name that Kafka does not allow is refused at once",
    "identityHeaders": OURS,
    "maxBufferedBytesPerTask": OURS,
    "maxDecompressedBatchBytes": OURS,
    "kafka.bootstrap.servers": "same; a sink without it is refused when it starts, not by its first task",
    "kafka.client.id": "Java makes a name for each client where none is given",
    "kafka.client.rack": SAME,
    "kafka.security.protocol": SAME,
    "kafka.sasl.mechanism": "Java has further mechanisms, and takes `GSSAPI` by default",
    "kafka.sasl.jaas.config": "same for the login modules named here",
    "kafka.ssl.truststore.location": f"PEM only; {_PEM_ONLY}",
    "kafka.ssl.truststore.type": f"PEM only; {_PEM_ONLY}",
    "kafka.ssl.keystore.location": f"PEM only; {_PEM_ONLY}",
    "kafka.ssl.keystore.type": f"PEM only; {_PEM_ONLY}",
    "kafka.ssl.key.password": SAME,
    "kafka.ssl.endpoint.identification.algorithm": SAME,
    "kafka.request.timeout.ms": SAME,
    "kafka.default.api.timeout.ms": "60000 by default there",
    "kafka.socket.connection.setup.timeout.ms": "there, the time of one attempt without TLS and SASL",
    "kafka.retry.backoff.ms": SAME,
    "kafka.retry.backoff.max.ms": SAME,
    "kafka.metadata.max.age.ms": SAME,
    "kafka.receive.buffer.bytes": "65536 by default in reads there",
    "kafka.send.buffer.bytes": SAME,
    "kafka.isolation.level": SAME,
    "kafka.group.id": "there, the group of all consumers, with a warning",
    "kafka.fetch.max.bytes": "52428800 by default there",
    "kafka.max.partition.fetch.bytes": "1048576 by default there",
    "kafka.fetch.min.bytes": SAME,
    "kafka.fetch.max.wait.ms": SAME,
    "kafka.check.crcs": SAME,
    "kafka.acks": "same; anything but `all` needs `kafka.enable.idempotence=false`, which Java sets by itself",
    "kafka.enable.idempotence": SAME,
    "kafka.compression.type": SAME,
    "kafka.compression.gzip.level": SAME,
    "kafka.compression.lz4.level": SAME,
    "kafka.compression.zstd.level": SAME,
    "kafka.batch.size": "16384 by default there",
    "kafka.max.request.size": "there, of a whole request and of one record",
    "kafka.delivery.timeout.ms": "same; in a stream that has run, `outageTimeout` where it is not given",
    "kafka.max.in.flight.requests.per.connection": "same; Java allows more than 5 without idempotence",
    "kafka.buffer.memory": "there, of all tasks of an executor together",
    "kafka.max.block.ms": "60000 by default there",
    **dict.fromkeys(
        (
            "kafka.auto.offset.reset",
            "kafka.enable.auto.commit",
            "kafka.interceptor.classes",
            "kafka.key.deserializer",
            "kafka.value.deserializer",
            "kafka.key.serializer",
            "kafka.value.serializer",
        ),
        REFUSED_THERE,
    ),
}

_NOT_JAVAS = frozenset(option.name for option in REPLACED_PROPERTIES)


def parity_of(option: Option) -> str:
    """Give how an option stands to Spark's connector; empty where nobody has said it."""
    if option.name in PARITY or option.status is Status.USED:
        return PARITY.get(option.name, "")
    if option.name in _NOT_JAVAS:
        return "ignored by Java's clients"
    return "handed on to Java's clients"
