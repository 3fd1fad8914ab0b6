"""Topics: whether they are there, partitions, leaders, replicas, and what there is to read."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.offsets import Earliest, Latest
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka._ops.operations.text import counted
from pyspark_kafka.errors import ConnectorError, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata, TopicMetadata
    from pyspark_kafka._ops.diagnosis.context import Context
    from pyspark_kafka._ops.operations.settings import Settings

# How many topics are looked at one by one; a pattern may match thousands.
_MAX_TOPICS = 20
_UNDECIDED = "subscribe, subscribePattern or assign to read, topic to write"


def judge_topics(context: Context) -> Iterator[Finding]:
    """Describe each topic of the options, and look up the ends of its partitions."""
    settings = context.settings
    wanted = wanted_topics(settings)
    pattern = _pattern(settings)
    if not wanted and pattern is None:
        yield _none_named(context)
        return
    asked = None if pattern is not None else wanted
    found = context.client.fetch_metadata(asked, context.step())
    context.metadata = found
    if pattern is not None:
        matching = sorted(name for name in found.topics if re.search(pattern, name))
        if not matching:
            yield _nothing_matches(pattern, len(found.topics))
        wanted = [*wanted, *(name for name in matching if name not in wanted)]
    for name in wanted[:_MAX_TOPICS]:
        topic = found.topics.get(name)
        if topic is None or topic.error is not None:
            yield _missing(context, name, topic)
        else:
            yield _describe(context, topic)
    if len(wanted) > _MAX_TOPICS:
        text = f"{len(wanted) - _MAX_TOPICS} more topics were not looked at."
        yield Finding("topics", FindingStatus.OK, text, facts={"topics": wanted[_MAX_TOPICS:]})


def wanted_topics(settings: Settings) -> list[str]:
    """Return the topics that the options name: read first, then written, then the others."""
    names: list[str] = []
    if settings.read is not None:
        subscription = settings.read.subscription
        names += [*subscription.topics, *(tp.topic for tp in subscription.topic_partitions)]
    if settings.write is not None and settings.write.topic is not None:
        names.append(settings.write.topic)
    return list(dict.fromkeys([*names, *settings.topics]))


def read_topics(context: Context) -> list[str]:
    """Return the topics that exist and are to be read, or only to be looked at."""
    settings = context.settings
    written = settings.write.topic if settings.write is not None else None
    named = [name for name in wanted_topics(settings) if name != written or name in settings.topics]
    pattern = _pattern(settings)
    known = {} if context.metadata is None else context.metadata.topics
    if pattern is not None:
        named += [name for name in sorted(known) if re.search(pattern, name) and name not in named]
    if settings.read is not None and written in settings.read.subscription.topics:
        named.append(str(written))
    return [name for name in dict.fromkeys(named) if name in known and known[name].error is None]


def _pattern(settings: Settings) -> str | None:
    return settings.read.subscription.pattern if settings.read is not None else None


def _none_named(context: Context) -> Finding:
    seen = context.client.fetch_metadata(None, context.step())
    names = sorted(name for name, topic in seen.topics.items() if not topic.is_internal)
    shown = f": {listed(names)}" if names else ""
    text = f"No topic is named ({_UNDECIDED}); this user sees {counted(len(names), 'topic')}{shown}."
    return Finding("topics", FindingStatus.OK, text, facts={"topics": names})


def _nothing_matches(pattern: str, seen: int) -> Finding:
    return Finding(
        "topics",
        FindingStatus.FAILED,
        f"No topic of the {seen} that this user sees matches the pattern '{pattern}'.",
        "Correct subscribePattern (Python's syntax, found anywhere in a name), or grant DESCRIBE on the topics.",
        {"option": "subscribePattern", "pattern": pattern},
    )


def _missing(context: Context, name: str, topic: TopicMetadata | None) -> Finding:
    error = None if topic is None else topic.error
    facts: dict[str, Any] = {"topic": name, "exists": False}
    if error is not None and error.condition == "TOPIC_AUTHORIZATION_FAILED":
        return Finding(
            "topics",
            FindingStatus.FAILED,
            f"Topic '{name}' may not be described by this user, or does not exist.",
            "Grant DESCRIBE on it (READ and WRITE imply it); the line of step 'rights' does so.",
            facts,
        )
    if error is not None and error.condition != "UNKNOWN_TOPIC":
        return Finding("topics", FindingStatus.FAILED, error.message, error.hint, facts)
    try:
        seen = sorted(context.client.fetch_metadata(None, context.step()).topics)
    except ConnectorError:
        seen = []
    nearest = difflib.get_close_matches(name, seen, n=1, cutoff=0.7)
    meant = f"Did you mean '{nearest[0]}'? Otherwise create" if nearest else "Create"
    option = "topic" if context.settings.write is not None and context.settings.write.topic == name else "subscribe"
    return Finding(
        "topics",
        FindingStatus.FAILED,
        f"Topic '{name}' does not exist, or is hidden from this user, who sees {counted(len(seen), 'topic')}.",
        f"{meant} it (kafka-topics.sh --create --topic {name}), correct option '{option}', or grant DESCRIBE on it.",
        {**facts, "option": option, "nearest": nearest[0] if nearest else None},
    )


def _describe(context: Context, topic: TopicMetadata) -> Finding:
    offline = [each for each in topic.partitions if not each.has_leader]
    behind = [each for each in topic.partitions if each.has_leader and len(each.in_sync_ids) < len(each.replica_ids)]
    facts: dict[str, Any] = {
        "topic": topic.name,
        "exists": True,
        "topic_id": None if topic.topic_id is None else str(topic.topic_id),
        "partitions": len(topic.partitions),
        "replicas": max((len(each.replica_ids) for each in topic.partitions), default=0),
        "offline": [each.topic_partition.partition for each in offline],
        "under_replicated": [each.topic_partition.partition for each in behind],
    }
    text = f"{topic.name}: {counted(len(topic.partitions), 'partition')}, replication {facts['replicas']}"
    if offline:
        remedy = "Start the brokers that have these partitions; a query waits for their leaders, then fails."
        lost = listed([str(each.topic_partition.partition) for each in offline])
        return Finding("topics", FindingStatus.FAILED, f"{text}; without a leader: {lost}.", remedy, facts)
    try:
        text += f"; {_look_up(context, topic, facts)}"
    except ConnectorError as error:
        return Finding("topics", FindingStatus.FAILED, f"{text}; offsets unknown: {error.message}", error.hint, facts)
    led = _leaders(topic.partitions)
    if behind:
        late = listed([str(each.topic_partition.partition) for each in behind])
        remedy = "Bring the missing replicas back: a broker that fails now may take records with it."
        return Finding("topics", FindingStatus.WARNING, f"{text}; {led}; under-replicated: {late}.", remedy, facts)
    return Finding("topics", FindingStatus.OK, f"{text}; {led}.", facts=facts)


def _look_up(context: Context, topic: TopicMetadata, facts: dict[str, Any]) -> str:
    places: list[TopicPartition] = [each.topic_partition for each in topic.partitions]
    step = context.step()
    first = list_offsets(context.client, dict.fromkeys(places, Earliest()), deadline=step)
    last = list_offsets(context.client, dict.fromkeys(places, Latest()), deadline=step)
    context.ends |= {place: (first[place], last[place]) for place in places}
    facts["offsets"] = {str(place.partition): [first[place], last[place]] for place in places}
    held = sum(last[place] - first[place] for place in places)
    if len(places) == 1:
        return f"offsets {first[places[0]]} to {last[places[0]]}"
    empty = sum(first[place] == last[place] for place in places)
    return f"{held} offsets" + (f", {empty} partitions empty" if empty else "")


def _leaders(partitions: tuple[PartitionMetadata, ...]) -> str:
    leaders = sorted({each.leader_id for each in partitions})
    return f"leader{'' if len(leaders) == 1 else 's'} {listed([str(each) for each in leaders])}"
