"""`pyspark-kafka checkpoint`: the arguments of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from pyspark_kafka._ops.cli.checkpoints import fork_commands
from pyspark_kafka._ops.cli.common.arguments import (
    AsJson,
    Config,
    Options,
    OptionsFile,
    Servers,
    is_connected,
    settings_of,
)
from pyspark_kafka._ops.cli.common.commands import HelpfulCommand, HelpfulGroup
from pyspark_kafka._ops.cli.common.outcome import ExitStatus, run_command

app = typer.Typer(
    cls=HelpfulGroup,
    help="Explain, verify, compare, fork and rewind checkpoints of streaming queries, of Spark's connector and of this "
    "one.",
    no_args_is_help=True,
)
fork_commands.register(app)

Location = Annotated[
    str, typer.Argument(help="The checkpointLocation of the query: a path, or a URI such as s3://bucket/query.")
]
Batches = Annotated[int, typer.Option("--batches", metavar="N", min=1, help="How many batches to show, the last ones.")]
EveryBatch = Annotated[bool, typer.Option("--all", help="All batches and all partitions.")]


@app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka checkpoint show /checkpoints/orders")
def show(location: Location, batches: Batches = 10, every: EveryBatch = False, as_json: AsJson = False) -> None:
    """Print files, batches, positions and times as tables."""
    from pyspark_kafka._ops.cli.checkpoints.show import show_checkpoint  # noqa: PLC0415 - loads pyarrow

    run_command(lambda: show_checkpoint(location, None if every else batches, as_json=as_json))


@app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka checkpoint explain /checkpoints/orders")
def explain(location: Location, batches: Batches = 10, every: EveryBatch = False, as_json: AsJson = False) -> None:
    """Describe the query, its sources, its position, and the effect of a restart."""
    from pyspark_kafka._ops.cli.checkpoints.show import explain_checkpoint  # noqa: PLC0415 - loads pyarrow

    run_command(lambda: explain_checkpoint(location, None if every else batches, as_json=as_json))


@app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka checkpoint verify /checkpoints/orders -b kafka:9092")
def verify(
    location: Location,
    batches: Annotated[
        int | None,
        typer.Option("--batches", metavar="N", min=1, help="How many batches to read, the last ones; all without it."),
    ] = None,
    servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    sink_id: Annotated[
        str | None,
        typer.Option(
            "--sink-id",
            metavar="ID",
            help="The kafka.transactional.id of the query's writer, if it has one of its own.",
        ),
    ] = None,
    commit_topic: Annotated[
        str | None,
        typer.Option(
            "--commit-topic", metavar="NAME", help="The commitTopic of the query's writer, if it has another one."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find faults in the files, and with a connection also at the brokers."""
    from pyspark_kafka._ops.cli.checkpoints.verify import verify_checkpoint  # noqa: PLC0415 - loads the client

    def work() -> ExitStatus:
        given = servers, config, options_file, option
        settings = settings_of(*given) if is_connected(*given) else None
        return verify_checkpoint(
            location, batches, settings, sink_id=sink_id, commit_topic=commit_topic, as_json=as_json
        )

    run_command(work)


@app.command(
    cls=HelpfulCommand,
    epilog="Example: pyspark-kafka checkpoint diff /checkpoints/orders /checkpoints/copy",
)
def diff(
    first: Annotated[str, typer.Argument(help="A checkpoint.")],
    second: Annotated[str, typer.Argument(help="Another one, such as its backup.")],
    every: Annotated[bool, typer.Option("--all", help="All partitions.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two checkpoints: positions by partition, and other differences. Status 1 if they differ."""
    from pyspark_kafka._ops.cli.checkpoints.diff import diff_checkpoints  # noqa: PLC0415 - loads pyarrow

    run_command(lambda: diff_checkpoints(first, second, every=every, as_json=as_json))
