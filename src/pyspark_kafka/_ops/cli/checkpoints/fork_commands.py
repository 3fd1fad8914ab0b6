"""`pyspark-kafka checkpoint fork` and `rewind`: their arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from pyspark_kafka._ops.cli.common.arguments import (  # noqa: TC001 - typer reads annotations when it runs
    AsJson,
    Config,
    Options,
    OptionsFile,
    Servers,
)
from pyspark_kafka._ops.cli.common.commands import HelpfulCommand
from pyspark_kafka._ops.cli.common.outcome import run_command

_At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help='A time of records: "2 hours ago", 2h, or 2026-01-31T22:15:00Z. One without a zone is local time.',
    ),
]
_Batch = Annotated[
    int | None, typer.Option("--batch", metavar="N", min=0, help="Where the query stood when this batch was finished.")
]
_Offsets = Annotated[
    str | None,
    typer.Option(
        "--offsets",
        metavar="JSON|FILE",
        help='Offsets of some or all partitions: {"orders": {"0": 23}}; -2 is the start of the log, -1 its end. The '
        "others stay.",
    ),
]
_DropState = Annotated[
    bool,
    typer.Option("--drop-state", help="Start with an empty state, if the state of the place cannot be carried."),
]
_Apply = Annotated[
    bool, typer.Option("--yes", "--apply", "-y", help="Do it. Without this, the plan is shown and nothing is changed.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to `pyspark-kafka checkpoint`."""
    example = "Example: pyspark-kafka checkpoint"
    app.command(cls=HelpfulCommand, epilog=f"{example} fork /data/orders /data/orders-2 --batch 17")(fork)
    app.command(cls=HelpfulCommand, epilog=f"{example} rewind /checkpoints/orders --batch 17")(rewind)


def fork(
    source: Annotated[str, typer.Argument(help="The checkpointLocation of the query. It is only read.")],
    target: Annotated[str, typer.Argument(help="Where to write another one: an empty or missing directory.")],
    at: _At = None,
    batch: _Batch = None,
    offsets: _Offsets = None,
    drop_state: _DropState = False,
    apply: _Apply = False,
    servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    as_json: AsJson = False,
) -> None:
    """Write a new checkpoint, from which a new query starts at an earlier or later position."""
    from pyspark_kafka._ops.cli.checkpoints.fork import ForkArguments, run_fork  # noqa: PLC0415 - loads pyarrow

    request = ForkArguments(at, batch, offsets, drop_state, apply, as_json, (servers, config, options_file, option))
    run_command(
        lambda: run_fork(source, target, request),
        on_interrupt="Nothing was written.",
    )


def rewind(
    checkpoint: Annotated[str, typer.Argument(help="The checkpointLocation of the query, which must be stopped.")],
    at: _At = None,
    batch: _Batch = None,
    offsets: _Offsets = None,
    drop_state: _DropState = False,
    apply: _Apply = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also if the checkpoint seems to be in use, or the backup to be of another query. Only if the query "
            "is stopped.",
        ),
    ] = False,
    restore: Annotated[
        str | None,
        typer.Option("--restore", metavar="BACKUP", help="Undo a rewind: make the checkpoint what this backup is."),
    ] = None,
    servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    as_json: AsJson = False,
) -> None:
    """Move a checkpoint to an earlier or later position, and keep a backup next to it."""
    from pyspark_kafka._ops.cli.checkpoints.fork import ForkArguments, run_restore, run_rewind  # noqa: PLC0415 - as above

    request = ForkArguments(at, batch, offsets, drop_state, apply, as_json, (servers, config, options_file, option))
    if restore is not None:
        run_command(
            lambda: run_restore(checkpoint, restore, request, force=force),
            on_interrupt="If the restore had begun, no query starts there; run the command again.",
        )
    run_command(
        lambda: run_rewind(checkpoint, request, force=force),
        on_interrupt="The checkpoint is as it was, or says itself that it is not finished and where its backup is.",
    )
