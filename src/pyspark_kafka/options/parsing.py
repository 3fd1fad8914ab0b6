"""Raw options to resolved ones: what the options of a query mean together.

All problems are found before any is reported, in one `OptionError`. Layer: options, its entry point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka.offsets import Earliest, Latest, OffsetRangeLimit, SpecificOffsets
from pyspark_kafka.options.collecting import Collector
from pyspark_kafka.options.connection import ConnectionOptions, FetchOptions, ProducerOptions
from pyspark_kafka.options.resolved import BatchReadOptions, StreamReadOptions, Subscription, WriteOptions
from pyspark_kafka.options.security import resolve_security
from pyspark_kafka.options.table import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka.model import TopicPartition

_SERVERS = "kafka.bootstrap.servers"


def parse_batch_read_options(raw: Mapping[str, Any]) -> BatchReadOptions:
    """Resolve the options of `spark.read`.

    Runs on: driver; pure.

    Args:
        raw: options as Spark hands them over, in any case of letters.

    Raises:
        OptionError: with all problems at once.
    """
    options = Collector(raw, Scope.BATCH_READ)
    starting: OffsetRangeLimit = options["startingOffsets"] or Earliest()
    ending: OffsetRangeLimit = options["endingOffsets"] or Latest()
    _check_limits(options, starting, ending)
    parts = _resolve_read(options, {"startingOffsets": starting, "endingOffsets": ending})
    options.raise_problems()
    return BatchReadOptions(
        starting=starting,
        ending=ending,
        group_id_prefix=options["groupIdPrefix"] or "spark-kafka-relation",
        notes=tuple(options.notes),
        **parts,
    )


def parse_stream_read_options(raw: Mapping[str, Any]) -> StreamReadOptions:
    """Resolve the options of `spark.readStream`. See `parse_batch_read_options`."""
    options = Collector(raw, Scope.STREAM_READ)
    starting: OffsetRangeLimit = options["startingOffsets"] or Latest()
    parts = _resolve_read(options, {"startingOffsets": starting})
    options.raise_problems()
    return StreamReadOptions(
        starting=starting,
        max_offsets_per_trigger=options["maxOffsetsPerTrigger"],
        group_id_prefix=options["groupIdPrefix"] or "spark-kafka-source",
        notes=tuple(options.notes),
        **parts,
    )


def parse_write_options(raw: Mapping[str, Any], *, streaming: bool) -> WriteOptions:
    """Resolve the options of `df.write` or `df.writeStream`. See `parse_batch_read_options`."""
    options = Collector(raw, Scope.STREAM_WRITE if streaming else Scope.BATCH_WRITE)
    connection = _resolve_connection(options)
    producer = _resolve_producer(options)
    options.raise_problems()
    return WriteOptions(
        connection=connection,
        topic=options["topic"],
        producer=producer,
        max_block_ms=options["kafka.max.block.ms"],
        buffer_bytes=options["kafka.buffer.memory"],
        notes=tuple(options.notes),
    )


def _resolve_connection(options: Collector) -> ConnectionOptions:
    if not options.attempted(_SERVERS):
        options.report(
            "OPTION_MISSING",
            f"Option '{_SERVERS}' must be set: it says where the Kafka brokers are.",
            f'.option("{_SERVERS}", "host1:9092,host2:9092")',
            _SERVERS,
        )
    security = resolve_security(options)
    return ConnectionOptions(
        bootstrap_servers=options[_SERVERS] or (),
        client_id=options["kafka.client.id"],
        client_rack=options["kafka.client.rack"],
        request_timeout_ms=options["kafka.request.timeout.ms"],
        connect_timeout_ms=options["kafka.socket.connection.setup.timeout.ms"],
        api_timeout_ms=options["kafka.default.api.timeout.ms"],
        retry_backoff_ms=options["kafka.retry.backoff.ms"],
        # As in Java: a pause that is set above the usual maximum is kept.
        retry_backoff_max_ms=max(options["kafka.retry.backoff.max.ms"], options["kafka.retry.backoff.ms"]),
        metadata_max_age_ms=options["kafka.metadata.max.age.ms"],
        receive_buffer_bytes=options["kafka.receive.buffer.bytes"],
        send_buffer_bytes=options["kafka.send.buffer.bytes"],
        **security,
    )


def _resolve_read(options: Collector, limits: Mapping[str, OffsetRangeLimit]) -> dict[str, Any]:
    """Give the fields that both kinds of read have."""
    subscription = _resolve_subscription(options)
    if subscription is not None:
        for name, limit in limits.items():
            _check_names(options, name, limit, subscription)
    if options.given("kafka.group.id") and options.given("groupIdPrefix"):
        options.notes.append("Option 'groupIdPrefix' has no effect: 'kafka.group.id' is given.")
    if options["kafka.fetch.max.bytes"] > options["maxBufferedBytesPerTask"]:
        options.report(
            "OPTION_CONFLICT",
            f"Option 'kafka.fetch.max.bytes' is {options['kafka.fetch.max.bytes']}, more than the "
            f"{options['maxBufferedBytesPerTask']} bytes that a task may hold by 'maxBufferedBytesPerTask'.",
            "Lower the first or raise the second.",
            "kafka.fetch.max.bytes",
        )
    return {
        "connection": _resolve_connection(options),
        # Without one the caller reports a problem and never uses the value.
        "subscription": subscription or Subscription("subscribe"),
        "fail_on_data_loss": options["failOnDataLoss"],
        "include_headers": options["includeHeaders"],
        "fetch": FetchOptions(
            max_bytes_per_fetch=options["kafka.fetch.max.bytes"],
            max_partition_fetch_bytes=options["kafka.max.partition.fetch.bytes"],
            min_bytes=options["kafka.fetch.min.bytes"],
            max_wait_ms=options["kafka.fetch.max.wait.ms"],
            isolation_level=options["kafka.isolation.level"],
            check_crcs=options["kafka.check.crcs"],
            max_decompressed_bytes=options["maxDecompressedBatchBytes"],
            buffer_bytes=options["maxBufferedBytesPerTask"],
            poll_timeout_ms=options["kafkaConsumer.pollTimeoutMs"],
        ),
        "fetch_offset_attempts": options["fetchOffset.numRetries"],
        "fetch_offset_retry_interval_ms": options["fetchOffset.retryIntervalMs"],
        "group_id": options["kafka.group.id"],
    }


def _resolve_subscription(options: Collector) -> Subscription | None:
    if options.given("subscribe"):
        return Subscription("subscribe", topics=options["subscribe"])
    if options.given("assign"):
        return Subscription("assign", topic_partitions=options["assign"])
    if options.given("subscribePattern"):
        return Subscription("subscribePattern", pattern=options["subscribePattern"])
    if not any(map(options.attempted, ("subscribe", "assign", "subscribePattern"))):
        options.report(
            "OPTION_MISSING",
            "One of the options 'subscribe', 'subscribePattern', 'assign' must be set: it says what to read.",
            '.option("subscribe", "my-topic")',
            "subscribe",
        )
    return None


def _check_names(options: Collector, name: str, limit: OffsetRangeLimit, subscription: Subscription) -> None:
    """Refuse offsets of what is not read, as far as it can be known without asking a broker."""
    if not isinstance(limit, SpecificOffsets):
        return
    if subscription.kind == "subscribe":
        named = {topic_partition.topic for topic_partition in limit.partitions} | set(limit.topics)
        extra, missing = _differences(named, subscription.topics)
    elif subscription.kind == "assign":
        partitions = set(limit.partitions) | {
            topic_partition
            for topic_partition in subscription.topic_partitions
            if topic_partition.topic in limit.topics
        }
        extra, missing = _differences(partitions, subscription.topic_partitions)
    else:
        return
    if extra or missing:
        parts = [f"names {extra}, not read here" if extra else "", f"says nothing about {missing}" if missing else ""]
        options.report(
            "OPTION_CONFLICT",
            f"Option '{name}' {' and '.join(filter(None, parts))}; it must cover what '{subscription.kind}' selects.",
            'Use -1 for latest, -2 for earliest, or {"<topic>":"earliest"} for a whole topic.',
            name,
        )


def _differences(named: set[Any], selected: Iterable[Any]) -> tuple[str, str]:
    chosen = set(selected)
    return ", ".join(map(str, sorted(named - chosen))), ", ".join(map(str, sorted(chosen - named)))


def _check_limits(options: Collector, starting: OffsetRangeLimit, ending: OffsetRangeLimit) -> None:
    """The rules of batch reads: nothing to read by construction is a mistake, as is an end before the start."""
    for name, limit, wrong, word in (
        ("startingOffsets", starting, Latest(), "latest"),
        ("endingOffsets", ending, Earliest(), "earliest"),
    ):
        if limit == wrong:
            options.report("OPTION_INVALID", f"Option '{name}' cannot be {word} in a batch read.", option=name)
        elif isinstance(limit, SpecificOffsets):
            places = [
                str(place) for place, value in (*limit.topics.items(), *limit.partitions.items()) if value == wrong
            ]
            if places:
                options.report(
                    "OPTION_INVALID",
                    f"Option '{name}' cannot be {word} for {', '.join(places)} in a batch read.",
                    option=name,
                )
    if isinstance(starting, SpecificOffsets) and isinstance(ending, SpecificOffsets):
        _compare(options, starting, ending)


def _compare(options: Collector, starting: SpecificOffsets, ending: SpecificOffsets) -> None:
    if not starting.topics and not ending.topics and starting.partitions.keys() != ending.partitions.keys():
        options.report(
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET",
            "Options 'startingOffsets' and 'endingOffsets' must name the same partitions; "
            f"'startingOffsets' names {_list(starting.partitions)}, 'endingOffsets' names {_list(ending.partitions)}.",
            "Use -2 for earliest in the first and -1 for latest in the second where you do not mind.",
            "startingOffsets",
        )
    for topic_partition, start in starting.partitions.items():
        end = ending.partitions.get(topic_partition)
        if isinstance(start, int) and isinstance(end, int) and start > end:
            options.report(
                "UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET",
                f"Option 'startingOffsets' is {start} for {topic_partition}, greater than its 'endingOffsets', {end}.",
                "Both are positions of records to come: an end of 10 reads up to offset 9.",
                "startingOffsets",
            )


def _list(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, partitions)) or "none"


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
