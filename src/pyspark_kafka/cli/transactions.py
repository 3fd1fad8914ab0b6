"""`pyspark-kafka transactions`: the options of its commands. `transaction_commands` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable

# typer exits with the same code for options that it refuses. 1 means that nothing was done.
_FAILED = 2

app = typer.Typer(help="List and abort open transactions, which hold readers back.", no_args_is_help=True)

_Servers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        envvar="PYSPARK_KAFKA_BOOTSTRAP_SERVERS",
        help="Where to find the cluster: host:port, several with commas between them.",
    ),
]
_Config = Annotated[
    Path | None,
    typer.Option(
        "--config", help="A file of Java client properties, such as security.protocol=… and sasl.jaas.config=…"
    ),
]
_CommitTopic = Annotated[
    str | None,
    typer.Option(
        "--commit-topic",
        help="The topic of exactly-once sinks' commit markers (option commitTopic): shows the query of each id.",
    ),
]


@app.command("list")
def list_command(
    bootstrap_servers: _Servers = None,
    config: _Config = None,
    prefix: Annotated[str, typer.Option(help="Only transactional ids that begin with this text.")] = "",
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="SPAN",
            help="Only transactions that have been open for longer, such as 90s, 5m or 2h.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also ids without an open transaction.")] = False,
    commit_topic: _CommitTopic = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List open transactions: their transactional ids, how long they have been open, and what they hold back."""
    from pyspark_kafka.cli.transaction_commands import list_transactions  # noqa: PLC0415 - the client only when needed
    from pyspark_kafka.options import duration_ms  # noqa: PLC0415

    longer_ms = None
    if older_than is not None:
        if every:
            raise typer.BadParameter(
                "an ended transaction is not open for any time; use --older-than or --all, not both"
            )
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
    transactional_id: Annotated[str, typer.Argument(help="The id whose open transaction to abort.")],
    bootstrap_servers: _Servers = None,
    config: _Config = None,
    commit_topic: _CommitTopic = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Abort without asking.")] = False,
) -> None:
    """Abort the open transaction of a transactional id, and fence its owner, which can then write no more."""
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
