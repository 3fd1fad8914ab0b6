"""The work of `pyspark-kafka topics`. Layer: cli."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from pyspark_kafka.cli.common.arguments import settings_of
from pyspark_kafka.cli.common.figures import bytes_text
from pyspark_kafka.cli.common.heartbeat import progress
from pyspark_kafka.cli.common.outcome import ExitStatus, warn
from pyspark_kafka.cli.common.tables import print_rows, shows_unicode
from pyspark_kafka.cli.topics import text
from pyspark_kafka.client.admin.topics import NewTopic
from pyspark_kafka.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.errors import printable
from pyspark_kafka.operations.topics import asking
from pyspark_kafka.operations.topics.summaries import TopicChoice

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping
    from pathlib import Path
    from typing import TypeAlias

    from pyspark_kafka.operations.topics.sizes import SizesBy

    # Of --bootstrap-servers, --config, --options and -o.
    Where: TypeAlias = tuple[str | None, Path | None, Path | None, list[str] | None]


def list_topics(
    where: Where, *, prefix: str, pattern: re.Pattern[str] | None, internal: bool, as_json: bool
) -> ExitStatus:
    """Print the topics; return the exit status.

    Raises:
        ConnectorError: the brokers cannot be asked, or refuse.
    """
    with _connect(where) as client, progress("Listing topics"):
        found = asking.list_topics(client, TopicChoice(prefix=prefix, pattern=pattern, internal=internal))
    if as_json:
        _print_json([text.summary_to_json(each) for each in found])
    elif found:
        print_rows(text.SUMMARY_COLUMNS, [text.summary_cells(each) for each in found])
    else:
        chosen = " that was asked for" if prefix or pattern is not None else ""
        _say(f"There is no topic{chosen}, among those that this user may describe.")
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
    with _connect(where) as client, progress(f"Creating topic '{printable(name)}'"):
        done = asking.create_topic(client, wanted, if_not_exists=if_not_exists)
    if as_json:
        _print_json({**text.summary_to_json(done.topic), "created": done.created, "differs": list(done.differs)})
    else:
        _say(text.creation_text(done, configs))
    return ExitStatus.FINDING if done.differs else ExitStatus.WELL


def describe_topic(where: Where, name: str, *, as_json: bool) -> ExitStatus:
    """Print what is known about a topic; return the exit status.

    Raises:
        ConnectorError: the topic does not exist, or the brokers cannot be asked.
    """
    with _connect(where) as client, progress(f"Describing topic '{printable(name)}'"):
        found = asking.describe_topic(client, name)
    if as_json:
        _print_json(text.description_to_json(found))
    else:
        _say(text.description_line(found))
        print_rows(text.PARTITION_COLUMNS, text.partition_rows(found))
        if found.configs:
            _say("")
            print_rows(text.CONFIG_COLUMNS, [text.config_cells(each) for each in found.configs])
        elif found.configs is not None:
            _say("All of its configuration is Kafka's default.")
    return _incomplete(found.missing)


def show_sizes(
    where: Where,
    names: frozenset[str],
    *,
    prefix: str,
    pattern: re.Pattern[str] | None,
    internal: bool,
    by: SizesBy,
    top: int | None,
    as_json: bool,
) -> ExitStatus:
    """Print the sizes of logs; return the exit status.

    Raises:
        ConnectorError: the brokers cannot be asked, or all refuse.
    """
    choice = TopicChoice(names, prefix, pattern, internal)
    with _connect(where) as client, progress("Asking all brokers for the sizes of logs"):
        found = asking.fetch_sizes(client, choice)
    rows = found.rows(by)
    shown = rows[:top]
    if as_json:
        _print_json(text.sizes_to_json(found, by, shown))
    elif rows:
        console = Console()
        print_rows(
            text.size_columns(by),
            text.size_rows(shown, by, ascii_only=not shows_unicode(console)),
            console,
        )
        left = f" Of {len(rows):,}, the largest {len(shown):,} are shown." if len(shown) < len(rows) else ""
        _say(f"{bytes_text(found.total)} in {len(found.logs):,} partitions, as their leaders store them.{left}")
    else:
        _say("There is no topic that was asked for, among those that this user may describe.")
    return _incomplete(found.missing)


def _connect(where: Where) -> KafkaClient:
    settings = settings_of(*where)
    warn(*settings.notes)
    return KafkaClient(settings.connection)


def _incomplete(missing: tuple[str, ...]) -> ExitStatus:
    warn(*missing)
    return ExitStatus.INCOMPLETE if missing else ExitStatus.WELL


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2))


def _say(sentence: str) -> None:
    Console(soft_wrap=True).print(printable(sentence), markup=False, highlight=False)
