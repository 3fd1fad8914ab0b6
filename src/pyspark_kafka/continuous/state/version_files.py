"""Versions of states as files in the checkpoint: the changes of each epoch, and at times all of a state.

| File below `continuous/state/STEP/KEY GROUP/` | Content |
| --- | --- |
| `EPOCH-WRITER.PART.delta` | changes of an epoch, and in part 0 the name of the version before it |
| `EPOCH-WRITER.PART.all` | a part of the whole state as it is in that version |
| `EPOCH-WRITER.whole` | how many of these parts there are; written last |

A file begins with four letters and a checksum; an Arrow stream of key and value follows. No value: the key is removed.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.checkpoint.state_names import STATES, StateVersion
from pyspark_kafka.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_kafka.checkpoint import CheckpointFiles

    Changes = Sequence[tuple[bytes, bytes | None]]

# Files that a checkpoint of the last 100 epochs can need stay, and files of epochs that are still open.
EPOCHS_KEPT = 110
_HEAD = struct.Struct(">4sI")
_MAGIC = b"PKS1"
_SCHEMA = pa.schema([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())])
# A chain of more versions is not one that this program has written.
_MAX_CHAIN_LENGTH = 100_000


@dataclass(frozen=True, slots=True)
class VersionChain:
    """What makes up a version.

    Attributes:
        whole: the version of which all of the state is there; None if the chain begins with an empty state.
        whole_parts: the number of its files.
        deltas: the versions after it, oldest first.
    """

    whole: StateVersion | None
    whole_parts: int
    deltas: tuple[StateVersion, ...]


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


class VersionFiles:
    """Writes and reads the versions of states.

    Runs on: executor, any thread; every method blocks on the file system. A file is written once, and never changed.

    Args:
        files: the checkpoint; every executor and the driver must reach it under this name.

    Raises:
        CheckpointError: from every method: a file cannot be read or written.
    """

    def __init__(self, files: CheckpointFiles) -> None:
        self._files = files

    def write_delta(self, directory: str, stem: str, part: int, data: bytes) -> None:
        """Write a part of the changes of an epoch, as `delta_bytes` returns them, durably."""
        self._files.replace(_name(directory, f"{stem}.{part}.delta"), data)

    def write_deltas(self, deltas: Sequence[tuple[str, str, int, bytes]]) -> None:
        """Write parts of changes, durably, several at a time."""
        self._files.side_by_side(*(partial(self.write_delta, *each) for each in deltas), durable=True)

    def write_whole_part(self, directory: str, version: StateVersion, part: int, changes: Changes) -> int:
        """Write a part of the whole state, durably, and return its size in bytes."""
        data = _encoded(changes, {})
        self._files.replace(_name(directory, f"{version.stem}.{part}.all"), data)
        return len(data)

    def end_whole(self, directory: str, version: StateVersion, parts: int) -> None:
        """Note that every part of the whole state is written."""
        self._files.replace(_name(directory, f"{version.stem}.whole"), json.dumps({"parts": parts}).encode())

    def chain(self, directory: str, head: StateVersion) -> VersionChain:
        """Return what makes up a version.

        Raises:
            StateError: a file is missing or damaged.
        """
        names = set(self._files.list(f"{STATES}/{directory}"))
        deltas: list[StateVersion] = []
        version: StateVersion | None = head
        while version is not None and len(deltas) < _MAX_CHAIN_LENGTH:
            if f"{version.stem}.whole" in names:
                parts = self._whole_parts(directory, version)
                return VersionChain(version, parts, tuple(reversed(deltas)))
            deltas.append(version)
            version = self._previous(directory, version)
        return VersionChain(None, 0, tuple(reversed(deltas)))

    def read(self, directory: str, chain: VersionChain) -> Iterator[tuple[bool, Changes, int]]:
        """Return what makes up a version, oldest first: whether it is of the whole state, changes, size of the file.

        Raises:
            StateError: a file is missing or damaged.
        """
        if chain.whole is not None:
            for part in range(chain.whole_parts):
                changes, _, size = self._read(directory, f"{chain.whole.stem}.{part}.all")
                yield True, changes, size
        for version in chain.deltas:
            for part in range(version.parts):
                changes, _, size = self._read(directory, f"{version.stem}.{part}.delta")
                yield False, changes, size

    def remove_before(self, directory: str, epoch: int) -> None:
        """Remove the files of versions of earlier epochs, committed or not."""
        names = self._files.list(f"{STATES}/{directory}")
        numbers = {name: name.partition("-")[0] for name in names}
        old = [name for name, number in numbers.items() if number.isdecimal() and int(number) < epoch]
        self._files.delete(*(_name(directory, name) for name in old))

    def is_there(self, directory: str, version: StateVersion) -> bool:
        """Return whether this process finds the first file of a version."""
        return self._files.read(_name(directory, f"{version.stem}.0.delta")) is not None

    def _whole_parts(self, directory: str, version: StateVersion) -> int:
        name = f"{version.stem}.whole"
        try:
            return int(json.loads(self._files.read(_name(directory, name)) or b"")["parts"])
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
            raise self._damaged(directory, name, str(error)) from error

    def _previous(self, directory: str, version: StateVersion) -> StateVersion | None:
        name = f"{version.stem}.0.delta"
        _, notes, _ = self._read(directory, name)
        try:
            text = notes["previous"]
            return StateVersion.parse(text) if text else None
        except (KeyError, ValueError) as error:
            raise self._damaged(directory, name, str(error)) from error

    def _read(self, directory: str, name: str) -> tuple[Changes, dict[str, str], int]:
        data = self._files.read(_name(directory, name))
        if data is None:
            raise StateError(
                f"File {name} of the state in {STATES}/{directory} of checkpoint {self._files.shown} is missing. "
                "Nothing was read.",
                condition="STATE_VERSION_MISSING",
                hint="Let all executors share the checkpoint's location; if files were removed, restore them, or start "
                "with a new checkpointLocation.",
                parameters={"location": self._files.shown, "name": name},
            )
        try:
            magic, checksum = _HEAD.unpack_from(data)
            body = memoryview(data)[_HEAD.size :]
            if magic != _MAGIC or zlib.crc32(body) != checksum:
                raise ValueError("its checksum is wrong")  # noqa: TRY301 - one place says what is wrong
            with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
                if not reader.schema.equals(_SCHEMA):
                    raise ValueError("its columns are not the columns of a state")  # noqa: TRY301 - as above
                table = reader.read_all()
            # The checksum is for accidents. Offsets that somebody has made up would be read outside of the file.
            table.validate(full=True)
            keys, values = (table.column(each).to_pylist() for each in ("key", "value"))
            notes = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
        except (ValueError, KeyError, OSError, struct.error, pa.ArrowException) as error:
            raise self._damaged(directory, name, str(error)) from error
        return list(zip(keys, values, strict=True)), notes, len(data)

    def _damaged(self, directory: str, name: str, reason: str) -> StateError:
        return StateError(
            f"File {name} of the state in {STATES}/{directory} of checkpoint {self._files.shown} is damaged: "
            f"{reason}. Nothing was read.",
            condition="STATE_VERSION_DAMAGED",
            hint="Restore the file from a copy, or start the query with a new checkpointLocation.",
            parameters={"location": self._files.shown, "name": name, "reason": reason},
        )


def delta_bytes(changes: Changes, previous: StateVersion | None) -> bytes:
    """Return a part of the changes of an epoch as the content of a file; they follow a version."""
    return _encoded(changes, {"previous": "" if previous is None else previous.text})


def _name(directory: str, name: str) -> str:
    return f"{STATES}/{directory}/{name}"


def _encoded(changes: Changes, notes: dict[str, str]) -> bytes:
    sink = pa.BufferOutputStream()
    schema = _SCHEMA.with_metadata(notes)
    with pa.ipc.new_stream(sink, schema) as writer:
        arrays = [pa.array([change[number] for change in changes], pa.binary()) for number in (0, 1)]
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    body = sink.getvalue()
    return b"".join((_HEAD.pack(_MAGIC, zlib.crc32(body)), body))
