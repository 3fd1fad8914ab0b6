"""A streaming write whose epochs are committed once, however often the engine commits."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.connector import StreamingWrite
from pyspark_kafka.errors import CommitConflictError, ContractError
from pyspark_kafka.toolkit.epoch_log import CommitState, EpochRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.connector import WriterCommitMessage
    from pyspark_kafka.toolkit.epoch_log import EpochLog

KEPT_EPOCHS = 100


class IdempotentStreamingWrite(StreamingWrite):
    """Commits each epoch once: the same commit again is a no-op, another one for the same epoch is an error.

    A subclass implements `commit_once` and the methods of `StreamingWrite` that remain. The life of a commit:

    1. The commit id is computed from the messages (`commit_id`).
    2. The log has it as committed: nothing is done. It has another id for this epoch: `CommitConflictError`.
    3. The log gets it as prepared, `commit_once` runs, the log gets it as committed.

    A driver that dies within step 3 leaves "prepared": the next one calls `commit_once` with `in_doubt=True`, which
    must find out whether the target has the commit. A target with transactions keeps the log in its own transaction
    instead (a `EpochLog` over its tables, whose `write` joins the transaction of `commit_once`): then nothing is ever
    in doubt.

    Runs on: driver; pickled with its log.

    Args:
        log: where commits are written down; survives the driver.
        kept_epochs: the number of epochs that the log keeps. Spark repeats the last one at most.
    """

    def __init__(self, log: EpochLog, *, kept_epochs: int = KEPT_EPOCHS) -> None:
        if kept_epochs < 2:
            raise ValueError("kept_epochs must be at least 2: an engine repeats the last epoch")
        self._log = log
        self._kept_epochs = kept_epochs

    @abstractmethod
    def commit_once(
        self, epoch_id: int, commit_id: str, messages: Sequence[WriterCommitMessage], *, in_doubt: bool
    ) -> None:
        """Make the rows of an epoch visible.

        Args:
            epoch_id: the number of the micro-batch.
            commit_id: identifies the commit; a target can keep it to find its own commits.
            messages: one from each task.
            in_doubt: whether an earlier call for the same commit may have ended: look before you commit again.
        """

    def commit_id(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> str:
        """Return what identifies the commit: equal for the same rows, for all attempts of a task.

        The default is a hash over the fields of the messages, which must be dataclasses of plain data, in any order of
        the tasks. Override it if messages differ between attempts (names of temporary files, times).

        Raises:
            ContractError: a message is not a dataclass of plain data.
        """
        try:
            fields = sorted(json.dumps(_fields(message), sort_keys=True) for message in messages)
        except TypeError as error:
            raise ContractError.violated(
                self,
                "commit_id",
                f"needs messages that are dataclasses of numbers and text: {error}. Nothing was committed.",
                hint="Make the message a dataclass of plain data, or override commit_id().",
            ) from error
        return hashlib.sha256("\n".join([str(epoch_id), *fields]).encode()).hexdigest()

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        """Commit an epoch, unless it is committed.

        Raises:
            CommitConflictError: the epoch has another commit, or is older than what the log keeps.
            CheckpointError: the log cannot be read or written.
        """
        commit_id = self.commit_id(epoch_id, messages)
        known = self._log.find(epoch_id)
        if known is None:
            self._check_not_forgotten(epoch_id)
        elif known.commit_id != commit_id:
            raise CommitConflictError(
                f"Epoch {epoch_id} is {known.state.value} as {known.commit_id[:16]}… and is now to be committed "
                f"as {commit_id[:16]}…: its rows are others than before. Nothing was committed.",
                condition="COMMIT_CONFLICT",
                hint="Check that the source returns the same rows for the same offsets, and that no second query "
                "writes with this commit log.",
                parameters={"epoch": epoch_id, "known": known.commit_id, "found": commit_id},
            )
        elif known.state is CommitState.COMMITTED:
            return
        if known is None:
            self._log.write(EpochRecord(epoch_id, commit_id, CommitState.PREPARED))
        self.commit_once(epoch_id, commit_id, messages, in_doubt=known is not None)
        self._log.write(EpochRecord(epoch_id, commit_id, CommitState.COMMITTED))
        self._log.forget_before(epoch_id - self._kept_epochs + 1)

    def _check_not_forgotten(self, epoch_id: int) -> None:
        oldest = self._log.oldest()
        if oldest is not None and epoch_id < oldest:
            raise CommitConflictError(
                f"Epoch {epoch_id} is older than the oldest that the commit log keeps ({oldest}), so it is "
                "unknown whether it is committed. Nothing was committed.",
                condition="COMMIT_FORGOTTEN",
                hint="Use a new commit log for a checkpoint that is new or was rewound.",
                parameters={"epoch": epoch_id, "oldest": oldest},
            )


def _fields(message: Any) -> object:
    if not is_dataclass(message) or isinstance(message, type):
        raise TypeError(f"{type(message).__name__} is not a dataclass")
    return [type(message).__qualname__, asdict(message)]
