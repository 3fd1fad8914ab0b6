"""`pyspark-kafka topics`: the options of its commands. `work` does it."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from pyspark_kafka.cli.common.arguments import AsJson, Config, Options, OptionsFile, Servers  # noqa: TC001 - for typer
from pyspark_kafka.cli.common.outcome import run_command

app = typer.Typer(help="List and create topics.", no_args_is_help=True)


@app.command("list")
def list_command(
    *,
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    prefix: Annotated[str, typer.Option(help="Only topics whose names begin with this text.")] = "",
    match: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="Only topics in whose names this regular expression is found anywhere."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also the topics that are internal to the brokers.")] = False,
    as_json: AsJson = False,
) -> None:
    """List topics with partitions, replication, and the number of partitions with a problem."""
    from pyspark_kafka.cli.topics.work import list_topics  # noqa: PLC0415 - the client only when needed

    pattern = _pattern(match)
    where = (bootstrap_servers, config, options_file, option)
    run_command(lambda: list_topics(where, prefix=prefix, pattern=pattern, internal=every, as_json=as_json))


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="The topic to create.")],
    *,
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="How many partitions it has; the brokers' default otherwise.")
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(min=1, max=32767, help="How many replicas each has; the brokers' default otherwise."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A value of its configuration, such as retention.ms=…; may be repeated."
        ),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave a topic of that name as it is, and compare it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a topic, and print its properties."""
    from pyspark_kafka.cli.topics.work import create_topic  # noqa: PLC0415 - the client only when needed

    configs = _configs(settings or [])
    where = (bootstrap_servers, config, options_file, option)
    run_command(
        lambda: create_topic(
            where,
            name,
            partitions=-1 if partitions is None else partitions,
            replication_factor=-1 if replication_factor is None else replication_factor,
            configs=configs,
            if_not_exists=if_not_exists,
            as_json=as_json,
        ),
        on_interrupt="The topic may have been created.",
    )


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise typer.BadParameter(f"is not a regular expression: {error}", param_hint="--match") from error


def _configs(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in pairs:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise typer.BadParameter("must have the form NAME=VALUE, such as retention.ms=86400000", param_hint="--set")
        if name in found:
            raise typer.BadParameter(f"names '{name}' twice", param_hint="--set")
        found[name] = value
    return found
