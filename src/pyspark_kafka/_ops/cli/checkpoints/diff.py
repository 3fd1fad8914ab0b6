"""The work of `pyspark-kafka checkpoint diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._ops.cli.checkpoints.show import SHOWN_PARTITIONS, or_dash, print_problems, say_left_out
from pyspark_kafka._ops.cli.common.outcome import ExitStatus
from pyspark_kafka._ops.cli.common.output import number_columns, print_json, print_rows, say
from pyspark_kafka._ops.operations.checkpoints.differences import compare_checkpoints
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint

if TYPE_CHECKING:
    from pyspark_kafka._ops.operations.checkpoints.differences import PositionDifference


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
        print_json(
            {
                "same": found.are_same,
                "differences": list(found.sentences),
                "positions": None if found.positions is None else [_to_json(each) for each in found.positions],
                "problems": list(found.problems),
            }
        )
        return status
    say(*found.sentences, found.verdict)
    positions = found.positions or ()
    shown = len(positions) if every else SHOWN_PARTITIONS
    rows = [
        (
            each.source,
            each.topic_partition.topic,
            str(each.topic_partition.partition),
            or_dash(each.first),
            or_dash(each.second),
            or_dash(each.ahead),
        )
        for each in positions[:shown]
    ]
    if rows:
        numbers = number_columns("partition", "first", "second", "second is ahead by")
        print_rows(("source", "topic", *numbers), rows)
    say_left_out(len(positions) - shown)
    print_problems(found.problems)
    return status


def _to_json(each: PositionDifference) -> dict[str, Any]:
    return {
        "source": each.source,
        "topic": each.topic_partition.topic,
        "partition": each.topic_partition.partition,
        "first": each.first,
        "second": each.second,
        "ahead": each.ahead,
    }
