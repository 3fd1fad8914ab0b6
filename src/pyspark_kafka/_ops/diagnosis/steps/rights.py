"""Rights: which of the queries' needed rights this user has, checked without changing anything."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.net.connection import address_of
from pyspark_kafka._client.client.queries.rights import (
    Operation,
    may_read_group,
    may_write_transactions,
    probe_cluster_rights,
    probe_topic_rights,
)
from pyspark_kafka._client.client.wire.messages import DescribeClusterRequest
from pyspark_kafka._client.client.wire.missing_rights import UNKNOWN_SERVERS, Right, acls_command, principal_of
from pyspark_kafka._client.options import ExactlyOnceOptions
from pyspark_kafka._connector.sink.transactional_ids import DEFAULT_PREFIX, default_id, lane_id
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka._ops.diagnosis.steps.topics import read_topics, wanted_topics
from pyspark_kafka.errors import ConnectorError, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._ops.diagnosis.context import Context

_ANY_QUERY = "check"
# Those on one resource.
Rights = tuple[Right, ...]


@dataclass(slots=True)
class Feature:
    """A kind of query, and what it lacks.

    Attributes:
        name: "read", "write", "exactly once" or "continuous".
        needed: whether the options need it.
        missing: missing rights, by resource.
        unknown: what cannot be known without trying.
        about: what it was checked for.
        can_fail: whether a query runs without it, with warnings.
    """

    name: str
    needed: bool
    missing: list[Rights] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    about: str = ""
    can_fail: bool = False


def judge_rights(context: Context) -> Iterator[Finding]:
    """Check what each kind of query needs; a right that these options do not need is only told."""
    features = [_reading(context), *_group_offsets(context), _writing(context), *_transactions(context)]
    for each in features:
        if each.needed:
            yield _finding(context, each)
    others = [each for each in features if not each.needed and each.about]
    if others:
        yield Finding(
            "rights",
            FindingStatus.OK,
            f"Not needed by these options: {'; '.join(map(_summary, others))}.",
            facts={"features": {each.name: _facts(each) for each in others}},
        )


def _reading(context: Context) -> Feature:
    settings = context.settings
    needed = settings.read is not None
    # Also hidden topics: a topic is hidden if the right is missing.
    named = [name for name in wanted_topics(settings) if needed or name in settings.topics]
    names = list(
        dict.fromkeys([*read_topics(context), *(name for name in named if name not in _only_written(context))])
    )
    feature = Feature("read", needed=needed, about=listed(names))
    _judge_topics(context, feature, names, Operation.READ)
    return feature


def _group_offsets(context: Context) -> Iterator[Feature]:
    """Check `commitOffsetsToGroup`, of streams; without the option there is no line about it."""
    group = getattr(context.settings.read, "committed_group", None)
    if group is not None:
        feature = Feature("offsets to a group", needed=True, about=f"group '{group}'", can_fail=True)
        with _told(feature):
            _judge_group(context, feature, group)
        yield feature


def _writing(context: Context) -> Feature:
    settings = context.settings
    topic = settings.write.topic if settings.write is not None else None
    names = [topic] if topic is not None else list(settings.topics)
    feature = Feature("write", needed=settings.write is not None, about=listed(names))
    _judge_topics(context, feature, names, Operation.WRITE)
    if settings.write is not None and settings.write.producer.idempotence:
        step = context.step()
        if not context.client.any_broker.connect(step).supports(DescribeClusterRequest):
            feature.unknown.append("IDEMPOTENT_WRITE on the cluster, which brokers before Kafka 2.8 want")
    if feature.needed and topic is None:
        feature.about = "the topics that rows name"
        feature.unknown.append("which topics the rows name (column topic)")
    return feature


def _only_written(context: Context) -> set[str]:
    settings = context.settings
    read = settings.read.subscription.topics if settings.read is not None else ()
    topic = settings.write.topic if settings.write is not None else None
    return set() if topic is None or topic in read or topic in settings.topics else {topic}


def _judge_topics(context: Context, feature: Feature, names: list[str], operation: Operation) -> None:
    if not names:
        return
    step = context.step()
    told = probe_topic_rights(context.client.any_broker.connect(step), names, step)
    for name in names:
        operations = told.get(name)
        if name not in told and _is_hidden(context, name):
            feature.missing.append((_topic_right(operation, name),))
        elif name not in told:
            feature.unknown.append(f"the rights on topic '{name}', which does not exist")
        elif operations is None:
            feature.unknown.append(f"the rights on topic '{name}' (the brokers do not tell before Kafka 2.3)")
        elif operation not in operations:
            feature.missing.append((_topic_right(operation, name),))


def _is_hidden(context: Context, topic: str) -> bool:
    known = None if context.metadata is None else context.metadata.topics.get(topic)
    return known is not None and known.error is not None and known.error.condition == "TOPIC_AUTHORIZATION_FAILED"


def _transactions(context: Context) -> Iterator[Feature]:
    """Check exactly-once writes, also of continuous queries, which have other ids and a group."""
    settings = context.settings
    wanted = settings.write.exactly_once if settings.write is not None else None
    once = wanted or ExactlyOnceOptions()
    given_id, group = once.transactional_id, once.offsets_group_id
    sink = Feature("exactly once", needed=wanted is not None, about=given_id or default_id("<id of the query>"))
    with _told(sink):
        _judge_id(context, sink, given_id, given_id or default_id(_ANY_QUERY))
        _judge_commit_topic(context, sink, once.commit_topic)
    yield sink
    lanes = Feature("continuous, exactly once", needed=group is not None, about=sink.about)
    with _told(lanes):
        _judge_id(
            context, lanes, None, lane_id(given_id or default_id(_ANY_QUERY), 0), prefix=given_id or DEFAULT_PREFIX
        )
        _judge_group(context, lanes, group)
    yield lanes


@contextmanager
def _told(feature: Feature) -> Iterator[None]:
    """Record a failed question: services and gateways leave requests out, and other features can still be checked."""
    try:
        yield
    except ConnectorError as error:
        feature.unknown.append(error.message.rstrip("."))


def _judge_id(
    context: Context, feature: Feature, given: str | None, tried: str, *, prefix: str = DEFAULT_PREFIX
) -> None:
    step = context.step()
    held = may_write_transactions(context.client.any_broker.connect(step), tried, step)
    if held is None:
        feature.unknown.append("the brokers offer no transactions to this client")
    elif not held:
        # WRITE includes DESCRIBE, which is needed as well.
        name, family = (given, "") if given else (f"{prefix}…", prefix)
        feature.missing.append((Right("Write", "transactional-id", name, family=family),))


def _judge_group(context: Context, feature: Feature, group: str | None) -> None:
    step = context.step()
    held = may_read_group(context.client.any_broker.connect(step), group or default_id(_ANY_QUERY), step)
    if held is None:
        feature.unknown.append("the brokers offer no consumer groups to this client")
    elif not held:
        feature.missing.append(
            (Right("Read", "group", group or default_id("…"), family="" if group else DEFAULT_PREFIX),)
        )


def _judge_commit_topic(context: Context, feature: Feature, topic: str) -> None:
    step = context.step()
    connection = context.client.any_broker.connect(step)
    told = probe_topic_rights(connection, [topic], step)
    if topic in told:
        held = told[topic]
        needed = (Operation.READ, Operation.WRITE)
        lacks = tuple(_topic_right(each, topic) for each in needed if held is not None and each not in held)
        if lacks:
            feature.missing.append(lacks)
        return
    cluster = probe_cluster_rights(connection, step)
    if cluster is None or Operation.CREATE not in cluster:
        feature.unknown.append(
            f"whether the commit topic '{topic}' can be used: it does not exist or is hidden, and a right to create it "
            "may stand on its name"
        )


def _finding(context: Context, feature: Feature) -> Finding:
    facts = _facts(feature)
    if feature.missing:
        options = context.settings.connection
        servers = ",".join(address_of(*each) for each in context.usable) or UNKNOWN_SERVERS
        lines = [acls_command(each, principal=principal_of(options), servers=servers) for each in feature.missing]
        return Finding(
            "rights",
            FindingStatus.WARNING if feature.can_fail else FindingStatus.FAILED,
            f"{_title(feature)}: missing {_named(feature)}.",
            f"Have an administrator run `{' && '.join(lines)}`.",
            {**facts, "commands": lines},
        )
    if feature.unknown:
        text = f"{_title(feature)}: cannot be known without trying: {'; '.join(feature.unknown)}."
        return Finding("rights", FindingStatus.UNKNOWN, text, facts=facts)
    return Finding(
        "rights", FindingStatus.OK, f"{_title(feature)}: all rights are there ({feature.about}).", facts=facts
    )


def _facts(feature: Feature) -> dict[str, object]:
    return {
        "feature": feature.name,
        "missing": [str(right) for each in feature.missing for right in each],
        "unknown": list(feature.unknown),
    }


def _summary(feature: Feature) -> str:
    if feature.missing:
        return f"{feature.name}: no ({_named(feature)})"
    return f"{feature.name}: {'not known' if feature.unknown else 'yes'}"


def _named(feature: Feature) -> str:
    return listed([str(right) for each in feature.missing for right in each])


def _topic_right(operation: Operation, topic: str) -> Right:
    return Right("Read" if operation is Operation.READ else "Write", "topic", topic)


def _title(feature: Feature) -> str:
    return feature.name[:1].upper() + feature.name[1:]
