"""`pyspark-kafka lag`: its arguments, and its exit status."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from pyspark_kafka._ops.cli.common.arguments import AsJson, Config, Options, OptionsFile, Servers  # noqa: TC001 - typer reads
from pyspark_kafka._ops.cli.common.outcome import ExitStatus, run_command

if TYPE_CHECKING:
    from pyspark_kafka._ops.operations.lag.values import LagReport


def lag(
    *,
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="PATH", help="The checkpointLocation of a query: a path, or a URI."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", "-g", metavar="NAME", help="A consumer group, whoever commits its positions."),
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", "-t", metavar="NAME", help="Only this topic; may be repeated.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--partitions", help="Show each partition, however many there are; the worst first.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, until Ctrl-C.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="Seconds between two looks.")
    ] = 5.0,
    max_records: Annotated[
        int | None,
        typer.Option(
            "--max-records", metavar="N", min=0, help="Exit with 1 if more records of a partition are behind."
        ),
    ] = None,
    max_seconds: Annotated[
        str | None,
        typer.Option("--max-seconds", metavar="SPAN", help="Exit with 1 if a position's record is older: 90, 5m, 2h."),
    ] = None,
    min_headroom: Annotated[
        str | None,
        typer.Option(
            "--min-headroom", metavar="SPAN", help="Exit with 1 if records may be deleted sooner: 90, 5m, 2h."
        ),
    ] = None,
    without_times: Annotated[
        bool, typer.Option("--no-times", help="Read no records, which have the times: ages stay unknown.")
    ] = False,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=1, help="Seconds for a look.")] = 15.0,
    as_json: AsJson = False,
) -> None:
    """Show the lag of a query or a consumer group in records, bytes and time, and the time to deletion."""
    if (checkpoint is None) == (group is None):
        raise typer.BadParameter("the lag is of a query or of a group; use one of --checkpoint and --group")
    if watch and as_json:
        raise typer.BadParameter("a watch does not end, and JSON is one value; use --watch or --json, not both")
    seconds, headroom = _seconds(max_seconds, "--max-seconds"), _seconds(min_headroom, "--min-headroom")

    def work() -> ExitStatus:
        # The client is loaded when it is needed: `--help` needs none.
        from rich.console import Console  # noqa: PLC0415

        from pyspark_kafka._ops.cli.common.arguments import options_of  # noqa: PLC0415
        from pyspark_kafka._ops.cli.common.heartbeat import progress  # noqa: PLC0415
        from pyspark_kafka._ops.cli.common.output import say  # noqa: PLC0415
        from pyspark_kafka._ops.cli.lag.tables import print_report, to_json  # noqa: PLC0415
        from pyspark_kafka._ops.cli.lag.thresholds import Thresholds, judge_report  # noqa: PLC0415
        from pyspark_kafka._ops.cli.lag.watch import watch as watch_lag  # noqa: PLC0415
        from pyspark_kafka._ops.operations.lag.api import lag as measure  # noqa: PLC0415
        from pyspark_kafka._ops.operations.lag.compute import wants_rate  # noqa: PLC0415

        raw = options_of(bootstrap_servers, config, options_file, option)
        console = Console()

        def look(before: LagReport | None) -> LagReport:
            return measure(
                raw,
                checkpoint=checkpoint,
                group=group,
                topics=topic or None,
                timeout_s=timeout,
                times=not without_times,
                before=before,
            )

        if watch:
            watch_lag(console, look, interval, every=every)
            return ExitStatus.WELL
        with progress("Looking up the logs", quiet_s=0):
            report = look(None)
        if headroom is not None and wants_rate(report):
            with progress("Looking up the logs again, for the rate of writing", quiet_s=0):
                time.sleep(interval)
                report = look(report)
        status, findings = judge_report(report, Thresholds(max_records, seconds, headroom))
        if as_json:
            print(to_json(report, findings), flush=True)
        else:
            print_report(console, report, every=every, max_rows=None)
            say(*findings, style="red")
        return status

    run_command(work)


def _seconds(text: str | None, name: str) -> float | None:
    """Return a span in seconds; a number alone is in seconds."""
    if text is None:
        return None
    from pyspark_kafka._client.options import duration_ms  # noqa: PLC0415

    try:
        return float(text) if text.strip().replace(".", "", 1).isdecimal() else duration_ms(text) / 1000
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=name) from error
