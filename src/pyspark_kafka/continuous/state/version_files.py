"""Versions of states in the checkpoint: the changes of each epoch are written, and at times all of a state.

The files, and how they are read: `pyspark_kafka.checkpoint.state_files`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark_kafka.checkpoint.files import target_of_temporary
from pyspark_kafka.checkpoint.state_files import VersionReader, encoded_changes
from pyspark_kafka.checkpoint.state_names import STATES, StateVersion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.checkpoint.state_files import Changes

# Files that a checkpoint of the last 100 epochs can need stay, and files of epochs that are still open.
EPOCHS_KEPT = 110


@dataclass(frozen=True, slots=True)
class PendingVersions:
    """The versions that an epoch has made, and their files that are not written yet.

    Attributes:
        text: the versions by directory as JSON, for the report; empty if there are none.
        files: where they are written.
        deltas: directory, stem, part and content.
    """

    text: str
    files: VersionFiles
    deltas: Sequence[tuple[str, str, int, bytes]]

    def write(self) -> None:
        """Write the files, durably. From any thread, once.

        Raises:
            CheckpointError: a file cannot be written.
        """
        self.files.write_deltas(self.deltas)


class VersionFiles(VersionReader):
    """Writes and removes the versions of states, and reads them.

    Runs on: executor, any thread; every method blocks on the file system. A file is written once, and never changed.

    Args:
        files: the checkpoint; every executor and the driver must reach it under this name.

    Raises:
        CheckpointError: from every method: a file cannot be read or written.
    """

    def write_delta(self, directory: str, stem: str, part: int, data: bytes) -> None:
        """Write a part of an epoch's changes, as `delta_bytes` returns them, durably."""
        self._files.replace(_name(directory, f"{stem}.{part}.delta"), data)

    def write_deltas(self, deltas: Sequence[tuple[str, str, int, bytes]]) -> None:
        """Write parts of changes, durably, several at a time."""
        self._files.side_by_side(*(partial(self.write_delta, *each) for each in deltas), durable=True)

    def write_whole_part(self, directory: str, version: StateVersion, part: int, changes: Changes) -> int:
        """Write a part of the whole state, durably, and return its size in bytes."""
        data = encoded_changes(changes, {})
        self._files.replace(_name(directory, f"{version.stem}.{part}.all"), data)
        return len(data)

    def end_whole(self, directory: str, version: StateVersion, parts: int) -> None:
        """Record that every part of the whole state is written."""
        self._files.replace(_name(directory, f"{version.stem}.whole"), json.dumps({"parts": parts}).encode())

    def remove_before(self, directory: str, epoch: int) -> None:
        """Remove the version files of earlier epochs, committed or not, written or half written."""
        found = self._files.scan(f"{STATES}/{directory}")
        old = [name for name in found.files if _is_before(name, epoch)]
        old += [name for name in found.hidden if _is_before(target_of_temporary(name) or "", epoch)]
        self.remove(directory, old)

    def remove(self, directory: str, names: Sequence[str]) -> None:
        """Remove files; a missing file is not an error."""
        self._files.delete(*(_name(directory, name) for name in names))


def delta_bytes(changes: Changes, previous: StateVersion | None) -> bytes:
    """Return a part of an epoch's changes as the content of a file; they follow a version."""
    return encoded_changes(changes, {"previous": "" if previous is None else previous.text})


def _is_before(name: str, epoch: int) -> bool:
    number = name.partition("-")[0]
    return number.isdecimal() and int(number) < epoch


def _name(directory: str, name: str) -> str:
    return f"{STATES}/{directory}/{name}"
