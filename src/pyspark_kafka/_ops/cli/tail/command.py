"""`pyspark-kafka tail`: its options, and what it prints."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pyspark_kafka._ops.cli.common.arguments import AsJson, Config, Options, OptionsFile, Servers  # noqa: TC001 - for typer
from pyspark_kafka._ops.cli.common.outcome import ExitStatus, run_command
from pyspark_kafka._ops.cli.common.output import warn
from pyspark_kafka._ops.cli.common.pipes import is_left

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._ops.operations.tail.request import TailRequest, TailStart
    from pyspark_kafka._ops.operations.tail.shown import ShownRecord

_LAST = 10
# Finding the last records holds a time and an offset of each.
_MAX_LAST = 100_000
_LINE_BYTES, _JSON_BYTES = 4 << 10, 1 << 20


def tail(
    topic: Annotated[str, typer.Argument(help="The topic whose records to show.")],
    *,
    bootstrap_servers: Servers = None,
    config: Config = None,
    options_file: OptionsFile = None,
    option: Options = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="START",
            help="Where to begin: earliest, latest, an offset, a time in ISO 8601 or an age such as '10 minutes ago'; "
            "the last records otherwise.",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--count",
            metavar="N",
            min=0,
            help="How many of the last records to show, 10 otherwise; with --from, how many.",
        ),
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", metavar="N", min=0, help="Only this partition; may be repeated.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Also show what is written from now on, until Ctrl-C.")
    ] = False,
    grep: Annotated[str, typer.Option(metavar="TEXT", help="Only records with this text in key or value.")] = "",
    key: Annotated[str | None, typer.Option(metavar="TEXT", help="Only records with exactly this key.")] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME=VALUE", help="Only records with this header; may be repeated."),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-bytes",
            metavar="N",
            min=1,
            help="How much of a key, a value or a header to show: 4 KiB, in JSON 1 MiB otherwise.",
        ),
    ] = None,
    utc: Annotated[bool, typer.Option("--utc", help="Show times in UTC, not in local time.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the last records of a topic, or records from an offset or a time; with --follow also new records.

    Keys and values are read in a format by the options of a query: -o valueFormat=avro -o valueFraming=confluent.
    """
    from pyspark_kafka._ops.operations.tail.match import RecordMatch  # noqa: PLC0415 - the client only when needed
    from pyspark_kafka._ops.operations.tail.request import TailRequest  # noqa: PLC0415

    if start is None and count is not None and count > _MAX_LAST:
        raise typer.BadParameter(f"of the last records at most {_MAX_LAST:,} are found; use --from", param_hint="-n")
    request = TailRequest(
        topic=topic,
        start=None if start is None else _start(start),
        count=_LAST if start is None and count is None else count,
        partitions=frozenset(partition or ()),
        follow=follow,
        match=RecordMatch(grep, key, tuple(map(_header, header or ()))),
        max_bytes=max_bytes or (_JSON_BYTES if as_json else _LINE_BYTES),
    )

    def work() -> ExitStatus:
        from pyspark_kafka._ops.cli.common.arguments import options_of  # noqa: PLC0415 - as above

        return _show(options_of(bootstrap_servers, config, options_file, option), request, utc=utc, as_json=as_json)

    run_command(work)


def _show(raw: Mapping[str, Any], request: TailRequest, *, utc: bool, as_json: bool) -> ExitStatus:
    from pyspark_kafka._ops.cli.common.heartbeat import progress  # noqa: PLC0415 - as above
    from pyspark_kafka._ops.operations.tail.request import resolve_read  # noqa: PLC0415
    from pyspark_kafka._ops.operations.tail.tail_topic import Tail  # noqa: PLC0415

    # Its notes are about queries, which are restarted; nothing is kept here.
    read = resolve_read(raw, request.topic)
    printer = _Printer(utc=utc, as_json=as_json)
    told = 0
    with ExitStack() as waiting:
        # Until the first record: a line that is redrawn would stand among records.
        waiting.enter_context(progress(f"Looking for records of '{request.topic}'"))
        with Tail(read, request) as found:
            try:
                for record in found.records():
                    waiting.close()
                    printer.show(record)
                    if is_left():
                        # Whoever reads has what it wants, such as `head`.
                        return ExitStatus.WELL
                    warn(*found.missing[told:])
                    told = len(found.missing)
            finally:
                waiting.close()
            warn(*found.missing[told:])
            return ExitStatus.INCOMPLETE if found.missing else ExitStatus.WELL


class _Printer:
    """Prints records, each at once and on a line of its own."""

    def __init__(self, *, utc: bool, as_json: bool) -> None:
        self._utc = utc
        self._as_json = as_json
        self._console = Console(soft_wrap=True, highlight=False)

    def show(self, record: ShownRecord) -> None:
        from pyspark_kafka._ops.cli.tail.text import to_json, to_line  # noqa: PLC0415 - as above

        if self._as_json:
            print(json.dumps(to_json(record, utc=self._utc)), flush=True)
            return
        line = to_line(record, utc=self._utc)
        if self._console.is_terminal:
            self._console.print(line, soft_wrap=True)
        else:
            print(line.plain, flush=True)


def _start(text: str) -> TailStart:
    from pyspark_kafka._ops.operations.tail.request import parse_start  # noqa: PLC0415 - as above

    try:
        return parse_start(text, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--from") from error


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter("must have the form NAME=VALUE", param_hint="--header")
    return name, value
