"""The work of `pyspark-kafka checkpoint show` and `explain`. Layer: cli."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspark_kafka.cli.checkpoints.json_values import account_to_json, directories_to_json
from pyspark_kafka.cli.common.heartbeat import Step
from pyspark_kafka.cli.common.outcome import ExitStatus
from pyspark_kafka.errors import printable
from pyspark_kafka.offsets import timestamp_text
from pyspark_kafka.operations.checkpoints.account import list_directories, read_account
from pyspark_kafka.operations.checkpoints.reading import read_checkpoint
from pyspark_kafka.operations.checkpoints.sentences import (
    describe_batch,
    describe_query,
    describe_restart,
    describe_standing,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark_kafka.operations.checkpoints.account import CheckpointAccount

# Reading that number of batches may take more than 2 s.
_MANY = 5_000
_SHOWN_PARTITIONS = 50


@contextmanager
def reporting(text: str, *, long: bool) -> Iterator[Callable[[str], object]]:
    """Show progress on standard error if the block takes long; yield what to report with."""
    if not long:
        yield str
        return
    with Step(Console(stderr=True, soft_wrap=True), text) as step:
        yield step.update


def explain_checkpoint(location: str, most: int | None, *, as_json: bool) -> ExitStatus:
    """Print an account of a checkpoint in words.

    Raises:
        CheckpointError: there is no checkpoint, or it cannot be listed.
    """
    account = _account(location, most)
    if as_json:
        typer.echo(json.dumps(account_to_json(account), indent=2))
        return _status(account)
    say = Console(soft_wrap=True).print
    for paragraph in (describe_query(account), describe_standing(account), describe_restart(account)):
        say(printable(" ".join(paragraph)), markup=False, highlight=False)
    if account.batches:
        say("")
    for batch in account.batches:
        style = None if batch.finished else "yellow"
        say(printable(describe_batch(batch)), style=style, markup=False, highlight=False)
    print_problems(account.problems)
    return _status(account)


def show_checkpoint(location: str, most: int | None, *, as_json: bool) -> ExitStatus:
    """Print the facts of a checkpoint as tables.

    Raises:
        CheckpointError: there is no checkpoint, or it cannot be listed.
    """
    account = _account(location, most)
    directories, problems = list_directories(read_checkpoint(location))
    account = replace(account, problems=tuple(dict.fromkeys([*account.problems, *problems])))
    if as_json:
        told = account_to_json(account) | {"directories": directories_to_json(directories)}
        typer.echo(json.dumps(told, indent=2))
        return _status(account)
    console = Console()
    kind = "cannot be read" if account.kind is None else account.kind.value
    facts = [
        ("location", account.location),
        ("query id", account.query_id or "-"),
        ("written by", kind),
        ("batches begun", f"{account.begun:,} kept, the last one {or_dash(account.last_begun)}"),
        ("batches finished", f"{account.finished:,} kept, the last one {or_dash(account.last_finished)}"),
    ]
    facts += [
        (f"state {state.directory}", f"{state.name or '-'}, {state.partitions} parts") for state in account.states
    ]
    facts += [("owner", account.owner)] if account.owner else []
    facts += [("transactions", account.transactions)] if account.transactions else []
    print_table(console, ("fact", "value"), facts)
    print_table(
        console,
        ("directory", "files", "checksums", "temporary", "directories"),
        [
            (each.directory, f"{each.files:,}", f"{each.checksums:,}", f"{each.temporary:,}", f"{each.directories:,}")
            for each in directories
        ],
    )
    _print_positions(console, account, None if most is None else _SHOWN_PARTITIONS)
    print_table(
        console,
        ("batch", "planned", "took", "records at most", "watermark"),
        [
            (
                str(batch.batch_id),
                _time(batch.planned_at_ms),
                "not finished"
                if not batch.finished
                else "moved here"
                if batch.moved
                else "-"
                if batch.took_ms is None
                else f"{batch.took_ms / 1000:.1f} s",
                "-" if batch.offsets is None else f"{batch.offsets:,}",
                _time(batch.watermark_ms),
            )
            for batch in account.batches
        ],
    )
    print_problems(account.problems)
    return _status(account)


def _account(location: str, most: int | None) -> CheckpointAccount:
    checkpoint = read_checkpoint(location)
    count = len(checkpoint.history.begun) if most is None else min(most, len(checkpoint.history.begun))
    with reporting("Reading the batches", long=count > _MANY) as report:
        return read_account(checkpoint, most=most, report=report)


def _status(account: CheckpointAccount) -> ExitStatus:
    return ExitStatus.INCOMPLETE if account.problems else ExitStatus.WELL


def _print_positions(console: Console, account: CheckpointAccount, most: int | None) -> None:
    rows = []
    for source in account.sources:
        position = {} if source.position is None else source.position.partitions
        end = {} if source.end is None else source.end.partitions
        if source.other is not None:
            rows.append((source.source, "not Kafka's", "", source.other, ""))
        for each in sorted({*position, *end}):
            row = source.source, each.topic, str(each.partition), or_dash(position.get(each)), or_dash(end.get(each))
            rows.append(row)
    print_table(console, ("source", "topic", "partition", "position", "end of unfinished"), rows[:most])
    if most is not None and len(rows) > most:
        console.print(f"{len(rows) - most:,} more partitions; --all shows them.", markup=False, highlight=False)


def print_problems(problems: Sequence[str]) -> None:
    """Print what could not be read, on standard error."""
    errors = Console(stderr=True, soft_wrap=True)
    for problem in problems:
        errors.print(f"Not read: {printable(problem)}", style="red", markup=False, highlight=False)


def print_table(console: Console, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, if it has rows."""
    if not rows:
        return
    table = Table(*names)
    for row in rows:
        table.add_row(*(Text(printable(cell), overflow="fold") for cell in row))
    if not console.is_terminal:
        # A pipe has no edge to fold at, and whole words can be searched for.
        console.width = max(
            console.width, console.measure(table, options=console.options.update(max_width=100_000)).maximum
        )
    console.print(table)


def or_dash(number: int | None) -> str:
    """Return a number as text, and a dash for none."""
    return "-" if number is None else str(number)


def _time(time_ms: int | None) -> str:
    return "-" if time_ms is None else timestamp_text(time_ms)
