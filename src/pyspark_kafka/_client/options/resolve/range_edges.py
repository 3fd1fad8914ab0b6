"""The start and end of a read: three options for each edge, of which one takes precedence, and both edges together.

This module checks what needs no broker; `planning.resolve` checks the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.offsets import (
    AtTimestamp,
    Earliest,
    Latest,
    RangeEdge,
    SpecificOffsets,
    SpecificTimestamps,
    timestamp_text,
)
from pyspark_kafka._client.options.parse.times import looks_like_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.options.catalogue.parsed import Parsed, Problems
    from pyspark_kafka._client.options.parse.times import Moment
    from pyspark_kafka._client.options.values.read import Subscription


@dataclass(frozen=True, slots=True)
class EdgeOption:
    """The option that sets the start or the end of a read.

    Attributes:
        name: the option, for errors.
        edge: its value.
    """

    name: str
    edge: RangeEdge


def resolve_edge(options: Parsed, problems: Problems, side: str, default: RangeEdge, now_ms: int) -> EdgeOption:
    """Return the start (`side` "starting") or the end ("ending"), from the option that takes precedence.

    Source: Spark `KafkaSourceProvider.getKafkaOffsetRangeLimit`.
    """
    names = (f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets")
    used = next((name for name in names if options.attempted(name)), names[-1])
    for name in names[names.index(used) + 1 :]:
        if options.given(name):
            problems.notes.append(f"Option '{name}' has no effect: '{used}' is given, which takes precedence.")
    value = options[used]
    if value is None:
        return EdgeOption(used, default)
    if used == names[0]:
        return EdgeOption(used, AtTimestamp(_timestamp(problems, used, value, now_ms)))
    if used == names[1]:
        partitions: Mapping[TopicPartition, Moment] = value
        return EdgeOption(
            used,
            SpecificTimestamps(
                {tp: _timestamp(problems, used, moment, now_ms, tp) for tp, moment in partitions.items()}
            ),
        )
    return EdgeOption(used, value)


def _timestamp(
    problems: Problems, name: str, moment: Moment, now_ms: int, topic_partition: TopicPartition | None = None
) -> int:
    suffix = f" for {topic_partition}" if topic_partition else ""
    try:
        timestamp_ms = moment.at(now_ms)
    except ValueError as error:
        problems.invalid(name, f"{error}{suffix}")
        return 0
    hint = looks_like_seconds(timestamp_ms)
    if hint is not None and not moment.ago:
        problems.notes.append(f"Option '{name}' is {timestamp_ms}{suffix}: {hint}.")
    return timestamp_ms


def check_names(problems: Problems, option: EdgeOption, subscription: Subscription) -> None:
    """Refuse an edge of topics and partitions that are not read, as far as this is known without asking a broker."""
    if not isinstance(option.edge, (SpecificOffsets, SpecificTimestamps)):
        return
    partitions = set(option.edge.partitions)
    topics = set(option.edge.topics) if isinstance(option.edge, SpecificOffsets) else set[str]()
    if subscription.kind == "subscribe":
        extra, missing = _differences({tp.topic for tp in partitions} | topics, subscription.topics)
    elif subscription.kind == "assign":
        listed = subscription.topic_partitions
        extra, _ = _differences(partitions, listed)
        more, _ = _differences(topics, {tp.topic for tp in listed})
        # Listed partitions may not exist, and those must not be named; only brokers know which.
        extra, missing = ", ".join(filter(None, (extra, more))), ""
    else:
        return
    if extra or missing:
        parts = [f"names {extra}, not read here" if extra else "", f"leaves out {missing}" if missing else ""]
        side = "starting" if option.name.startswith("starting") else "ending"
        problems.conflict(
            option.name,
            f"{' and '.join(filter(None, parts))}; it must cover what '{subscription.kind}' selects",
            'Use -1 for latest, -2 for earliest, or {"<topic>":"earliest"} for a whole topic.'
            if isinstance(option.edge, SpecificOffsets)
            else f"Use '{side}Timestamp' for one time for all partitions.",
        )


def check_batch(problems: Problems, starting: EdgeOption, ending: EdgeOption) -> None:
    """Refuse a batch read that can only be empty, and one that ends before it starts."""
    for option, wrong, word in ((starting, Latest(), "latest"), (ending, Earliest(), "earliest")):
        edge, name = option.edge, option.name
        if edge == wrong:
            problems.invalid(name, f"cannot be {word} in a batch read")
        elif isinstance(edge, SpecificOffsets):
            named = [str(name) for name, value in (*edge.topics.items(), *edge.partitions.items()) if value == wrong]
            if named:
                problems.invalid(name, f"cannot be {word} for {', '.join(named)} in a batch read")
    if isinstance(starting.edge, SpecificOffsets) and isinstance(ending.edge, SpecificOffsets):
        _compare_names(problems, starting, ending, whole_topics=bool(starting.edge.topics or ending.edge.topics))
        for topic_partition, start in starting.edge.partitions.items():
            end = ending.edge.partitions.get(topic_partition)
            if isinstance(start, int) and isinstance(end, int) and start > end:
                _report_order(
                    problems,
                    starting,
                    f"{start} for {topic_partition}, greater than its '{ending.name}', {end}",
                    "Both are the next offset to read: an end of 10 reads up to offset 9.",
                )
    if isinstance(starting.edge, SpecificTimestamps) and isinstance(ending.edge, SpecificTimestamps):
        _compare_names(problems, starting, ending, whole_topics=False)
    _check_times(problems, starting, ending)


def _check_times(problems: Problems, starting: EdgeOption, ending: EdgeOption) -> None:
    """Refuse a start that is later than its end: if both are before the first record, no later check detects it."""
    first, last = starting.edge, ending.edge
    if isinstance(first, AtTimestamp) and isinstance(last, AtTimestamp):
        pairs = {"": (first.timestamp_ms, last.timestamp_ms)}
    elif isinstance(first, SpecificTimestamps) and isinstance(last, SpecificTimestamps):
        pairs = {f" for {tp}": (start, last.partitions.get(tp, start)) for tp, start in first.partitions.items()}
    elif isinstance(first, SpecificTimestamps) and isinstance(last, AtTimestamp):
        pairs = {f" for {tp}": (start, last.timestamp_ms) for tp, start in first.partitions.items()}
    elif isinstance(first, AtTimestamp) and isinstance(last, SpecificTimestamps):
        pairs = {f" for {tp}": (first.timestamp_ms, end) for tp, end in last.partitions.items()}
    else:
        return
    for suffix, (start, end) in pairs.items():
        if start > end:
            _report_order(
                problems,
                starting,
                f"{timestamp_text(start)}{suffix}, later than its '{ending.name}', {timestamp_text(end)}",
                "A read ends before the first record at or after its end.",
            )


def _compare_names(problems: Problems, starting: EdgeOption, ending: EdgeOption, *, whole_topics: bool) -> None:
    named, ended = _partitions(starting.edge), _partitions(ending.edge)
    if whole_topics or named.keys() == ended.keys():
        return
    problems.report(
        "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET",
        f"Options '{starting.name}' and '{ending.name}' must name the same partitions; "
        f"'{starting.name}' names {_list(named)}, '{ending.name}' names {_list(ended)}.",
        "Use -2 for earliest in the first and -1 for latest in the second if the offset does not matter."
        if isinstance(starting.edge, SpecificOffsets)
        else "",
        starting.name,
    )


def _report_order(problems: Problems, starting: EdgeOption, difference: str, hint: str) -> None:
    problems.report(
        "UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET",
        f"Option '{starting.name}' is {difference}.",
        hint,
        starting.name,
    )


def _partitions(edge: RangeEdge) -> Mapping[TopicPartition, object]:
    return edge.partitions if isinstance(edge, (SpecificOffsets, SpecificTimestamps)) else {}


def _differences(named: set[Any], selected: Iterable[Any]) -> tuple[str, str]:
    chosen = set(selected)
    return ", ".join(map(str, sorted(named - chosen))), ", ".join(map(str, sorted(chosen - named)))


def _list(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, partitions)) or "none"
