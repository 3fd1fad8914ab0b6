"""The commit of each epoch: durable, so that a repeated commit is recognized."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, unique

from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.errors import CheckpointError

_DIRECTORY = "commits-of-sink"
_VERSION = 1


@unique
class CommitState(Enum):
    """The progress of an epoch's commit."""

    PREPARED = "prepared"
    COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """The log entry of one epoch.

    Attributes:
        epoch_id: the number of the micro-batch.
        commit_id: identifies what was to be committed.
        state: `PREPARED` if a commit began and its end is unknown.
    """

    epoch_id: int
    commit_id: str
    state: CommitState


class EpochLog(ABC):
    """The log of epoch commits.

    Runs on: driver; must pickle; methods may block. One writer at a time: whoever runs the query.
    """

    @abstractmethod
    def find(self, epoch_id: int) -> EpochRecord | None:
        """Return the record of an epoch; None if there is none."""

    @abstractmethod
    def write(self, record: EpochRecord) -> None:
        """Write an epoch's record in place of a previous one; durable when it returns."""

    @abstractmethod
    def oldest(self) -> int | None:
        """Return the lowest epoch that is kept; None if the log is empty."""

    @abstractmethod
    def forget_before(self, epoch_id: int) -> None:
        """Remove the records of lower epochs."""


@dataclass(frozen=True, slots=True)
class FileEpochLog(EpochLog):
    """A commit log as files below a location, such as the checkpoint of the query: one small file for each epoch.

    Attributes:
        files: the location; the log uses the directory `commits-of-sink` in it.
    """

    files: CheckpointFiles

    @classmethod
    def at(cls, location: str) -> FileEpochLog:
        """Return the log at a location: a local path, or a URI that `pyarrow.fs` knows."""
        return cls(CheckpointFiles(location))

    def find(self, epoch_id: int) -> EpochRecord | None:
        """Return the record of an epoch; None if there is none.

        Raises:
            CheckpointError: the file cannot be read, or was cut short.
        """
        name = f"{_DIRECTORY}/{epoch_id}"
        data = self.files.read(name)
        if data is None:
            return None
        try:
            parsed = json.loads(data)
            if parsed["v"] != _VERSION or type(parsed["id"]) is not str:
                raise ValueError("unknown version or form")  # noqa: TRY301 - one place says what is wrong
            return EpochRecord(epoch_id, parsed["id"], CommitState(parsed["state"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CheckpointError(
                f"The commit record {name} below {self.files.shown} is not readable: {error}. Nothing was committed.",
                condition="COMMIT_RECORD_INVALID",
                hint="Check whether epoch "
                f"{epoch_id} is in the target; then remove the file if it is not, or restore it from a copy.",
                parameters={"location": self.files.shown, "epoch": epoch_id},
            ) from error

    def write(self, record: EpochRecord) -> None:
        """Write the record of an epoch: beside its place, flushed, then renamed."""
        text = json.dumps({"v": _VERSION, "id": record.commit_id, "state": record.state.value})
        self.files.replace(f"{_DIRECTORY}/{record.epoch_id}", text.encode())

    def oldest(self) -> int | None:
        """Return the lowest epoch that is kept; None if the log is empty."""
        return min(self._epochs(), default=None)

    def forget_before(self, epoch_id: int) -> None:
        """Remove the files of lower epochs."""
        for each in self._epochs():
            if each < epoch_id:
                self.files.delete(f"{_DIRECTORY}/{each}")

    def _epochs(self) -> list[int]:
        # What is not a number is not ours: it is neither read nor removed.
        return [int(name) for name in self.files.list(_DIRECTORY) if name.isdecimal()]
