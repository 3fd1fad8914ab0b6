"""The combined meaning of a write's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark_kafka._client.options.catalogue.option import Scope
from pyspark_kafka._client.options.catalogue.parsed import Parsed, Problems, parse_all
from pyspark_kafka._client.options.resolve.connection import resolve_connection
from pyspark_kafka._client.options.resolve.formats import resolve_typed_write
from pyspark_kafka._client.options.resolve.traces import resolve_traces
from pyspark_kafka._client.options.values.write import ExactlyOnceOptions, ProducerOptions, WriteOptions

_MIN_BUFFER = 1 << 20
# The limit of brokers (transaction.max.timeout.ms). The next planning aborts what dead tasks have left open, and what a
# dead driver has decided is lost after this time: longer is better.
_TASK_TIMEOUT_MS = 900_000


def parse_write_options(raw: Mapping[str, Any], *, streaming: bool) -> WriteOptions:
    """Resolve the options of `df.write` or `df.writeStream`.

    Runs on: driver.

    Args:
        raw: options as Spark passes them, in any case of letters.
        streaming: whether it is `df.writeStream`.

    Raises:
        OptionError: with all problems at once.
    """
    options, problems = parse_all(raw, Scope.STREAM_WRITE if streaming else Scope.BATCH_WRITE)
    connection = resolve_connection(options, problems)
    producer = _resolve_producer(options, problems)
    exactly_once = _resolve_exactly_once(options, problems, streaming=streaming)
    typed = resolve_typed_write(options, problems)
    trace = resolve_traces(options, problems)
    problems.raise_all()
    fields = options.fields("write")
    patience_ms = producer.delivery_timeout_ms
    if streaming and not options.given("kafka.delivery.timeout.ms"):
        patience_ms = max(patience_ms, fields["outage_timeout_ms"])
    resolved = WriteOptions(
        connection=connection,
        producer=producer,
        exactly_once=exactly_once,
        patient_delivery_timeout_ms=patience_ms,
        typed=typed,
        trace=trace,
        **fields,
    )
    resolved = _with_room_for_batches(problems, resolved)
    return replace(resolved, notes=tuple(problems.notes))


def _with_room_for_batches(problems: Problems, resolved: WriteOptions) -> WriteOptions:
    given = resolved.max_unacknowledged_bytes
    if given >= _MIN_BUFFER:
        return resolved
    problems.notes.append(f"Option 'kafka.buffer.memory' is {given} bytes: {_MIN_BUFFER} are used, which batches need.")
    return replace(resolved, max_unacknowledged_bytes=_MIN_BUFFER)


def _resolve_exactly_once(options: Parsed, problems: Problems, *, streaming: bool) -> ExactlyOnceOptions | None:
    if options["deliveryGuarantee"] != "exactly_once":
        alone = ("kafka.transactional.id", "kafka.transaction.timeout.ms", "commitTopic")
        others = (
            "exactlyOnceCommit",
            "spoolLocation",
            "spoolThresholdBytes",
            "offsetsGroupId",
            "maxTransactionMarkersPerSecond",
        )
        for name in (*alone, *others):
            if options.given(name):
                problems.notes.append(f"Option '{name}' has no effect: 'deliveryGuarantee' is not 'exactly_once'.")
        return None
    if streaming and not options.attempted("checkpointLocation"):
        problems.missing(
            "checkpointLocation",
            "of the writer must be set with 'deliveryGuarantee' exactly_once: the sink "
            "identifies query and batches by it. A setting (spark.sql.streaming.checkpointLocation) does not reach it",
            'Set it on writeStream: .option("checkpointLocation", "/checkpoints/my-query").',
        )
    for name, needed in (("kafka.acks", -1), ("kafka.enable.idempotence", True)):
        if options.given(name) and options[name] != needed:
            problems.conflict(
                name,
                f"is {str(options[name]).lower()}, but exactly_once needs {'all' if needed == -1 else 'true'}",
                f"Remove '{name}'.",
            )
    resolved = ExactlyOnceOptions(**options.fields("exactly_once"))
    if resolved.commit == "tasks" and not options.given("kafka.transaction.timeout.ms"):
        resolved = replace(resolved, task_timeout_ms=_TASK_TIMEOUT_MS)
    checkpoint = resolved.checkpoint_location
    if resolved.spool_location is None and checkpoint is not None:
        resolved = replace(resolved, spool_location=f"{checkpoint.rstrip('/')}/spool")
    return resolved


def _resolve_producer(options: Parsed, problems: Problems) -> ProducerOptions:
    acks, idempotence = options["kafka.acks"], options["kafka.enable.idempotence"]
    if acks != -1 and idempotence:
        problems.conflict(
            "kafka.acks",
            f"is {acks}, but idempotence needs all",
            "Remove 'kafka.acks', or set 'kafka.enable.idempotence' to false and accept loss and duplicates.",
        )
    if (
        options.given("kafka.delivery.timeout.ms")
        and options["kafka.delivery.timeout.ms"] < options["kafka.request.timeout.ms"]
    ):
        problems.conflict(
            "kafka.delivery.timeout.ms",
            f"is {options['kafka.delivery.timeout.ms']}, less than the "
            f"{options['kafka.request.timeout.ms']} of 'kafka.request.timeout.ms': no request could be retried",
            "Raise the first or lower the second.",
        )
    compression = options["kafka.compression.type"]
    level = None
    for codec in ("gzip", "lz4", "zstd"):
        name = f"kafka.compression.{codec}.level"
        if codec == compression:
            level = options[name]
        elif options.given(name):
            problems.notes.append(f"Option '{name}' has no effect: 'kafka.compression.type' is '{compression}'.")
    if compression == "gzip" and level == 0:
        problems.invalid("kafka.compression.gzip.level", "must be from 1 to 9, or -1 for the codec's default; got '0'")
    return ProducerOptions(
        compression_level=None if compression == "gzip" and level == -1 else level, **options.fields("producer")
    )
