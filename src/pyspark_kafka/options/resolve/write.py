"""What the options of a write mean together. Layer: options.resolve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka.options.catalogue.option import Scope
from pyspark_kafka.options.resolve.collector import Collector
from pyspark_kafka.options.resolve.connection import resolve_connection
from pyspark_kafka.options.values.producer import ProducerOptions
from pyspark_kafka.options.values.write import ExactlyOnceOptions, WriteOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

MIB = 1 << 20


def parse_write_options(raw: Mapping[str, Any], *, streaming: bool) -> WriteOptions:
    """Resolve the options of `df.write` or `df.writeStream`. See `parse_batch_read_options`."""
    options = Collector(raw, Scope.STREAM_WRITE if streaming else Scope.BATCH_WRITE)
    connection = resolve_connection(options)
    producer = _resolve_producer(options)
    exactly_once = _resolve_exactly_once(options, streaming=streaming)
    options.raise_problems()
    buffer_bytes = _resolve_buffer(options)
    outage_timeout_ms = options["outageTimeout"] if streaming else 0
    delivery_timeout_ms = producer.delivery_timeout_ms
    return WriteOptions(
        connection=connection,
        topic=options["topic"],
        producer=producer,
        max_block_ms=options["kafka.max.block.ms"],
        buffer_bytes=buffer_bytes,
        identity_headers=options["identityHeaders"],
        exactly_once=exactly_once,
        outage_timeout_ms=outage_timeout_ms,
        patient_delivery_timeout_ms=delivery_timeout_ms
        if options.given("kafka.delivery.timeout.ms")
        else max(delivery_timeout_ms, outage_timeout_ms),
        notes=tuple(options.notes),
    )


def _resolve_buffer(options: Collector) -> int:
    given: int = options["kafka.buffer.memory"]
    if given < MIB:
        options.notes.append(f"Option 'kafka.buffer.memory' is {given} bytes: {MIB} are used, which batches need.")
    return max(given, MIB)


def _resolve_exactly_once(options: Collector, *, streaming: bool) -> ExactlyOnceOptions | None:
    if options["deliveryGuarantee"] != "exactly_once":
        alone = ("kafka.transactional.id", "kafka.transaction.timeout.ms", "commitTopic")
        for name in (*alone, "spoolLocation", "spoolThresholdBytes"):
            if options.given(name):
                options.notes.append(f"Option '{name}' has no effect: 'deliveryGuarantee' is not 'exactly_once'.")
        return None
    if streaming and not options.attempted("checkpointLocation"):
        options.report(
            "OPTION_MISSING",
            "Option 'checkpointLocation' of the writer must be set with 'deliveryGuarantee' exactly_once: the sink "
            "knows query and batches by it. A setting (spark.sql.streaming.checkpointLocation) does not reach it.",
            '.option("checkpointLocation", "/checkpoints/my-query") on writeStream',
            "checkpointLocation",
        )
    for name, needed in (("kafka.acks", -1), ("kafka.enable.idempotence", True)):
        if options.given(name) and options[name] != needed:
            options.report(
                "OPTION_CONFLICT",
                f"Option '{name}' is {str(options[name]).lower()}, but exactly_once needs "
                f"{'all' if needed == -1 else 'true'}.",
                f"Remove '{name}'.",
                name,
            )
    checkpoint = options["checkpointLocation"] if streaming else None
    spool = options["spoolLocation"]
    if spool is None and checkpoint is not None:
        spool = f"{checkpoint.rstrip('/')}/spool"
    return ExactlyOnceOptions(
        transactional_id=options["kafka.transactional.id"],
        transaction_timeout_ms=options["kafka.transaction.timeout.ms"],
        commit_topic=options["commitTopic"],
        checkpoint_location=checkpoint,
        spool_location=spool,
        spool_threshold_bytes=options["spoolThresholdBytes"],
    )


def _resolve_producer(options: Collector) -> ProducerOptions:
    acks, idempotence = options["kafka.acks"], options["kafka.enable.idempotence"]
    if acks != -1 and idempotence:
        options.report(
            "OPTION_CONFLICT",
            f"Option 'kafka.acks' is {acks}, but idempotence needs all.",
            "Remove 'kafka.acks', or set 'kafka.enable.idempotence' to false and accept loss and duplicates.",
            "kafka.acks",
        )
    if (
        options.given("kafka.delivery.timeout.ms")
        and options["kafka.delivery.timeout.ms"] < options["kafka.request.timeout.ms"]
    ):
        options.report(
            "OPTION_CONFLICT",
            f"Option 'kafka.delivery.timeout.ms' is {options['kafka.delivery.timeout.ms']}, less than the "
            f"{options['kafka.request.timeout.ms']} of 'kafka.request.timeout.ms': no request could be sent again.",
            "Raise the first or lower the second.",
            "kafka.delivery.timeout.ms",
        )
    compression = options["kafka.compression.type"]
    level = None
    for codec in ("gzip", "lz4", "zstd"):
        name = f"kafka.compression.{codec}.level"
        if codec == compression:
            level = options[name]
        elif options.given(name):
            options.notes.append(f"Option '{name}' has no effect: 'kafka.compression.type' is '{compression}'.")
    if compression == "gzip" and level == 0:
        options.report(
            "OPTION_INVALID",
            "Option 'kafka.compression.gzip.level' must be from 1 to 9, or -1 for the codec's own; got '0'.",
            option="kafka.compression.gzip.level",
        )
    return ProducerOptions(
        acks=acks,
        idempotence=idempotence,
        compression=compression,
        compression_level=None if compression == "gzip" and level == -1 else level,
        batch_size=options["kafka.batch.size"],
        max_request_size=options["kafka.max.request.size"],
        delivery_timeout_ms=options["kafka.delivery.timeout.ms"],
        request_timeout_ms=options["kafka.request.timeout.ms"],
        max_in_flight=options["kafka.max.in.flight.requests.per.connection"],
    )
