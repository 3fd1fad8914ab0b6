"""`pyspark-kafka transactions`: the options of its commands. `work` does it."""

from __future__ import annotations

from typing import Annotated

import typer

from pyspark_kafka._ops.cli.common.arguments import AsJson, Config, Options, OptionsFile, Servers  # noqa: TC001 - for typer
from pyspark_kafka._ops.cli.common.commands import HelpfulCommand, HelpfulGroup
from pyspark_kafka._ops.cli.common.outcome import run_command

app = typer.Typer(
    cls=HelpfulGroup,
    help="List and abort open transactions, which hold readers back; resolve what one has lost.",
    no_args_is_help=True,
)

_CommitTopic = Annotated[
    str | None,
    typer.Option(
        "--commit-topic",
        metavar="NAME",
        help="The topic of exactly-once sinks' commit markers (option commitTopic): shows the query of each id.",
    ),
]


@app.command(
    "list", cls=HelpfulCommand, epilog="Example: pyspark-kafka transactions list --older-than 5m -b kafka:9092"
)
def list_command(
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Only transactional ids that begin with this text.")] = "",
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
    as_json: AsJson = False,
) -> None:
    """List open transactions: transactional ids, ages, and the partitions that they hold back."""
    from pyspark_kafka._client.options import duration_ms  # noqa: PLC0415
    from pyspark_kafka._ops.cli.transactions.work import list_transactions  # noqa: PLC0415 - the client only when needed

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
    run_command(
        lambda: list_transactions(
            (bootstrap_servers, config, options_file, option),
            prefix=prefix,
            longer_ms=longer_ms,
            every=every,
            commit_topic=commit_topic,
            as_json=as_json,
        )
    )


@app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka transactions abort orders-sink -b kafka:9092")
def abort(
    transactional_id: Annotated[str, typer.Argument(help="The id whose open transaction to abort.")],
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    commit_topic: _CommitTopic = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Abort without asking.")] = False,
) -> None:
    """Abort the open transaction of a transactional id, and fence its producer, whose later writes fail."""
    from pyspark_kafka._ops.cli.transactions.work import abort_transaction  # noqa: PLC0415 - the client only when needed

    run_command(
        lambda: abort_transaction(
            (bootstrap_servers, config, options_file, option), transactional_id, commit_topic=commit_topic, ask=not yes
        ),
        on_interrupt="The transaction may have been aborted.",
    )


@app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka transactions resolve orders-sink -b kafka:9092")
def resolve(
    transactional_id: Annotated[str, typer.Argument(help="The sink whose newest micro-batch has lost records.")],
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    commit_topic: Annotated[
        str | None,
        typer.Option(
            "--commit-topic", metavar="NAME", help="The topic of the sink's commit markers (option commitTopic)."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Note it without asking.")] = False,
) -> None:
    """Note that lost records of a micro-batch (SINK_COMMIT_INCOMPLETE) are dealt with: its query continues after it."""
    from pyspark_kafka._ops.cli.transactions.work import resolve_loss  # noqa: PLC0415 - the client only when needed

    run_command(
        lambda: resolve_loss(
            (bootstrap_servers, config, options_file, option),
            transactional_id,
            commit_topic=commit_topic,
            ask=not yes,
        ),
        on_interrupt="It may have been noted.",
    )
