"""Recovery of a query: its next epoch, from the logs of its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.checkpoint import CommitLog, OffsetSeqLog
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from pyspark_kafka.checkpoint import CheckpointFiles, OffsetSeq
    from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles


@dataclass(frozen=True, slots=True)
class UnfinishedEpoch:
    """An epoch that was to be committed when the driver died; it is unknown whether the sink has it.

    Attributes:
        epoch: its number.
        messages: the JSON of the commit messages of its lanes.
    """

    epoch: int
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recovered:
    """The next epoch of a query, and its start.

    Attributes:
        next_epoch: the number of the first epoch of this run.
        start: the JSON of the offset at which it begins; None for a new query.
        unfinished: the epoch to commit first; None if there is none. `next_epoch` and `start` are those after it.
    """

    next_epoch: int
    start: str | None
    unfinished: UnfinishedEpoch | None = None


# The start that was replaced may commit its last epoch, and begin none after it.
_LOOKS = 3


def recover(files: CheckpointFiles, epochs: EpochFiles) -> Recovered:
    """Return the point where a checkpoint's query continues, whether micro-batches or epochs wrote it last.

    Runs on: driver, before a run; reads at most two files of each log. If they contradict one another, it looks again:
    the start that was replaced may write its last epoch between two files that are read.

    Raises:
        CheckpointError: the logs contradict one another, or cannot be read; or a micro-batch has begun and has not been
            committed: only a micro-batch query can run it again with the same end.
    """
    reason = ""
    for look in range(1, _LOOKS + 1):
        try:
            return _recovered(files, epochs)
        except CheckpointError as error:
            if look == _LOOKS or str(error) == reason:
                raise
            reason = str(error)
    raise AssertionError("the last look returns or raises")


def _recovered(files: CheckpointFiles, epochs: EpochFiles) -> Recovered:
    offsets, commits = OffsetSeqLog(files), CommitLog(files)
    if not files.list("offsets") and not files.list("commits"):
        return Recovered(0, None)
    last_commit = commits.latest()
    committed = -1 if last_commit is None else last_commit.batch_id
    last_begun = offsets.latest()
    if last_begun is None or last_begun.batch_id < committed:
        raise _contradiction(files, f"commits/{committed} has no offsets/{committed}")
    if last_begun.batch_id == committed:
        return Recovered(committed + 1, _offset(last_begun, files))
    if last_begun.batch_id > committed + 1:
        raise _contradiction(
            files, f"epochs {committed + 1} to {last_begun.batch_id} have begun, and none of them is committed"
        )
    end = _offset(last_begun, files)
    messages = epochs.prepared_messages(last_begun.batch_id, end)
    if messages is None:
        raise CheckpointError(
            f"Micro-batch {last_begun.batch_id} of checkpoint {files.shown} has begun and is not committed. A "
            "continuous query cannot run it again with the same end. Nothing was read.",
            condition="CHECKPOINT_UNFINISHED_BATCH",
            hint="Run the micro-batch query once with trigger(availableNow=True); then start this one.",
            parameters={"location": files.shown, "batch_id": last_begun.batch_id},
        )
    return Recovered(last_begun.batch_id + 1, end, UnfinishedEpoch(last_begun.batch_id, tuple(messages)))


def _offset(entry: OffsetSeq, files: CheckpointFiles) -> str:
    if len(entry.offsets) != 1 or entry.offsets[0] is None:
        raise _contradiction(
            files, f"offsets/{entry.batch_id} is of a query with {len(entry.offsets)} sources, or has no offset"
        )
    return entry.offsets[0]


def _contradiction(files: CheckpointFiles, what: str) -> CheckpointError:
    return CheckpointError(
        f"The query cannot continue from the logs of checkpoint {files.shown}: {what}. Nothing was read.",
        condition="CHECKPOINT_LOG_INVALID",
        hint="Restore the checkpoint from a copy, or start the query with a new checkpointLocation.",
        parameters={"location": files.shown, "reason": what},
    )
