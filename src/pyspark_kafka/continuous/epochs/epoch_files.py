"""The checkpoint of a continuous query: Spark's logs, and the commit messages of the epoch in between.

| File | Written | Content |
| --- | --- | --- |
| `metadata` | once | the id of the query |
| `continuous/owner` | at each start of the query | the id of that start: one before it that still runs ends |
| `continuous/messages/N-WRITER` | when every lane has reported epoch N | where it ends, and its commit messages |
| `offsets/N` | then | where epoch N ends, and the name of its messages |
| `continuous/versions/N` | when the sink has committed epoch N, if functions keep state | the versions of all states |
| `commits/N` | when the sink has committed epoch N | nothing that a reader needs |

A driver that dies after `offsets/N` leaves an epoch that the sink may or may not have. The messages let the next driver
commit it again, as it was: a sink whose `commit` is idempotent by epoch then has it once.

Of several drivers that write epoch N, the creator of `offsets/N` decides it: a file is created once
(`CheckpointFiles.check_decides`). The messages of the others have names that nobody reads.
"""

from __future__ import annotations

import json
import logging
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark_kafka.checkpoint import OffsetSeqLog
from pyspark_kafka.checkpoint.continuous_files import (
    MESSAGES,
    OWNER,
    VERSIONS,
    WRITER,
    PreparedEpoch,
    epoch_of_messages,
    messages_name,
    owner_bytes,
    read_owner,
)
from pyspark_kafka.checkpoint.files import target_of_temporary
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.checkpoint import CheckpointFiles


_LOG = logging.getLogger(__name__)


