"""Where a read starts and ends: three options for each edge, of which one takes precedence, and both edges together.

This module checks what needs no broker; `planning.resolve` checks the rest. Layer: options.resolve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.offsets import (
    AtTimestamp,
    Earliest,
    Latest,
    OffsetRangeLimit,
    SpecificOffsets,
    SpecificTimestamps,
    timestamp_text,
)
from pyspark_kafka.options.parse.times import looks_like_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.options.parse.times import Moment
    from pyspark_kafka.options.resolve.collector import Collector
    from pyspark_kafka.options.values.read import Subscription


@dataclass(frozen=True, slots=True)
class Edge:
    """The start or the end of a read.

    Attributes:
        option: the option that sets it, for errors.
        limit: its value.
    """

    option: str
    limit: OffsetRangeLimit


def resolve_edge(options: Collector, side: str, default: OffsetRangeLimit, now_ms: int) -> Edge:
    """Return the start (`side` "starting") or the end ("ending"), from the option that takes precedence.

    Source: Spark `KafkaSourceProvider.getKafkaOffsetRangeLimit`.
    """
    names = (f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets")
    used = next((name for name in names if options.attempted(name)), names[-1])
    for name in names[names.index(used) + 1 :]:
        if options.given(name):
            options.notes.append(f"Option '{name}' has no effect: '{used}' is given, which takes precedence.")
    value = options[used]
    if value is None:
        return Edge(used, default)
    if used == names[0]:
        return Edge(used, AtTimestamp(_timestamp(options, used, value, now_ms)))
    if used == names[1]:
        partitions: Mapping[TopicPartition, Moment] = value
        return Edge(
            used,
            SpecificTimestamps(
                {where: _timestamp(options, used, moment, now_ms, where) for where, moment in partitions.items()}
            ),
        )
    return Edge(used, value)


def _timestamp(options: Collector, name: str, moment: Moment, now_ms: int, where: TopicPartition | None = None) -> int:
    place = f" for {where}" if where else ""
    try:
        timestamp_ms = moment.at(now_ms)
    except ValueError as error:
        options.report("OPTION_INVALID", f"Option '{name}' {error}{place}.", option=name)
        return 0
    hint = looks_like_seconds(timestamp_ms)
    if hint is not None and not moment.ago:
        options.notes.append(f"Option '{name}' is {timestamp_ms}{place}: {hint}.")
    return timestamp_ms


def check_names(options: Collector, edge: Edge, subscription: Subscription) -> None:
    """Refuse limits of topics and partitions that are not read, as far as this is known without asking a broker."""
    if not isinstance(edge.limit, (SpecificOffsets, SpecificTimestamps)):
        return
    partitions = set(edge.limit.partitions)
    topics = set(edge.limit.topics) if isinstance(edge.limit, SpecificOffsets) else set[str]()
    if subscription.kind == "subscribe":
        extra, missing = _differences({where.topic for where in partitions} | topics, subscription.topics)
    elif subscription.kind == "assign":
        listed = subscription.topic_partitions
        extra, _ = _differences(partitions, listed)
        more, _ = _differences(topics, {where.topic for where in listed})
        # Listed partitions may not exist, and those must not be named; only brokers know which.
        extra, missing = ", ".join(filter(None, (extra, more))), ""
    else:
        return
    if extra or missing:
        parts = [f"names {extra}, not read here" if extra else "", f"says nothing about {missing}" if missing else ""]
        side = "starting" if edge.option.startswith("starting") else "ending"
        options.report(
            "OPTION_CONFLICT",
            f"Option '{edge.option}' {' and '.join(filter(None, parts))}; it must cover what '{subscription.kind}' "
            "selects.",
            'Use -1 for latest, -2 for earliest, or {"<topic>":"earliest"} for a whole topic.'
            if isinstance(edge.limit, SpecificOffsets)
            else f"Use '{side}Timestamp' for one time for all partitions.",
            edge.option,
        )


def check_batch(options: Collector, starting: Edge, ending: Edge) -> None:
    """Refuse a batch read that can only be empty, and one that ends before it starts."""
    for edge, wrong, word in ((starting, Latest(), "latest"), (ending, Earliest(), "earliest")):
        limit, name = edge.limit, edge.option
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
    if isinstance(starting.limit, SpecificOffsets) and isinstance(ending.limit, SpecificOffsets):
        _compare_names(options, starting, ending, whole_topics=bool(starting.limit.topics or ending.limit.topics))
        for where, start in starting.limit.partitions.items():
            end = ending.limit.partitions.get(where)
            if isinstance(start, int) and isinstance(end, int) and start > end:
                _report_order(
                    options,
                    starting,
                    f"{start} for {where}, greater than its '{ending.option}', {end}",
                    "Both are the next offset to read: an end of 10 reads up to offset 9.",
                )
    if isinstance(starting.limit, SpecificTimestamps) and isinstance(ending.limit, SpecificTimestamps):
        _compare_names(options, starting, ending, whole_topics=False)
    _check_times(options, starting, ending)


def _check_times(options: Collector, starting: Edge, ending: Edge) -> None:
    """Refuse a start that is later than its end: if both are before the first record, no later check detects it."""
    first, last = starting.limit, ending.limit
    if isinstance(first, AtTimestamp) and isinstance(last, AtTimestamp):
        pairs = {"": (first.timestamp_ms, last.timestamp_ms)}
    elif isinstance(first, SpecificTimestamps) and isinstance(last, SpecificTimestamps):
        pairs = {
            f" for {where}": (start, last.partitions.get(where, start)) for where, start in first.partitions.items()
        }
    elif isinstance(first, SpecificTimestamps) and isinstance(last, AtTimestamp):
        pairs = {f" for {where}": (start, last.timestamp_ms) for where, start in first.partitions.items()}
    elif isinstance(first, AtTimestamp) and isinstance(last, SpecificTimestamps):
        pairs = {f" for {where}": (first.timestamp_ms, end) for where, end in last.partitions.items()}
    else:
        return
    for place, (start, end) in pairs.items():
        if start > end:
            _report_order(
                options,
                starting,
                f"{timestamp_text(start)}{place}, later than its '{ending.option}', {timestamp_text(end)}",
                "A read ends before the first record at or after its end.",
            )


def _compare_names(options: Collector, starting: Edge, ending: Edge, *, whole_topics: bool) -> None:
    named, ended = _partitions(starting.limit), _partitions(ending.limit)
    if whole_topics or named.keys() == ended.keys():
        return
    options.report(
        "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET",
        f"Options '{starting.option}' and '{ending.option}' must name the same partitions; "
        f"'{starting.option}' names {_list(named)}, '{ending.option}' names {_list(ended)}.",
        "Use -2 for earliest in the first and -1 for latest in the second if the offset does not matter."
        if isinstance(starting.limit, SpecificOffsets)
        else "",
        starting.option,
    )


def _report_order(options: Collector, starting: Edge, difference: str, hint: str) -> None:
    options.report(
        "UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET",
        f"Option '{starting.option}' is {difference}.",
        hint,
        starting.option,
    )


def _partitions(limit: OffsetRangeLimit) -> Mapping[TopicPartition, object]:
    return limit.partitions if isinstance(limit, (SpecificOffsets, SpecificTimestamps)) else {}


def _differences(named: set[Any], selected: Iterable[Any]) -> tuple[str, str]:
    chosen = set(selected)
    return ", ".join(map(str, sorted(named - chosen))), ", ".join(map(str, sorted(chosen - named)))


def _list(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, partitions)) or "none"
