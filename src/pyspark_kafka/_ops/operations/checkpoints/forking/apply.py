"""Writes the files of a plan for a new checkpoint: it is complete, or each start of a query refuses it.

The file `metadata` is the first and the last one. As long as it marks the checkpoint as unfinished, it has no id
of a query: Spark, continuous queries and exactly-once sinks end with an error that names the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._ops.operations.checkpoints.forking.plan import METADATA
from pyspark_kafka._ops.operations.checkpoints.unfinished import read_unfinished, unfinished_note
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._ops.operations.checkpoints.forking.plan import ForkPlan
    from pyspark_kafka.checkpoint import CheckpointFiles


def shared_reason(checkpoint: CheckpointFiles, other: CheckpointFiles) -> str:
    """Return the reason why another location cannot be used with a checkpoint; empty if they share no files."""
    overlap = checkpoint.overlap(other)
    if overlap == "itself":
        return "it is the checkpoint itself"
    return "one of the two is within the other" if overlap else ""


def check_target(source: CheckpointFiles, target: CheckpointFiles) -> None:
    """Refuse a target that is not empty, is within the checkpoint, or contains it.

    Raises:
        CheckpointError: condition CHECKPOINT_TARGET_INVALID.
    """
    reason = shared_reason(source, target)
    if not reason:
        names = target.scan()
        there = len(names.files) + len(names.hidden) + len(names.directories)
        unfinished = read_unfinished(target.read(METADATA)) is not None if there else False
        if there:
            reason = "it has the rest of a fork that was not finished" if unfinished else f"it has {there} files"
    if reason:
        raise CheckpointError(
            f"The fork cannot be written to {target.shown}: {reason}. Nothing was written.",
            condition="CHECKPOINT_TARGET_INVALID",
            hint="Name a directory that is empty or does not exist"
            + (", or use `pyspark-kafka checkpoint rewind`." if source.overlap(target) == "itself" else "."),
            parameters={"location": target.shown, "reason": reason},
        )


def apply_fork(
    plan: ForkPlan, source: CheckpointFiles, target: CheckpointFiles, tell: Callable[[str], object] = str
) -> None:
    """Write the new checkpoint.

    Runs on: any program; blocks on the file systems. If it ends early, each start of a query refuses the
    target; the source checkpoint is only read.

    Args:
        plan: the files to write.
        source: the source checkpoint.
        target: the new checkpoint.
        tell: called with each step.

    Raises:
        CheckpointError: the target has files, a file cannot be read or written, or one was removed meanwhile.
    """
    check_target(source, target)
    note = unfinished_note("The fork has not ended: remove this directory, and run the command again.")
    if not target.create(METADATA, note):
        check_target(source, target)
    for number, name in enumerate(plan.copies, 1):
        if number % 100 == 0:
            tell(f"Copying file {number:,} of {len(plan.copies):,}")
        if not target.copy_from(source, name):
            raise CheckpointError(
                f"File {name} of checkpoint {source.shown} was removed while it was copied: the query runs. The fork "
                f"in {target.shown} is not finished.",
                condition="CHECKPOINT_IN_USE",
                hint="Remove that directory; stop the query, and run the command again.",
                parameters={"location": source.shown, "name": name},
            )
    for name, data in {**plan.writes, **plan.creates}.items():
        target.replace(name, data)
    target.replace(METADATA, plan.metadata)