class EpochFiles:
    """Writes the epochs of one query to its checkpoint, in the layout of Spark's `ContinuousExecution`.

    Runs on: driver, used by one thread at a time; every method blocks on the file system.

    Args:
        files: the checkpoint.
        kept: how many committed epochs stay, for a person who wants to go back; Spark's
            `spark.sql.streaming.minBatchesToRetain`.

    Source: Spark `OffsetSeqLog`, `CommitLog`, `StreamMetadata`.
    """

    def __init__(self, files: CheckpointFiles, *, kept: int = 100) -> None:
        if kept < 2:
            raise ValueError("at least two epochs must stay: the last, and the one before it")
        self._files = files
        self._kept = kept
        self._purged_below = 0
        # The id of this start; None if it has not taken the checkpoint over.
        self._owner: str | None = None
        self._swept = False
        # The message files of uncommitted epochs.
        self._messages: set[str] = set()

    def query_id(self) -> str:
        """Return the id of the query; a new checkpoint gets one.

        Raises:
            CheckpointError: the file cannot be read or written, or is malformed.
        """
        known = self._files.read("metadata")
        if known is None:
            made = str(uuid.uuid4())
            if self._files.create("metadata", json.dumps({"id": made}, separators=(",", ":")).encode()):
                return made
            known = self._files.read("metadata") or b""
        try:
            return str(uuid.UUID(json.loads(known)["id"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._malformed("metadata", f"it has no id of a query ({error!r})") from error

    def take_over(self, run_id: str) -> None:
        """Make a start of the query the owner of the checkpoint: the one before, if it still runs, ends.

        Args:
            run_id: of this start alone.

        Raises:
            CheckpointError: the file cannot be written.
        """
        self._files.replace(OWNER, owner_bytes(run_id))
        self._owner = run_id

    def check_owner(self) -> None:
        """Raise if another start of the query has taken the checkpoint over, or if the checkpoint is gone.

        Without the check for the file a query whose file system is unmounted would begin another checkpoint, in the
        empty directory below.

        Raises:
            CheckpointError: another start has; or the file is not there (condition CHECKPOINT_GONE), or cannot be read.
        """
        if self._owner is None:
            return
        data = self._files.read(OWNER)
        if data is None:
            raise CheckpointError(
                f"{OWNER} of checkpoint {self._files.shown}, which this start of the query has written, is gone. "
                "Nothing was written there; uncommitted rows will be read again.",
                condition="CHECKPOINT_GONE",
                retriable=True,
                hint="Check that the file system of the checkpoint is mounted. If the checkpoint was removed, restore "
                "it from a copy, or start the query with a new checkpointLocation.",
                parameters={"location": self._files.shown, "name": OWNER},
            )
        owner = read_owner(data)
        if owner is not None and owner != self._owner:
            raise CheckpointError(
                f"Checkpoint {self._files.shown} was taken over by another start of the query, whose runId is {owner}, "
                "while this one ran. This one ends; what it has not committed is read by the other one.",
                condition="CHECKPOINT_CHANGED",
                hint="Make sure that only one query uses this checkpoint.",
                parameters={"location": self._files.shown, "owner": owner},
            )

    def _owner_now(self) -> str | None:
        return read_owner(self._files.read(OWNER))

    def prepare(self, epoch: int, offset: str, messages: Sequence[str], now_ms: int, state: str = "") -> None:
        """Write down what is about to be committed: durable when it returns.

        Args:
            epoch: its number.
            offset: the JSON of where it ends.
            messages: the JSON of the commit messages of its lanes.
            now_ms: the time.
            state: the versions of states after it, as text; empty if functions keep none.

        Raises:
            CheckpointError: the epoch is there already, so another query writes this checkpoint, or has taken it over;
                or files cannot be written.
        """
        # A source may break the lines of its JSON; a line of this file is an offset. No text in JSON has a line break.
        offset = offset.replace("\n", " ")
        writer = uuid.uuid4().hex
        name = messages_name(epoch, writer)
        prepared = PreparedEpoch(offset, tuple(messages), state).to_bytes()
        metadata = {"batchWatermarkMs": 0, "batchTimestampMs": now_ms, "conf": {}, WRITER: writer}
        self._messages.add(name)
        try:
            # Messages first: offsets without messages belong to a micro-batch.
            self._files.side_by_side(self.check_owner, lambda: self._files.replace(name, prepared))
            self._create(f"offsets/{epoch}", f"v1\n{json.dumps(metadata, separators=(',', ':'))}\n{offset}")
        except CheckpointError as error:
            if error.condition == "CHECKPOINT_CHANGED":
                # Nobody reads them. If they cannot be removed now, the next start does so.
                with suppress(CheckpointError):
                    self._files.delete(name)
            raise

    def prepared_messages(self, epoch: int, offset: str) -> list[str] | None:
        """Return the messages of an epoch that was prepared with this end; None if none are kept.

        Messages with another end belong to a driver that died before `offsets/N`: another query has written that
        file since.

        Raises:
            CheckpointError: the file cannot be read, or is malformed.
        """
        prepared = self._prepared(epoch)
        return list(prepared.messages) if prepared is not None and prepared.offset == offset else None

    def prepared_state(self, epoch: int) -> str:
        """Return the state versions of a prepared epoch; empty if it has none.

        Raises:
            CheckpointError: the file cannot be read, or is malformed.
        """
        prepared = self._prepared(epoch)
        return "" if prepared is None else prepared.state

    def _prepared(self, epoch: int) -> PreparedEpoch | None:
        begun = OffsetSeqLog(self._files).get(epoch)
        name = messages_name(epoch, None if begun is None else begun.metadata.get(WRITER))
        data = self._files.read(name)
        self._messages.add(name)
        try:
            return None if data is None else PreparedEpoch.from_bytes(data)
        except ValueError as error:
            raise self._malformed(name, str(error)) from error

    def state_after(self, epoch: int) -> str | None:
        """Return the versions of states after a committed epoch, as text; None if it has none.

        Raises:
            CheckpointError: the file cannot be read.
        """
        data = self._files.read(f"{VERSIONS}/{epoch}")
        return None if data is None else data.decode(errors="replace")

    def write_commit(self, epoch: int, state: str = "") -> None:
        """Write down that the sink has committed an epoch, and remove what is older than `kept` epochs.

        What cannot be removed now is removed with a later epoch: this one is committed nevertheless.

        Args:
            epoch: its number.
            state: as for `prepare`.

        Raises:
            CheckpointError: the epoch is committed already, so another query writes this checkpoint; or the file cannot
                be written.
        """
        if state:
            # Here, and not when it is prepared: only the query that has written offsets/N comes here.
            self._files.replace(f"{VERSIONS}/{epoch}", state.encode())
        self._create(f"commits/{epoch}", 'v1\n{"nextBatchWatermarkMs":0}')
        try:
            self._remove_old(epoch, state)
        except CheckpointError as error:
            if not error.retriable:
                raise
            _LOG.warning("Old files are left for a later epoch: %s", error)
            # The next one lists what there is.
            self._swept, self._purged_below = False, 0

    def _remove_old(self, epoch: int, state: str) -> None:
        # Whatever is left of epochs up to this one is of no use: of drivers that died, or that others have replaced.
        old = list(self._messages)
        if not self._swept:
            epochs = {name: epoch_of_messages(target) for name, target in self._names(MESSAGES)}
            old = [f"{MESSAGES}/{name}" for name, of in epochs.items() if of is not None and of <= epoch]
        directories = ("offsets", "commits", VERSIONS) if state else ("offsets", "commits")
        self._files.delete(*old, *self._outdated(epoch - self._kept + 1, directories))
        self._swept = True
        self._messages.clear()

    def _create(self, name: str, text: str) -> None:
        if not self._files.create(name, text.encode()):
            raise self._changed(name)

    def _changed(self, name: str) -> CheckpointError:
        # The owner continues with what the one before it has written at last.
        is_owner = self._owner is not None and self._owner_now() == self._owner
        outcome = "It continues from there" if is_owner else "This one ends"
        return CheckpointError(
            f"{name} of checkpoint {self._files.shown} was written by another query while this one ran. {outcome}; "
            "its last epoch may be in the sink, and will be read again from here.",
            condition="CHECKPOINT_CHANGED",
            retriable=is_owner,
            hint="Make sure that only one query uses this checkpoint, and start the query again.",
            parameters={"location": self._files.shown, "name": name},
        )

    def _outdated(self, below: int, directories: Sequence[str]) -> list[str]:
        """Return the files of epochs below one."""
        # The first time, whatever an earlier run left; then one epoch at a time.
        if below <= 0:
            return []
        found = []
        for directory in directories:
            if self._purged_below:
                names = list(map(str, range(self._purged_below, below)))
            else:
                names = [name for name, of in self._names(directory) if of.isdecimal() and int(of) < below]
            found += [f"{directory}/{name}" for name in names]
        self._purged_below = below
        return found

    def _names(self, directory: str) -> list[tuple[str, str]]:
        """Return the names of files, each with its own name, or the name that a half-written file was to get."""
        names = self._files.scan(directory)
        left = [(name, target) for name in names.hidden if (target := target_of_temporary(name)) is not None]
        return [*((name, name) for name in names.files), *left]

    def _malformed(self, name: str, reason: str) -> CheckpointError:
        return CheckpointError(
            f"{name} of checkpoint {self._files.shown} is malformed: {reason}.",
            condition="CHECKPOINT_LOG_INVALID",
            hint="Restore the checkpoint from a copy, or start the query with a new checkpointLocation.",
            parameters={"location": self._files.shown, "name": name, "reason": reason},
        )
