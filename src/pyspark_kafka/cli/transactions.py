"""`pyspark-kafka transactions`: the options of its commands; what they do is in `transaction_commands`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable

# Below it: 1, nothing was done. What typer gives for options that it refuses, too.
_FAILED = 2

app = typer.Typer(help="See and end transactions that hold readers back.", no_args_is_help=True)

_Servers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        envvar="PYSPARK_KAFKA_BOOTSTRAP_SERVERS",
        help="Brokers to begin with, host:port with commas between them.",
    ),
]
_Config = Annotated[
    Path | None,
    typer.Option("--config", help="A file of Java client properties: security.protocol=…, sasl.jaas.config=…"),
]
_CommitTopic = Annotated[
    str | None,
    typer.Option(
        "--commit-topic",
        help="Where exactly-once sinks keep their commit markers (option commitTopic): names the query of each id.",
    ),
]


@app.command("list")
def list_command(
    bootstrap_servers: _Servers = None,
    config: _Config = None,
    prefix: Annotated[str, typer.Option(help="Only transactional ids that begin with it.")] = "",
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="SPAN", help="Only those open for longer: 90s, 5m, 2h.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also ids whose transaction is ended.")] = False,
    commit_topic: _CommitTopic = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for programs.")] = False,
) -> None:
    """Show which transactions are open, whose they are, and since when."""
    from pyspark_kafka.cli.transaction_commands import list_transactions  # noqa: PLC0415 - the client only when needed
    from pyspark_kafka.options import duration_ms  # noqa: PLC0415

    longer_ms = None
    if older_than is not None:
        if every:
            raise typer.BadParameter("an ended transaction is not open for any time; give --older-than or --all")
        try:
            longer_ms = duration_ms(older_than)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--older-than") from error
    _told(
        lambda: list_transactions(
            bootstrap_servers,
            config,
            prefix=prefix,
            longer_ms=longer_ms,
            every=every,
            commit_topic=commit_topic,
            as_json=as_json,
        )
    )


@app.command()
def abort(
    transactional_id: Annotated[str, typer.Argument(help="Whose open transaction is to be aborted.")],
    bootstrap_servers: _Servers = None,
    config: _Config = None,
    commit_topic: _CommitTopic = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Abort the open transaction of a transactional id, and shut out its owner."""
    from pyspark_kafka.cli.transaction_commands import abort_transaction  # noqa: PLC0415 - the client only when needed

    _told(
        lambda: abort_transaction(bootstrap_servers, config, transactional_id, commit_topic=commit_topic, ask=not yes)
    )


def _told(work: Callable[[], int]) -> None:
    """Run a command, and end with its exit code; an error of the connector is one sentence."""
    try:
        code = work()
    except ConnectorError as error:
        Console(stderr=True, soft_wrap=True).print(str(error), style="red", markup=False, highlight=False)
        code = _FAILED
    raise typer.Exit(code)
