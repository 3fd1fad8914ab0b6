"""`pyspark-kafka report`: a page about a query, made of its checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from pyspark_kafka._ops.cli.common.arguments import Config, Options, OptionsFile, Servers, is_connected, options_of
from pyspark_kafka._ops.cli.common.heartbeat import progress as progress_of
from pyspark_kafka._ops.cli.common.outcome import ExitStatus, run_command
from pyspark_kafka._ops.cli.common.output import say


def report(
    checkpoint: Annotated[str, typer.Argument(help="The checkpointLocation of the query.")],
    html: Annotated[
        Path, typer.Option("--html", metavar="FILE", help="The file to write; one that is there is replaced.")
    ],
    *,
    batches: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="How many of the last batches to show.")
    ] = 1_000,
    progress: Annotated[
        Path | None,
        typer.Option(
            "--progress",
            metavar="PATH",
            help="Spark's event log, a file or a directory, or a file with one progress of the query a line: phases of "
            "batches, and restarts.",
        ),
    ] = None,
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
) -> None:
    """Write an HTML page about a query: batches over time, phases, partitions, gaps.

    With a connection, the page also has how far each partition is behind.
    """

    def work() -> ExitStatus:
        from pyspark_kafka._ops.operations.reports.generate import (  # noqa: PLC0415 - the client only when needed
            add_lag,
            gather_report,
            write_report,
        )

        given = (bootstrap_servers, config, options_file, option)
        options = options_of(*given) if is_connected(*given) else None
        with progress_of(f"Reading {checkpoint}", quiet_s=0) as step:
            report = gather_report(
                checkpoint,
                batches=batches,
                progress=progress,
                watch=lambda done, every: step.update(f"Reading batch {done:,} of {every:,}"),
            )
            if options is not None:
                step.update("Asking the brokers where the logs end")
                report = add_lag(report, options, checkpoint)
            else:
                said = "How far the query is behind is not known: no broker was asked. --bootstrap-servers names some."
                report = replace(report, sentences=(*report.sentences, said))
            step.update(f"Writing {html}")
            write_report(report, html)
        say(f"Wrote {html}.")
        return ExitStatus.INCOMPLETE if report.warnings else ExitStatus.WELL

    run_command(work, on_interrupt="No page was written.")
