"""The work of `pyspark-kafka topics list`, `create` and `describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.admin.topics import NewTopic, create_topics
from pyspark_kafka._client.client.queries.logs import query_logs
from pyspark_kafka._client.client.queries.topic_configs import fetch_topic_configs
from pyspark_kafka._ops.cli.common.arguments import connect
from pyspark_kafka._ops.cli.common.heartbeat import progress
from pyspark_kafka._ops.cli.common.outcome import ExitStatus
from pyspark_kafka._ops.cli.common.output import TableColumn, number_columns, print_json, print_rows, say, warn
from pyspark_kafka._ops.operations.text import counted
from pyspark_kafka.errors import ConnectorError, OptionError, printable

if TYPE_CHECKING:
    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata, TopicMetadata
    from pyspark_kafka._client.client.queries.logs import LogStatus
    from pyspark_kafka._ops.cli.common.arguments import Where

# What decides how long records stay, and whether a write is accepted.
_SETTINGS = ("cleanup.policy", "retention.ms", "retention.bytes", "min.insync.replicas", "max.message.bytes")
_COLUMNS: tuple[TableColumn | str, ...] = (
    *number_columns("partition", "leader"),
    "replicas",
    "in sync",
    *number_columns("first offset", "end offset", "bytes"),
)


def list_topics(where: Where, text: str, *, internal: bool, as_json: bool) -> ExitStatus:
    """Print the topics whose names contain a text; return the exit code.

    Raises:
        ConnectorError: no broker responds, or the brokers refuse.
    """
    with connect(where) as client, progress("Listing topics"):
        seen = client.fetch_metadata().topics.values()
    shown = [each for each in seen if text in each.name and (internal or not each.is_internal)]
    found = [(each.name, len(each.partitions), _replicas(each)) for each in sorted(shown, key=lambda topic: topic.name)]
    if as_json:
        print_json([dict(zip(("topic", "partitions", "replicas"), each, strict=True)) for each in found])
    elif found:
        print_rows(("topic", *number_columns("partitions", "replicas")), [tuple(map(str, each)) for each in found])
    else:
        having = f" whose name contains '{printable(text)}'" if text else ""
        say(f"No topic{having}, among the topics that this user may describe.")
    return ExitStatus.WELL


def create_topic(
    where: Where, topic: str, partitions: int, replication_factor: int, topic_config: list[str]
) -> ExitStatus:
    """Create a topic; return the exit code.

    Raises:
        OptionError: a configuration has not the form `name=value`.
        ConnectorError: no broker responds, or the brokers refuse.
    """
    configs = {}
    for each in topic_config:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise OptionError(
                f"'{printable(each)}' is no topic configuration. No topic was created.",
                condition="ARGUMENT_INVALID",
                hint="Write --topic-config name=value, such as --topic-config retention.ms=86400000.",
            )
        configs[name] = value
    with connect(where) as client, progress(f"Creating topic {printable(topic)}"):
        create_topics(client, [NewTopic(topic, partitions, replication_factor, configs)])
        made = client.fetch_metadata([topic]).topics[topic]
    copies = counted(_replicas(made), "replica")
    say(f"Topic '{topic}' has {counted(len(made.partitions), 'partition')}, with {copies} each.")
    return ExitStatus.WELL


def describe_topic(where: Where, topic: str, *, as_json: bool) -> ExitStatus:
    """Print a topic's partitions and settings; return the exit code: `INCOMPLETE` if some could not be looked up.

    Raises:
        ConnectorError: no broker responds, the brokers refuse, or the topic does not exist.
    """
    with connect(where) as client, progress("Describing the topic"):
        found = client.fetch_metadata([topic]).topics[topic]
        if found.error is not None:
            raise found.error
        asked = [each.topic_partition for each in found.partitions]
        logs = query_logs(client, asked, client.deadline(), newest=False).logs
        settings = fetch_topic_configs(client, [topic], _SETTINGS, client.deadline())[topic]
    problems = {str(error): None for log in logs.values() for error in (log.error, log.size_error) if error is not None}
    if isinstance(settings, ConnectorError):
        problems[str(settings)] = None
        settings = {}
    if as_json:
        rows = [_to_json(each, logs[each.topic_partition]) for each in found.partitions]
        topic_id = None if found.topic_id is None else str(found.topic_id)
        print_json({"topic": topic, "topic_id": topic_id, "partitions": rows, "settings": settings})
    else:
        print_rows(_COLUMNS, [_cells(each, logs[each.topic_partition]) for each in found.partitions])
        say(*(f"{name} = {value}" for name, value in settings.items()))
    warn(*problems)
    return ExitStatus.INCOMPLETE if problems else ExitStatus.WELL


def _to_json(partition: PartitionMetadata, log: LogStatus) -> dict[str, Any]:
    """Return a partition as values for JSON. Its keys are public."""
    return {
        "partition": partition.topic_partition.partition,
        "leader": partition.leader_id if partition.has_leader else None,
        "replicas": list(partition.replica_ids),
        "in_sync": list(partition.in_sync_ids),
        "first_offset": log.start,
        "end_offset": log.end,
        "bytes": log.size,
    }


def _cells(partition: PartitionMetadata, log: LogStatus) -> list[str]:
    return [
        str(partition.topic_partition.partition),
        str(partition.leader_id) if partition.has_leader else "none",
        ",".join(map(str, partition.replica_ids)),
        ",".join(map(str, partition.in_sync_ids)),
        *("unknown" if number is None else f"{number}" for number in (log.start, log.end, log.size)),
    ]


def _replicas(topic: TopicMetadata) -> int:
    return max((len(each.replica_ids) for each in topic.partitions), default=0)
