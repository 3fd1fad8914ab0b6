"""`pyspark-kafka topics`: the options of its commands. `work` does it."""

from __future__ import annotations

from typing import Annotated

import typer

from pyspark_kafka._ops.cli.common.arguments import AsJson, Config, Options, OptionsFile, Servers  # noqa: TC001 - for typer
from pyspark_kafka._ops.cli.common.commands import HelpfulCommand, HelpfulGroup
from pyspark_kafka._ops.cli.common.outcome import run_command

app = typer.Typer(cls=HelpfulGroup, help="List, create and describe topics.", no_args_is_help=True)

_Topic = Annotated[str, typer.Argument(help="The topic.")]


@app.command("list", cls=HelpfulCommand, epilog="Example: pyspark-kafka topics list orders -b kafka:9092")
def list_command(
    text: Annotated[str, typer.Argument(help="Only topics whose names contain this text.")] = "",
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    internal: Annotated[bool, typer.Option("--internal", help="Also the internal topics of the brokers.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the topics that this user may describe, with their partitions and replicas."""
    from pyspark_kafka._ops.cli.topics.work import list_topics  # noqa: PLC0415 - the client only when needed

    where = (bootstrap_servers, config, options_file, option)
    run_command(lambda: list_topics(where, text, internal=internal, as_json=as_json))


@app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka topics create orders -p 12 -r 3 -b kafka:9092")
def create(
    topic: _Topic,
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", metavar="N", min=1, help="Number of partitions; otherwise the brokers' default."
        ),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor", "-r", metavar="N", min=1, help="Copies of each; otherwise the brokers' default."
        ),
    ] = None,
    topic_config: Annotated[
        list[str] | None,
        typer.Option("--topic-config", metavar="NAME=VALUE", help="A topic configuration; may be repeated."),
    ] = None,
) -> None:
    """Create a topic, and wait until each of its partitions has a leader."""
    from pyspark_kafka._ops.cli.topics.work import create_topic  # noqa: PLC0415 - the client only when needed

    where = (bootstrap_servers, config, options_file, option)
    run_command(
        lambda: create_topic(where, topic, partitions or -1, replication_factor or -1, topic_config or []),
        on_interrupt="The topic may have been created.",
    )


@app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka topics describe orders -b kafka:9092")
def describe(
    topic: _Topic,
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    as_json: AsJson = False,
) -> None:
    """Show the leaders, replicas and offsets of a topic's partitions, and the settings that decide what it keeps."""
    from pyspark_kafka._ops.cli.topics.work import describe_topic  # noqa: PLC0415 - the client only when needed

    run_command(lambda: describe_topic((bootstrap_servers, config, options_file, option), topic, as_json=as_json))
