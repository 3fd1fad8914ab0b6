"""The work of `pyspark-kafka checkpoint show` and `explain`.

The keys of JSON are public. Times in it are milliseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.offsets import timestamp_text
from pyspark_kafka._ops.cli.common.heartbeat import progress
from pyspark_kafka._ops.cli.common.outcome import ExitStatus
from pyspark_kafka._ops.cli.common.output import number_columns, print_json, print_rows, say, warn
from pyspark_kafka._ops.operations.checkpoints.describe import (
    describe_batch,
    describe_query,
    describe_restart,
    describe_standing,
)
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.summary import list_directories, read_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark_kafka._ops.cli.common.output import TableColumn
    from pyspark_kafka._ops.operations.checkpoints.summary import BatchSummary, CheckpointSummary, SourceSummary

SHOWN_PARTITIONS = 50
"""The number of partitions that a table has without --all."""


def explain_checkpoint(location: str, max_batches: int | None, *, as_json: bool) -> ExitStatus:
    """Print an account of a checkpoint in words.

    Raises:
        CheckpointError: there is no checkpoint, or it cannot be listed.
    """
    account = _account(location, max_batches)
    if as_json:
        print_json(summary_to_json(account))
        return _status(account)
    for paragraph in (describe_query(account), describe_standing(account), describe_restart(account)):
        say(" ".join(paragraph))
    if account.batches:
        say("")
    for batch in account.batches:
        say(describe_batch(batch), style=None if batch.finished else "yellow")
    print_problems(account.problems)
    return _status(account)


def show_checkpoint(location: str, max_batches: int | None, *, as_json: bool) -> ExitStatus:
    """Print a checkpoint as tables.

    Raises:
        CheckpointError: there is no checkpoint, or it cannot be listed.
    """
    account = _account(location, max_batches)
    directories, problems = list_directories(read_checkpoint(location))
    account = replace(account, problems=tuple(dict.fromkeys([*account.problems, *problems])))
    if as_json:
        print_json(summary_to_json(account) | {"directories": [asdict(each) for each in directories]})
        return _status(account)
    print_rows(("property", "value"), list(_properties(account)))
    _print_section(
        ("directory", *number_columns("files", "checksums", "temporary", "directories")),
        [
            (each.directory, f"{each.files:,}", f"{each.checksums:,}", f"{each.temporary:,}", f"{each.directories:,}")
            for each in directories
        ],
    )
    positions = _positions(account)
    shown = len(positions) if max_batches is None else SHOWN_PARTITIONS
    _print_section(
        ("source", "topic", *number_columns("partition", "position", "end of unfinished")), positions[:shown]
    )
    say_left_out(len(positions) - shown)
    _print_section(
        (*number_columns("batch"), "planned", *number_columns("took", "records at most"), "watermark"),
        [
            (
                str(batch.batch_id),
                _time(batch.planned_at_ms),
                _duration(batch),
                "-" if batch.offsets is None else f"{batch.offsets:,}",
                _time(batch.watermark_ms),
            )
            for batch in account.batches
        ],
    )
    print_problems(account.problems)
    return _status(account)


def print_problems(problems: Sequence[str]) -> None:
    """Print what could not be read, on standard error."""
    warn(*(f"Not read: {problem}" for problem in problems), style="red")


def say_left_out(count: int) -> None:
    """Print how many partitions are not in a table, if any."""
    if count > 0:
        say(f"{count:,} more partitions; --all shows them.")


def or_dash(number: int | None) -> str:
    """Return a number as text, and a dash for none."""
    return "-" if number is None else str(number)


def summary_to_json(account: CheckpointSummary) -> dict[str, Any]:
    """Return an account of a checkpoint as values for JSON."""
    return {
        "location": account.location,
        "query_id": account.query_id,
        "kind": None if account.kind is None else account.kind.name.lower(),
        "batches_begun": account.begun,
        "batches_finished": account.finished,
        "first_batch": account.first,
        "last_begun": account.last_begun,
        "last_finished": account.last_finished,
        "unfinished": account.unfinished,
        "sources": [_source_to_json(source) for source in account.sources],
        "states": [asdict(state) for state in account.states],
        "prepared_epochs": list(account.prepared_epochs),
        "owner": account.owner or None,
        "batches": [_batch_to_json(batch) for batch in account.batches],
        "problems": list(account.problems),
    }


def _account(location: str, max_batches: int | None) -> CheckpointSummary:
    checkpoint = read_checkpoint(location)
    with progress("Reading the batches") as step:
        return read_summary(checkpoint, max_batches=max_batches, report=step.update)


def _status(account: CheckpointSummary) -> ExitStatus:
    return ExitStatus.INCOMPLETE if account.problems else ExitStatus.WELL


def _print_section(names: Sequence[TableColumn | str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        say("")
        print_rows(names, rows)


def _properties(account: CheckpointSummary) -> Iterable[tuple[str, str]]:
    yield "location", account.location
    yield "query id", account.query_id or "-"
    yield "written by", "cannot be read" if account.kind is None else account.kind.value
    yield "batches begun", f"{account.begun:,} kept, the last one {or_dash(account.last_begun)}"
    yield "batches finished", f"{account.finished:,} kept, the last one {or_dash(account.last_finished)}"
    for state in account.states:
        yield f"state {state.directory}", f"{state.name or '-'}, {state.partitions} parts"
    if account.owner:
        yield "owner", account.owner
    if account.transactions:
        yield "transactions", account.transactions


def _positions(account: CheckpointSummary) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for source in account.sources:
        position = {} if source.position is None else source.position.partitions
        end = {} if source.end is None else source.end.partitions
        if source.other is not None:
            rows.append((source.source, "not Kafka's", "", source.other, ""))
        for each in sorted({*position, *end}):
            row = source.source, each.topic, str(each.partition), or_dash(position.get(each)), or_dash(end.get(each))
            rows.append(row)
    return rows


def _duration(batch: BatchSummary) -> str:
    if not batch.finished:
        return "not finished"
    if batch.moved:
        return "moved here"
    return "-" if batch.took_ms is None else f"{batch.took_ms / 1000:.1f} s"


def _time(time_ms: int | None) -> str:
    return "-" if time_ms is None else timestamp_text(time_ms)


def _source_to_json(source: SourceSummary) -> dict[str, Any]:
    return {
        "source": source.source,
        "is_kafka": source.other is None,
        "position": None if source.position is None else source.position.to_dict(),
        "end_of_unfinished": None if source.end is None else source.end.to_dict(),
        "other_offset": source.other,
        "topic_ids": dict(source.topic_ids),
    }


def _batch_to_json(batch: BatchSummary) -> dict[str, Any]:
    return {
        "batch": batch.batch_id,
        "finished": batch.finished,
        "planned_at_ms": batch.planned_at_ms,
        "finished_at_ms": batch.finished_at_ms,
        "took_ms": batch.took_ms,
        "watermark_ms": batch.watermark_ms,
        "offsets": batch.offsets,
        "offsets_by_topic": None if batch.offsets_by_topic is None else dict(batch.offsets_by_topic),
        "new_partitions": batch.new_partitions,
        "moved": batch.moved,
        "problem": batch.problem or None,
    }
