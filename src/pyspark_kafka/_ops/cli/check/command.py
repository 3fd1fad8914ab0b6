"""`pyspark-kafka check`: its options, and its exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from pyspark_kafka._ops.cli.common.arguments import AsJson, Config, Options, OptionsFile, Servers  # noqa: TC001 - as above
from pyspark_kafka._ops.cli.common.outcome import ExitStatus, run_command
from pyspark_kafka._ops.cli.common.output import prose_console


def check(
    *,
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="NAME", help="A further topic to look at; may be repeated.")
    ] = None,
    spark: Annotated[
        str | None,
        typer.Option("--spark", metavar="MASTER", help="Also judge a worker of this Spark master, such as local[1]."),
    ] = None,
    remote: Annotated[
        str | None,
        typer.Option("--remote", metavar="URL", help="Also judge a worker of this Spark Connect server, sc://host."),
    ] = None,
    spark_conf: Annotated[
        list[str] | None,
        typer.Option("--spark-conf", metavar="NAME=VALUE", help="A setting of the Spark session; may be repeated."),
    ] = None,
    cluster: Annotated[
        bool,
        typer.Option("--cluster", help="Judge every executor, of --spark, of --remote or of Spark's own settings."),
    ] = False,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=1, help="Seconds for the whole check.")] = 60.0,
    step_timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="Seconds for one step.")] = 10.0,
    as_json: AsJson = False,
    show_record: Annotated[
        bool, typer.Option("--show-record", help="Print key and value of the first record; otherwise their sizes.")
    ] = False,
) -> None:
    """Check a connection to Kafka step by step, and print what to change."""
    from pyspark_kafka._ops.cli.check.lines import Lines, print_executors, summary, to_text  # noqa: PLC0415 - the client only when needed
    from pyspark_kafka._ops.cli.common.query_options import collect_options  # noqa: PLC0415
    from pyspark_kafka._ops.diagnosis import check as judge  # noqa: PLC0415

    if spark is not None and remote is not None:
        raise typer.BadParameter("a session has a master or a remote server; use --spark or --remote, not both")
    sessions: list[Any] = []
    session = _session(spark, remote, spark_conf or [], sessions, wanted=cluster)

    def work() -> ExitStatus:
        raw = collect_options(config, options_file, option or [], bootstrap_servers)
        quiet = as_json and not sys.stderr.isatty()
        lines = Lines(prose_console(stderr=as_json, quiet=quiet))
        try:
            with lines:
                done = judge(
                    raw,
                    session,
                    cluster=cluster,
                    topics=tuple(topic or ()),
                    timeout_s=timeout,
                    step_timeout_s=step_timeout,
                    show_record=show_record,
                    watch=lines.show,
                )
        finally:
            for each in sessions:
                each.stop()
        if not as_json:
            print_executors(done)
        print(to_text(done) if as_json else summary(done), flush=True)
        status = ExitStatus.WELL if done.ok else ExitStatus.FINDING
        if session is not None and not sessions:
            # A thread still waits for Spark, and so would PySpark at the end of the process, for minutes.
            os._exit(status)
        return status

    run_command(work, on_interrupt="Nothing on the cluster was changed.")


def _session(
    master: str | None, remote: str | None, settings: list[str], made: list[Any], *, wanted: bool
) -> Callable[[], Any] | None:
    """Return a function that creates and records the session at the first use; None if no worker is judged.

    A session that is wanted without a master and a server takes them from Spark's own settings.
    """
    if master is None and remote is None and not wanted:
        return None
    pairs = []
    for text in settings:
        name, found, value = text.partition("=")
        if not found:
            raise typer.BadParameter("must have the form NAME=VALUE", param_hint="--spark-conf")
        pairs.append((name, value))

    def make() -> Any:
        from pyspark_kafka._connector.spark.processes.required_version import require_pyspark  # noqa: PLC0415 - as below

        require_pyspark()
        from pyspark.sql import SparkSession  # noqa: PLC0415 - a check without workers needs no PySpark

        if remote is None:
            from pyspark_kafka.testing import ensure_java_for_spark  # noqa: PLC0415 - only for a session of its own

            ensure_java_for_spark()
        builder = SparkSession.builder.appName("pyspark-kafka check")
        if remote is not None:
            # A server refuses its own settings, with a warning of PySpark for each.
            builder = builder.remote(remote)
        else:
            builder = builder.config("spark.ui.enabled", "false")
            if master is not None:
                builder = builder.master(master)
        if wanted and remote is None:
            # A job begins when all executors are there, or after half a minute.
            builder = builder.config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        for name, value in pairs:
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        made[:] = [session]
        return session

    return make
