"""The commands of `pyspark-kafka`. An error of the connector is printed as its sentence."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer
from rich.console import Console

from pyspark_kafka._ops.cli.check.command import check
from pyspark_kafka._ops.cli.checkpoints import app as checkpoints
from pyspark_kafka._ops.cli.common.commands import CONTEXT, HelpfulCommand, HelpfulGroup
from pyspark_kafka._ops.cli.common.outcome import ExitStatus, status_of
from pyspark_kafka._ops.cli.common.output import prose_console
from pyspark_kafka._ops.cli.common.pipes import outliving_readers
from pyspark_kafka._ops.cli.errors import errors
from pyspark_kafka._ops.cli.lag.command import lag
from pyspark_kafka._ops.cli.options import options
from pyspark_kafka._ops.cli.report.command import report
from pyspark_kafka._ops.cli.tail.command import tail
from pyspark_kafka._ops.cli.topics import app as topics
from pyspark_kafka._ops.cli.transactions import app as transactions
from pyspark_kafka.errors import ConnectorError
from pyspark_kafka.version import __version__

app = typer.Typer(
    cls=HelpfulGroup,
    help="Apache Kafka for PySpark.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)

app.add_typer(checkpoints.app, name="checkpoint")
app.add_typer(topics.app, name="topics")
app.add_typer(transactions.app, name="transactions")
app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka check --topic orders -b kafka:9092")(check)
app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka report /checkpoints/orders --html orders.html")(report)
app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka tail orders --from '10 minutes ago' -b kafka:9092")(tail)
app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka lag --checkpoint /checkpoints/orders -b kafka:9092")(lag)
app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka options startingOffsets")(options)
app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka errors UNKNOWN_TOPIC")(errors)


def _print_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@app.callback()
def program(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Apache Kafka for PySpark."""


@app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka version")
def version() -> None:
    """Print the version, the active record codec, and a warning if Spark's Python lacks this package."""
    from pyspark_kafka._connector.spark.processes.python_choice import describe_pythons, hint, lacks_package  # noqa: PLC0415
    from pyspark_kafka._connector.spark.processes.required_version import pyspark_version  # noqa: PLC0415
    from pyspark_kafka.records import codec_info  # noqa: PLC0415 - loads the codec only where it is asked for

    codec = codec_info()
    console = prose_console()
    console.print(
        f"pyspark-kafka {__version__}, record codec {'compiled' if codec.compiled else 'not compiled'}. {codec.hint}"
    )
    if pyspark_version() is not None and lacks_package():
        console.print(
            f"The Python that Spark starts does not have this package. {describe_pythons()}. {hint()}",
            style="yellow",
            markup=False,
        )


@app.command(cls=HelpfulCommand, epilog="Example: pyspark-kafka demo --records 100000")
def demo(
    records: Annotated[
        int, typer.Option(metavar="N", min=1, max=50_000_000, help="Number of orders to produce.")
    ] = 500_000,
    codec: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"],
        typer.Option(metavar="CODEC", help="Compression of the records: none, gzip, snappy, lz4 or zstd."),
    ] = "lz4",
    keep_running: Annotated[
        bool,
        typer.Option(
            "--keep-running", help="Keep the broker up until Ctrl-C, and print lines to paste into a PySpark shell."
        ),
    ] = False,
) -> None:
    """Start a real Kafka, stream orders through Spark on it, check the result, and remove everything."""
    from pyspark_kafka._connector.spark.processes.required_version import require_pyspark  # noqa: PLC0415
    from pyspark_kafka._ops.cli.common.heartbeat import Step  # noqa: PLC0415
    from pyspark_kafka.testing import ensure_java_for_spark  # noqa: PLC0415

    require_pyspark()
    # Lines are left whole: the terminal breaks them where they are shown, not where they are copied.
    console = Console(soft_wrap=True)
    ensure_java_for_spark()
    try:
        with Step(console, "Loading PySpark"):
            from pyspark_kafka._ops.cli.demo import run_demo  # noqa: PLC0415 - loads Spark only where it is asked for
        run_demo(console, records=records, codec=codec, keep_running=keep_running)
    except KeyboardInterrupt:
        console.print("Interrupted. The broker is stopped, and its files are gone.")
        raise typer.Exit(ExitStatus.INTERRUPTED) from None


def main() -> None:
    """Run the program: errors of the connector are shown as their sentence; Ctrl-C ends it with 130."""
    with outliving_readers():
        try:
            app()
        except ConnectorError as error:
            prose_console(stderr=True).print(str(error), style="red", markup=False, highlight=False)
            sys.exit(status_of(error))
