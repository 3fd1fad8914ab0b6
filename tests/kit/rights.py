"""The rights that each feature needs, as data: the tests prove the table, and docs/rights.md shows it. Pure.

The names in it are those of the page's examples; `rights_of` puts other names in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark_kafka._client.client.wire.missing_rights import Right, acls_command

SOURCE, TARGET, COMMITS, QUERY = "orders", "copies", "pyspark_kafka_commits", "QUERY_ID"
GROUP = f"{SOURCE}-query"
BEGIN, END = "<!-- rights: begin -->", "<!-- rights: end -->"
_USER, _SERVERS = "User:alice", "kafka-1:9092"
_NOUNS = {"cluster": "cluster", "group": "group", "topic": "topic", "transactional-id": "transactional id"}

READ_SOURCE = Right("Read", "topic", SOURCE)
_SEE_SOURCE = Right("Describe", "topic", SOURCE)
_SEE_CONFIG, _SEE_DISKS = Right("DescribeConfigs", "topic", SOURCE), Right("Describe", "cluster")
WRITE_TARGET = Right("Write", "topic", TARGET)
_MARKERS = (Right("Read", "topic", COMMITS), Right("Write", "topic", COMMITS))
_NO_POLICY = Right("DescribeConfigs", "topic", COMMITS)
_LANES, _JOBS, _ID = f"pyspark-kafka-{QUERY}-", "pyspark-kafka-batch", f"pyspark-kafka-{QUERY}"


@dataclass(frozen=True)
class Feature:
    """Something that users do, and the least rights for it.

    Attributes:
        key: short name, for tests.
        what: what is done, as the page says it.
        rights: without any one of them it fails, with an error that names the one that is missing.
        optional: without one of them it works, with a warning that names it.
        note: what else the page says, as sentences.
    """

    key: str
    what: str
    rights: tuple[Right, ...]
    optional: tuple[Right, ...] = ()
    note: str = ""


FEATURES = (
    Feature(
        "read",
        "Read: batch, micro-batch, or continuous with `at_least_once`",
        (READ_SOURCE,),
        note="The same for `subscribe`, `assign` and `subscribePattern`, for offsets and times, and with filters. It "
        "uses no consumer group. With `subscribePattern`, topics without the right are left out silently: brokers do "
        "not list them.",
    ),
    Feature(
        "max-bytes",
        "Read with `maxBytesPerTrigger`",
        (READ_SOURCE, Right("Describe", "cluster")),
        note="The sizes of logs (DescribeLogDirs) are a matter of the cluster. Without the right the query fails "
        "rather than read without the limit.",
    ),
    Feature(
        "committed-group",
        "Read with `commitOffsetsToGroup`",
        (READ_SOURCE,),
        optional=(Right("Read", "group", GROUP),),
        note="The group is yours to name. Without the right the query runs, Kafka's tools do not see it, and a warning "
        "says so.",
    ),
    Feature(
        "write",
        "Write with `at_least_once`: batch, micro-batch or continuous",
        (WRITE_TARGET,),
        note="With `kafka.enable.idempotence` or without. Brokers before Kafka 2.8 want `IdempotentWrite` on the "
        "cluster for idempotence.",
    ),
    Feature(
        "exactly-once",
        "Write micro-batches with `exactly_once`",
        (WRITE_TARGET, Right("Write", "transactional-id", _ID), *_MARKERS),
        optional=(_NO_POLICY,),
        note="`QUERY_ID` is the id in the file `metadata` of the checkpoint, the same after each restart. The name is "
        "yours if you set `kafka.transactional.id`, and the name of the commit topic with `commitTopic`.",
    ),
    Feature(
        "create-commit-topic",
        "The same, if the commit topic is not there",
        (
            WRITE_TARGET,
            Right("Write", "transactional-id", _ID),
            *_MARKERS,
            Right("Create", "topic", COMMITS),
        ),
        optional=(_NO_POLICY,),
        note="Or create it yourself: `cleanup.policy=compact`, 16 partitions, 3 replicas.",
    ),
    Feature(
        "exactly-once-tasks",
        "Write micro-batches with `exactly_once`, `exactlyOnceCommit` `tasks`",
        (
            WRITE_TARGET,
            Right("Write", "transactional-id", _ID, family=_ID),
            *_MARKERS,
        ),
        optional=(_NO_POLICY,),
        note="Each task has a transactional id that begins with the sink's, so the right is on a prefix. With "
        "`TwoPhaseCommit` on the same prefix, transactions have no timeout where brokers offer that.",
    ),
    Feature(
        "exactly-once-batch",
        "Batch write with `exactly_once`",
        (WRITE_TARGET, Right("Write", "transactional-id", _JOBS, family=_JOBS), *_MARKERS),
        note="Each write has a transactional id of its own, so the right is on a prefix; with `kafka.transactional.id` "
        "it is on that name.",
    ),
    Feature(
        "continuous-exactly-once",
        "Continuous query with `exactly_once`, Kafka to Kafka",
        (
            READ_SOURCE,
            WRITE_TARGET,
            Right("Write", "transactional-id", _LANES, family=_LANES),
            Right("Read", "group", _ID),
        ),
        note="One transactional id for each lane, `…-0`, `…-1` and so on. The names are yours if you set "
        "`kafka.transactional.id` (the prefix, to which `-` and the number are added) and `offsetsGroupId`. No commit "
        "topic is used.",
    ),
    Feature(
        "list",
        "`pyspark-kafka transactions list`",
        (),
        optional=(Right("Describe", "transactional-id", "sink"), Right("Describe", "topic", TARGET)),
        note="It shows what the user may see: transactional ids and topics without the right are left out silently.",
    ),
    Feature(
        "abort",
        "`pyspark-kafka transactions abort sink`",
        (Right("Write", "transactional-id", "sink"),),
        note="To fence a driver that must not write any more is the same right, which a second driver of a query has "
        "as well.",
    ),
    Feature(
        "markers",
        "`pyspark-kafka transactions list` or `abort` with `--commit-topic`",
        (Right("Write", "transactional-id", "sink"), Right("Read", "topic", COMMITS)),
        note="To list, `Describe` is enough on the transactional id.",
    ),
    Feature(
        "resolve",
        "`pyspark-kafka transactions resolve sink`",
        (Right("Write", "transactional-id", "sink", family="sink"), *_MARKERS),
        note="The user of the query has these rights.",
    ),
    Feature(
        "lag",
        "`pyspark-kafka lag --checkpoint …`",
        (_SEE_SOURCE,),
        optional=(READ_SOURCE, _SEE_CONFIG, _SEE_DISKS),
        note="The same for `pyspark_kafka.lag`. `Read` is for times: a record at each position is read. "
        "`DescribeConfigs` is for the headroom, and `Describe` on the cluster for bytes.",
    ),
    Feature(
        "lag-group",
        f"`pyspark-kafka lag --group {GROUP}`",
        (Right("Describe", "group", GROUP), _SEE_SOURCE),
        optional=(READ_SOURCE, _SEE_CONFIG, _SEE_DISKS),
        note="The optional rights are for the same figures. Brokers leave out positions in topics without the right "
        "to describe them silently.",
    ),
    Feature(
        "tail",
        f"`pyspark-kafka tail {SOURCE}`",
        (READ_SOURCE,),
        note="The same with `--from` and with filters. It uses no consumer group.",
    ),
)


def feature(key: str) -> Feature:
    """Return the feature of a name."""
    return next(each for each in FEATURES if each.key == key)


def renamed(right: Right, names: Mapping[str, str]) -> Right:
    """Return a right on other names than the page's."""

    def put(text: str) -> str:
        for before, after in names.items():
            text = text.replace(before, after)
        return text

    return replace(right, name=put(right.name), family=put(right.family))


