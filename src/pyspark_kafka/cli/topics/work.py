"""The work of `pyspark-kafka topics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka.cli.common.arguments import connect
from pyspark_kafka.cli.common.heartbeat import progress
from pyspark_kafka.cli.common.outcome import ExitStatus
from pyspark_kafka.cli.common.output import TableColumn, print_json, print_rows, say
from pyspark_kafka.client.admin.topics import NewTopic
from pyspark_kafka.errors import printable
from pyspark_kafka.operations import topics
from pyspark_kafka.operations.text import counted

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from pyspark_kafka.cli.common.arguments import Where
    from pyspark_kafka.operations.topics import Creation, TopicSummary

_COLUMNS = (
    TableColumn("topic", style="bold"),
    TableColumn("partitions", right=True),
    TableColumn("replication", right=True),
    TableColumn("not well"),
)


def list_topics(
    where: Where, *, prefix: str, pattern: re.Pattern[str] | None, internal: bool, as_json: bool
) -> ExitStatus:
    """Print the topics; return the exit status.

    Raises:
        ConnectorError: the brokers cannot be asked, or refuse.
    """
    with connect(where) as client, progress("Listing topics"):
        found = [
            each
            for each in topics.list_topics(client)
            if (internal or not each.is_internal)
            and each.name.startswith(prefix)
            and (pattern is None or pattern.search(each.name))
        ]
    if as_json:
        print_json([_to_json(each) for each in found])
    elif found:
        print_rows(_COLUMNS, [_cells(each) for each in found])
    else:
        chosen = " that was asked for" if prefix or pattern is not None else ""
        say(f"There is no topic{chosen}, among those that this user may describe.")
    return ExitStatus.WELL


def create_topic(
    where: Where,
    name: str,
    *,
    partitions: int,
    replication_factor: int,
    configs: Mapping[str, str],
    if_not_exists: bool,
    as_json: bool,
) -> ExitStatus:
    """Create a topic, and print what was created; return the exit status.

    Raises:
        ConnectorError: the brokers cannot be asked, or refuse.
    """
    wanted = NewTopic(name, partitions, replication_factor, configs)
    with connect(where) as client, progress(f"Creating topic '{printable(name)}'"):
        done = topics.create_topic(client, wanted, if_not_exists=if_not_exists)
    if as_json:
        print_json({**_to_json(done.topic), "created": done.created, "differs": list(done.differs)})
    else:
        say(creation_text(done, configs))
    return ExitStatus.FINDING if done.differs else ExitStatus.WELL


def creation_text(done: Creation, configs: Mapping[str, str]) -> str:
    """Return a sentence about the result of creating a topic."""
    name, topic = printable(done.topic.name), done.topic
    has = f"{counted(topic.partitions, 'partition')}, replication factor {topic.replication_factor}"
    if done.created:
        values = "".join(f", {printable(key)}={printable(value)}" for key, value in configs.items())
        return f"Topic '{name}' is created: {has}{values}."
    return " ".join(
        [f"Topic '{name}' exists already ({has}), and is left as it is.", *done.differs]
        + (["Its configuration was not compared."] if configs else [])
    )


def _cells(topic: TopicSummary) -> list[str]:
    problems = [f"{topic.leaderless} without a leader"] * (topic.leaderless > 0)
    problems += [f"{topic.under_replicated} under-replicated"] * (topic.under_replicated > 0)
    return [topic.name, str(topic.partitions), str(topic.replication_factor), ", ".join(problems)]


def _to_json(topic: TopicSummary) -> dict[str, Any]:
    """Return a topic as values for JSON. Its keys are public."""
    return {
        "topic": topic.name,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "internal": topic.is_internal,
        "under_replicated": topic.under_replicated,
        "leaderless": topic.leaderless,
    }
