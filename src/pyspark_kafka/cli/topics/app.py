"""`pyspark-kafka topics`: the options of its commands. `work` does it. Layer: cli."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import typer

from pyspark_kafka.cli.common.arguments import AsJson, Config, Options, OptionsFile, Servers  # noqa: TC001 - for typer
from pyspark_kafka.cli.common.outcome import run_command

app = typer.Typer(help="List, create and describe topics, and show what they take on disks.", no_args_is_help=True)

_Prefix = Annotated[str, typer.Option(help="Only topics whose names begin with this text.")]
_Match = Annotated[
    str | None,
    typer.Option(metavar="REGEX", help="Only topics in whose names this regular expression is found anywhere."),
]
_All = Annotated[bool, typer.Option("--all", help="Also the topics that are internal to the brokers.")]


@app.command("list")
def list_command(
    *,
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    prefix: _Prefix = "",
    match: _Match = None,
    every: _All = False,
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


@app.command()
def describe(
    name: Annotated[str, typer.Argument(help="The topic to describe.")],
    *,
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    as_json: AsJson = False,
) -> None:
    """Describe a topic: its partitions, where their logs begin and end, and its configuration."""
    from pyspark_kafka.cli.topics.work import describe_topic  # noqa: PLC0415 - the client only when needed

    where = (bootstrap_servers, config, options_file, option)
    run_command(lambda: describe_topic(where, name, as_json=as_json))


@app.command()
def sizes(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these topics.")] = None,
    *,
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    prefix: _Prefix = "",
    match: _Match = None,
    every: _All = False,
    by: Annotated[
        Literal["topic", "broker", "partition"], typer.Option(help="What the sizes are summed up by.")
    ] = "topic",
    top: Annotated[int | None, typer.Option(min=1, metavar="COUNT", help="Only the largest ones.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how many bytes topics take on the disks of their partitions' leaders, the largest first."""
    from pyspark_kafka.cli.topics.work import show_sizes  # noqa: PLC0415 - the client only when needed

    if names and (prefix or match or every):
        raise typer.BadParameter("topics are named, or chosen by --prefix, --match or --all, not both")
    pattern = _pattern(match)
    where = (bootstrap_servers, config, options_file, option)
    run_command(
        lambda: show_sizes(
            where,
            frozenset(names or ()),
            prefix=prefix,
            pattern=pattern,
            internal=every,
            by=by,
            top=top,
            as_json=as_json,
        )
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