def by_resource(rights: Sequence[Right]) -> list[list[Right]]:
    """Return the rights of each resource together, in order: one line of kafka-acls each."""
    found: dict[tuple[str, str], list[Right]] = {}
    for right in rights:
        found.setdefault((right.kind, right.name), []).append(right)
    return list(found.values())


def page_part() -> str:
    """Return the generated part of docs/rights.md: the table, and the lines to paste for each feature."""
    lines = ["| feature | rights | optional, with a warning or less to see |", "| --- | --- | --- |"]
    for each in FEATURES:
        optional = "<br>".join(map(_cell, each.optional)) or "none"
        lines.append(f"| {each.what} | {'<br>'.join(map(_cell, each.rights)) or 'none'} | {optional} |")
    for each in FEATURES:
        lines += ["", f"### {each.what}", "", each.note, "", "```sh"]
        lines += [_line(rights) for rights in by_resource(each.rights)]
        if each.optional:
            lines += ["# Optional:", *(_line(rights) for rights in by_resource(each.optional))]
        lines.append("```")
    return "\n".join(lines)


def _cell(right: Right) -> str:
    if right.kind == "cluster":
        return f"`{right.operation}` on the cluster"
    prefixed = ", prefixed" if right.family else ""
    return f"`{right.operation}` on {_NOUNS[right.kind]} `{right.name}`{prefixed}"


def _line(rights: Sequence[Right]) -> str:
    return acls_command(rights, principal=_USER, servers=_SERVERS)
