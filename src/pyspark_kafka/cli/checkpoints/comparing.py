"""The work of `pyspark-kafka checkpoint diff`. Layer: cli."""

from __future__ import annotations

import json

import typer
from rich.console import Console

from pyspark_kafka.cli.checkpoints.telling import or_dash, print_problems, print_table
from pyspark_kafka.cli.common.outcome import ExitStatus
from pyspark_kafka.errors import printable
from pyspark_kafka.operations.checkpoints.differences import compare_checkpoints
from pyspark_kafka.operations.checkpoints.reading import read_checkpoint

_SHOWN_PARTITIONS = 50


def diff_checkpoints(first: str, second: str, *, every: bool, as_json: bool) -> ExitStatus:
    """Print what differs between two checkpoints.

    Raises:
        CheckpointError: one of them is not there, or cannot be listed.
    """
    found = compare_checkpoints(read_checkpoint(first), read_checkpoint(second))
    status = ExitStatus.WELL if found.are_same else ExitStatus.FINDING
    if found.problems:
        status = ExitStatus.INCOMPLETE
    if as_json:
        told = {
            "same": found.are_same,
            "differences": list(found.sentences),
            "positions": None
            if found.positions is None
            else [
                {
                    "source": each.source,
                    "topic": each.topic_partition.topic,
                    "partition": each.topic_partition.partition,
                    "first": each.first,
                    "second": each.second,
                    "ahead": each.ahead,
                }
                for each in found.positions
            ],
            "problems": list(found.problems),
        }
        typer.echo(json.dumps(told, indent=2))
        return status
    console = Console(soft_wrap=True)
    for sentence in (*found.sentences, found.verdict):
        console.print(printable(sentence), markup=False, highlight=False)
    positions = found.positions or ()
    shown = positions if every else positions[:_SHOWN_PARTITIONS]
    print_table(
        Console(),
        ("source", "topic", "partition", "first", "second", "second is ahead by"),
        [
            (
                each.source,
                each.topic_partition.topic,
                str(each.topic_partition.partition),
                or_dash(each.first),
                or_dash(each.second),
                or_dash(each.ahead),
            )
            for each in shown
        ],
    )
    if len(positions) > len(shown):
        console.print(
            f"{len(positions) - len(shown):,} more partitions; --all shows them.", markup=False, highlight=False
        )
    print_problems(found.problems)
    return status
