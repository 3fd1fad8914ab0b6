"""The combined meaning of a read's options."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.offsets import Earliest, Latest
from pyspark_kafka._client.options.catalogue import OPTIONS
from pyspark_kafka._client.options.catalogue.option import READS, Scope
from pyspark_kafka._client.options.catalogue.parsed import parse_all
from pyspark_kafka._client.options.resolve.connection import resolve_connection
from pyspark_kafka._client.options.resolve.formats import resolve_typed_read
from pyspark_kafka._client.options.resolve.range_edges import EdgeOption, check_batch, check_names, resolve_edge
from pyspark_kafka._client.options.resolve.traces import resolve_traces
from pyspark_kafka._client.options.values.read import (
    BatchReadOptions,
    FetchOptions,
    StreamReadOptions,
    Subscription,
)
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._client.options.catalogue.parsed import Parsed, Problems
    from pyspark_kafka._client.options.values.read import SubscriptionKind

_SUBSCRIPTIONS: tuple[SubscriptionKind, ...] = ("subscribe", "assign", "subscribePattern")


def parse_batch_read_options(raw: Mapping[str, Any], *, now_ms: int | None = None) -> BatchReadOptions:
    """Resolve the options of `spark.read`.

    Runs on: driver; pure except for the clock.

    Args:
        raw: options as Spark passes them, in any case of letters.
        now_ms: what relative times refer to, milliseconds since 1970-01-01 UTC; None reads the clock.

    Raises:
        OptionError: with all problems at once.
    """
    return _batch_read(*parse_all(raw, Scope.BATCH_READ), _now_ms() if now_ms is None else now_ms)


def parse_stream_read_options(raw: Mapping[str, Any], *, now_ms: int | None = None) -> StreamReadOptions:
    """Resolve the options of `spark.readStream`. See `parse_batch_read_options`."""
    return _stream_read(*parse_all(raw, Scope.STREAM_READ), _now_ms() if now_ms is None else now_ms)


def parse_read_options(raw: Mapping[str, Any], *, now_ms: int | None = None) -> BatchReadOptions | StreamReadOptions:
    """Resolve the options of a read before it is known whether it is a stream: at `load()`.

    Args:
        raw: as in `parse_batch_read_options`.
        now_ms: as in `parse_batch_read_options`.

    Raises:
        OptionError: the options are invalid for both kinds of read. The problems are of a batch read if an option
            is given that only a batch read has, otherwise of a stream.
    """
    now = _now_ms() if now_ms is None else now_ms
    try:
        return _stream_read(*parse_all(raw, Scope.STREAM_READ, among=READS), now)
    except OptionError as for_stream:
        try:
            return _batch_read(*parse_all(raw, Scope.BATCH_READ, among=READS), now)
        except OptionError as for_batch:
            raise (for_batch if any(map(_is_of_batch_only, raw)) else for_stream) from None


def _is_of_batch_only(name: str) -> bool:
    option = OPTIONS.get(name.strip())
    # A misspelled `endingOffset` shows it as well.
    return name.strip().lower().startswith("ending") if option is None else option.scopes == {Scope.BATCH_READ}


def _batch_read(options: Parsed, problems: Problems, now: int) -> BatchReadOptions:
    starting = resolve_edge(options, problems, "starting", Earliest(), now)
    ending = resolve_edge(options, problems, "ending", Latest(), now)
    check_batch(problems, starting, ending)
    parts = _resolve_parts(options, problems, (starting, ending))
    problems.raise_all()
    return BatchReadOptions(
        starting=starting.edge,
        ending=ending.edge,
        notes=tuple(problems.notes),
        **parts,
        **options.fields("read", "batch_read"),
    )


def _stream_read(options: Parsed, problems: Problems, now: int) -> StreamReadOptions:
    starting = resolve_edge(options, problems, "starting", Latest(), now)
    parts = _resolve_parts(options, problems, (starting,))
    minimum, maximum = options["minOffsetsPerTrigger"], options["maxOffsetsPerTrigger"]
    if minimum is not None and maximum is not None and minimum > maximum:
        problems.conflict(
            "minOffsetsPerTrigger",
            f"is {minimum}, more than the {maximum} of 'maxOffsetsPerTrigger'",
            "Lower the first or raise the second.",
        )
    if options.given("sourceIndex") and not options.attempted("checkpointLocation"):
        problems.notes.append("Option 'sourceIndex' has no effect: 'checkpointLocation' is not given.")
    if options.given("maxTriggerDelay") and not options.attempted("minOffsetsPerTrigger"):
        problems.notes.append("Option 'maxTriggerDelay' has no effect: 'minOffsetsPerTrigger' is not given.")
    problems.raise_all()
    return StreamReadOptions(
        starting=starting.edge,
        notes=tuple(problems.notes),
        **parts,
        **options.fields("read", "stream_read"),
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _resolve_parts(options: Parsed, problems: Problems, edges: tuple[EdgeOption, ...]) -> dict[str, Any]:
    """Return the parts of a read that are values of their own."""
    subscription = _resolve_subscription(options, problems)
    if subscription is not None:
        for edge in edges:
            check_names(problems, edge, subscription)
    if options.given("kafka.group.id") and options.given("groupIdPrefix"):
        problems.notes.append("Option 'groupIdPrefix' has no effect: 'kafka.group.id' is given.")
    if options["minPartitions"] is not None and options["maxPartitionsPerTask"] > 1:
        problems.report(
            "OPTION_CONFLICT",
            f"Option 'minPartitions' is {options['minPartitions']} and asks for more tasks than topic-partitions, "
            f"'maxPartitionsPerTask' is {options['maxPartitionsPerTask']} and asks for fewer.",
            "Set one of the two.",
            "maxPartitionsPerTask",
        )
    fetch, most = options.fields("fetch"), options["maxBufferedBytesPerTask"]
    if options["kafka.fetch.max.bytes"] > most:
        # The default is lowered; a value that the user has set is not.
        fetch["max_bytes_per_fetch"] = most
        if options.given("kafka.fetch.max.bytes"):
            problems.conflict(
                "kafka.fetch.max.bytes",
                f"is {options['kafka.fetch.max.bytes']}, more than the "
                f"{most} bytes that a task may hold by 'maxBufferedBytesPerTask'",
                "Lower the first or raise the second.",
            )
    return {
        "connection": resolve_connection(options, problems),
        # Without one there is a problem, and the value is never used.
        "subscription": subscription or Subscription("subscribe"),
        "fetch": FetchOptions(**fetch),
        "typed": resolve_typed_read(options, problems, subscription),
        "trace": resolve_traces(options, problems),
    }


def _resolve_subscription(options: Parsed, problems: Problems) -> Subscription | None:
    for kind in _SUBSCRIPTIONS:
        if options.given(kind):
            return Subscription(kind, **options.fields("subscription"))
    if not any(map(options.attempted, _SUBSCRIPTIONS)):
        problems.report(
            "OPTION_MISSING",
            "One of the options 'subscribe', 'subscribePattern', 'assign' must be set: it says what to read.",
            'Set one: .option("subscribe", "my-topic").',
            "subscribe",
        )
    return None
