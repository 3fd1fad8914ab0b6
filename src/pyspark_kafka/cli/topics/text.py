"""How topics are shown: as cells of a table, as JSON, as sentences. Pure. Layer: cli."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka.cli.common.figures import bar_text, bytes_text
from pyspark_kafka.cli.common.tables import TableColumn
from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka.client.admin.topic_configs import TopicConfig
    from pyspark_kafka.operations.topics.asking import Creation
    from pyspark_kafka.operations.topics.descriptions import DescribedPartition, TopicDescription
    from pyspark_kafka.operations.topics.sizes import LogSizes, SizeRow, SizesBy
    from pyspark_kafka.operations.topics.summaries import TopicSummary

SUMMARY_COLUMNS = (
    TableColumn("topic", style="bold"),
    TableColumn("partitions", right=True),
    TableColumn("replication", right=True),
    TableColumn("not well"),
)
PARTITION_COLUMNS = (
    TableColumn("partition", right=True),
    TableColumn("leader"),
    TableColumn("replicas"),
    TableColumn("in sync"),
    TableColumn("begin", right=True),
    TableColumn("end", right=True),
    TableColumn("records", right=True),
    TableColumn("not well", style="yellow"),
)
CONFIG_COLUMNS = (TableColumn("configuration"), TableColumn("value"), TableColumn("set by"))
_BAR_WIDTH = 24
_UNKNOWN = "?"


def summary_cells(topic: TopicSummary) -> list[str]:
    """Return a topic for `SUMMARY_COLUMNS`."""
    troubles = []
    if topic.leaderless:
        troubles.append(f"{topic.leaderless} without a leader")
    if topic.under_replicated:
        troubles.append(f"{topic.under_replicated} under-replicated")
    return [topic.name, str(topic.partitions), str(topic.replication_factor), ", ".join(troubles)]


def summary_to_json(topic: TopicSummary) -> dict[str, Any]:
    """Return a topic as values for JSON. Its keys are public."""
    return {
        "topic": topic.name,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "internal": topic.is_internal,
        "under_replicated": topic.under_replicated,
        "leaderless": topic.leaderless,
    }


def creation_text(done: Creation, configs: Mapping[str, str]) -> str:
    """Return what became of a topic that was to be created."""
    name, topic = printable(done.topic.name), done.topic
    has = f"{_counted(topic.partitions, 'partition')}, replication factor {topic.replication_factor}"
    if done.created:
        values = ", ".join(f"{printable(key)}={printable(value)}" for key, value in configs.items())
        return f"Topic '{name}' is created: {has}{f', {values}' if values else ''}."
    return " ".join(
        [f"Topic '{name}' exists already ({has}), and is left as it is.", *done.differs]
        + (["Its configuration was not compared."] if configs else [])
    )


def description_line(topic: TopicDescription) -> str:
    """Return the line before the partitions of a topic."""
    replication = max((len(each.replica_ids) for each in topic.partitions), default=0)
    parts = [_counted(len(topic.partitions), "partition"), f"replication factor {replication}"]
    if topic.records is not None:
        parts.append(f"at most {_counted(topic.records, 'record')}")
    if topic.topic_id is not None:
        parts.append(f"id {topic.topic_id}")
    if topic.is_internal:
        parts.append("internal to the brokers")
    return f"Topic '{printable(topic.name)}': {', '.join(parts)}."


def partition_rows(topic: TopicDescription) -> list[list[str]]:
    """Return the partitions of a topic for `PARTITION_COLUMNS`."""

    def leader(leader_id: int) -> str:
        return "none" if leader_id < 0 else f"{leader_id} ({topic.brokers.get(leader_id, 'not known')})"

    return [
        [
            str(each.number),
            leader(each.leader_id),
            ", ".join(map(str, each.replica_ids)),
            ", ".join(map(str, each.in_sync_ids)),
            *(_UNKNOWN if number is None else str(number) for number in (each.begin, each.end, each.records)),
            _trouble(each),
        ]
        for each in topic.partitions
    ]


def config_cells(config: TopicConfig) -> list[str]:
    """Return a value of a topic's configuration for `CONFIG_COLUMNS`."""
    return [config.name, "(hidden)" if config.value is None else config.value, config.source.value]


def description_to_json(topic: TopicDescription) -> dict[str, Any]:
    """Return a topic as values for JSON. Its keys are public."""
    return {
        "topic": topic.name,
        "topic_id": None if topic.topic_id is None else str(topic.topic_id),
        "internal": topic.is_internal,
        "records_at_most": topic.records,
        "partitions": [
            {
                "partition": each.number,
                "leader": None if each.leader_id < 0 else each.leader_id,
                "replicas": list(each.replica_ids),
                "in_sync": list(each.in_sync_ids),
                "begin": each.begin,
                "end": each.end,
                "records_at_most": each.records,
                "under_replicated": bool(each.behind_ids),
            }
            for each in topic.partitions
        ],
        "brokers": {str(broker_id): address for broker_id, address in sorted(topic.brokers.items())},
        "configs": topic.configs
        and [{"name": each.name, "value": each.value, "source": each.source.name.lower()} for each in topic.configs],
        "missing": list(topic.missing),
    }


def size_columns(by: SizesBy) -> list[TableColumn]:
    """Return the columns of sizes."""
    more = [] if by == "partition" else [TableColumn("partitions", right=True)]
    led = [] if by == "broker" else [TableColumn("led by")]
    return [
        TableColumn(by, style="bold"),
        TableColumn("size", right=True),
        TableColumn("bytes", right=True),
        *more,
        *led,
        TableColumn(""),
    ]


def size_rows(rows: Sequence[SizeRow], by: SizesBy, *, ascii_only: bool) -> list[list[str]]:
    """Return sizes for `size_columns`, each with a bar: the largest has the longest one."""
    largest = max((row.size for row in rows), default=0)
    return [
        [
            row.name,
            _UNKNOWN if row.unknown == row.partitions else bytes_text(row.size),
            _UNKNOWN if row.unknown == row.partitions else str(row.size),
            *([] if by == "partition" else [_partitions(row)]),
            *([] if by == "broker" else [", ".join("none" if each < 0 else str(each) for each in row.leaders)]),
            bar_text(row.size, largest, _BAR_WIDTH, ascii_only=ascii_only),
        ]
        for row in rows
    ]


def sizes_to_json(found: LogSizes, by: SizesBy, rows: Sequence[SizeRow]) -> dict[str, Any]:
    """Return sizes as values for JSON. Its keys are public."""
    return {
        "bytes": found.total,
        "partitions": len(found.logs),
        "by": by,
        "sizes": [
            {
                by: row.name,
                "bytes": None if row.unknown == row.partitions else row.size,
                "partitions": row.partitions,
                "unknown_partitions": row.unknown,
                "leaders": [each for each in row.leaders if each >= 0],
            }
            for row in rows
        ],
        "brokers": {str(broker_id): address for broker_id, address in sorted(found.brokers.items())},
        "missing": list(found.missing),
    }


def _trouble(partition: DescribedPartition) -> str:
    if partition.leader_id < 0:
        return "no leader"
    behind = partition.behind_ids
    return f"under-replicated: {', '.join(map(str, behind))} not in sync" if behind else ""


def _partitions(row: SizeRow) -> str:
    return f"{row.partitions} ({row.unknown} not known)" if row.unknown else str(row.partitions)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
