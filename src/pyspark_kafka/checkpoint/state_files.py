"""A continuous query's state files, as a restart reads them: the chain of files of a version.

| File below `continuous/state/STEP/KEY GROUP/` | Content |
| --- | --- |
| `EPOCH-WRITER.PART.delta` | changes of an epoch, and in part 0 the name of the version before it |
| `EPOCH-WRITER.PART.all` | a part of the whole state as it is in that version |
| `EPOCH-WRITER.whole` | how many of these parts there are; written last |

A file begins with four letters and a checksum; an Arrow stream of key and value follows. No value: the key is removed.
`pyspark_kafka.continuous.state.version_files` writes them.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.checkpoint.files import target_of_temporary
from pyspark_kafka.checkpoint.state_names import STATES, StateVersion
from pyspark_kafka.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor

    from pyspark_kafka.checkpoint.files import CheckpointFiles

    Changes = Sequence[tuple[bytes, bytes | None]]

# Files that are read ahead, and the size of files that are kept by a reader that reads all of them
# for one state, because they are needed twice.
READ_AHEAD = 8
_MAX_KEPT_BYTES = 8 * 1024 * 1024
_HEAD = struct.Struct(">4sI")
_MAGIC = b"PKS1"
_SCHEMA = pa.schema([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())])
# A chain of more versions is not one that this program has written.
_MAX_CHAIN_LENGTH = 100_000


@dataclass(frozen=True, slots=True)
class VersionChain:
    """The files of a version.

    Attributes:
        whole: the version of which all of the state is there; None if the chain begins with an empty state.
        whole_parts: the number of its files.
        deltas: the versions after it, oldest first.
        temporary: the names of files in the directory that were being written when their writer died, or still are.
        kept: the content of some files, by name, because they were read to find the others.
    """

    whole: StateVersion | None
    whole_parts: int
    deltas: tuple[StateVersion, ...]
    temporary: tuple[str, ...] = ()
    kept: Mapping[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    @property
    def names(self) -> Sequence[tuple[str, bool]]:
        """Return the names of the files, oldest first, and whether each is of the whole state."""
        parts = () if self.whole is None else range(self.whole_parts)
        wholes = [(f"{self.whole.stem}.{part}.all", True) for part in parts if self.whole is not None]
        return wholes + [(f"{each.stem}.{part}.delta", False) for each in self.deltas for part in range(each.parts)]


@dataclass(frozen=True, slots=True)
class StateFile:
    """One file of a version.

    Attributes:
        name: the name in its directory.
        is_whole: whether it is of the whole state.
        data: its content.
    """

    name: str
    is_whole: bool
    data: bytes


class VersionReader:
    """Reads the versions of states.

    Runs on: executor, or any program; any thread; every method blocks on the file system.

    Args:
        files: the checkpoint.
        pool: reads files ahead; None if each is read when it is needed.
        ahead: the number of files of one version that are read at the same time.

    Raises:
        CheckpointError: from every method: a file cannot be read.
    """

    def __init__(self, files: CheckpointFiles, pool: ThreadPoolExecutor | None = None, ahead: int = READ_AHEAD) -> None:
        self._files, self._pool, self._ahead = files, pool, ahead

    def chain(self, directory: str, head: StateVersion) -> VersionChain:
        """Return what makes up a version.

        Raises:
            StateError: a file is missing or damaged.
        """
        found = self._files.scan(f"{STATES}/{directory}")
        names = set(found.files)
        temporary = tuple(sorted(name for name in found.hidden if target_of_temporary(name) is not None))
        # A file names the one before it, so that only names can say which one is likely to be needed next.
        data = _ReadAhead(lambda name: self._data(directory, name), _likely(names, head), self._pool, self._ahead)
        deltas: list[StateVersion] = []
        kept: dict[str, bytes] = {}
        kept_bytes = 0
        version: StateVersion | None = head
        while version is not None and len(deltas) < _MAX_CHAIN_LENGTH:
            if f"{version.stem}.whole" in names:
                parts = self._whole_parts(directory, version)
                return VersionChain(version, parts, tuple(reversed(deltas)), temporary, kept)
            deltas.append(version)
            name = f"{version.stem}.0.delta"
            content = data.take_file(name)
            if kept_bytes + len(content) <= _MAX_KEPT_BYTES * self._ahead // READ_AHEAD:
                kept[name] = content
                kept_bytes += len(content)
            version = self._previous(directory, name, content)
        return VersionChain(None, 0, tuple(reversed(deltas)), temporary, kept)

    def read(self, directory: str, chain: VersionChain) -> Iterator[StateFile]:
        """Return the files of a version, oldest first; their content is not compared with its checksum yet.

        Raises:
            StateError: a file is missing.
        """
        wanted = [name for name, _ in chain.names if name not in chain.kept]
        data = _ReadAhead(lambda name: self._data(directory, name), wanted, self._pool, self._ahead)
        for name, is_whole in chain.names:
            kept = chain.kept.get(name)
            yield StateFile(name, is_whole, data.take_file(name) if kept is None else kept)

    def changes(self, directory: str, file: StateFile) -> Changes:
        """Return the changes in a file, or a part of the whole state.

        Raises:
            StateError: the file is damaged.
        """
        table = self.check(directory, file)
        return list(zip(*(table.column(each).to_pylist() for each in ("key", "value")), strict=True))

    def check(self, directory: str, file: StateFile) -> pa.Table:
        """Return the table in a file, with the columns `key` and `value`.

        Raises:
            StateError: the file is damaged.
        """
        try:
            with _opened(file.data) as reader:
                table = reader.read_all()
            # The checksum is for accidents. Offsets that somebody has made up would be read outside of the file.
            table.validate(full=True)
        except _UNREADABLE as error:
            raise self._damaged(directory, file.name, str(error)) from error
        return table

    def is_there(self, directory: str, version: StateVersion) -> bool:
        """Return whether this process finds the first file of a version."""
        return self._files.read(_name(directory, f"{version.stem}.0.delta")) is not None

    def _whole_parts(self, directory: str, version: StateVersion) -> int:
        name = f"{version.stem}.whole"
        data = self._files.read(_name(directory, name))
        try:
            return int(json.loads(data or b"")["parts"])
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
            raise self._damaged(directory, name, str(error)) from error

    def _previous(self, directory: str, name: str, data: bytes) -> StateVersion | None:
        try:
            with _opened(data) as reader:
                text = (reader.schema.metadata or {})[b"previous"].decode()
            return StateVersion.parse(text) if text else None
        except _UNREADABLE as error:
            raise self._damaged(directory, name, str(error)) from error

    def _data(self, directory: str, name: str) -> bytes:
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
        return data

    def _damaged(self, directory: str, name: str, reason: str) -> StateError:
        return StateError(
            f"File {name} of the state in {STATES}/{directory} of checkpoint {self._files.shown} is damaged: "
            f"{reason}. Nothing was read.",
            condition="STATE_VERSION_DAMAGED",
            hint="Restore the file from a copy, or start the query with a new checkpointLocation.",
            parameters={"location": self._files.shown, "name": name, "reason": reason},
        )


class _ReadAhead:
    """Reads files in a likely order, some of them ahead.

    Args:
        read: returns the content of a file.
        names: the order.
        pool: runs reads; None for reads on demand.
        ahead: the number of reads at the same time.
    """

    def __init__(
        self, read: Callable[[str], bytes], names: Sequence[str], pool: ThreadPoolExecutor | None, ahead: int
    ) -> None:
        self._read, self._names, self._pool, self._ahead = read, names, pool, ahead
        self._places = {name: number for number, name in enumerate(names)}
        self._begun = 0
        self._reads: dict[int, Future[bytes]] = {}

    def take_file(self, name: str) -> bytes:
        """Return the content of a file; files before it in the order are not needed any more."""
        place = self._places.get(name)
        if place is None or self._pool is None or self._ahead < 2:
            return self._read(name)
        for number in range(max(place, self._begun), min(place + self._ahead, len(self._names))):
            self._reads[number] = self._pool.submit(self._read, self._names[number])
            self._begun = number + 1
        for number in [each for each in self._reads if each < place]:
            self._reads.pop(number).cancel()
        found = self._reads.pop(place, None)
        return self._read(name) if found is None else found.result()


def encoded_changes(changes: Changes, notes: dict[str, str]) -> bytes:
    """Return changes, or a part of the whole state, as the content of a file."""
    sink = pa.BufferOutputStream()
    schema = _SCHEMA.with_metadata(notes)
    with pa.ipc.new_stream(sink, schema) as writer:
        arrays = [pa.array([change[number] for change in changes], pa.binary()) for number in (0, 1)]
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    body = sink.getvalue()
    return b"".join((_HEAD.pack(_MAGIC, zlib.crc32(body)), body))


_UNREADABLE = (ValueError, KeyError, OSError, struct.error, pa.ArrowException)


def _opened(data: bytes) -> pa.ipc.RecordBatchStreamReader:
    magic, checksum = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    if magic != _MAGIC or zlib.crc32(body) != checksum:
        raise ValueError("its checksum is wrong")
    reader = pa.ipc.open_stream(pa.py_buffer(body))
    if not reader.schema.equals(_SCHEMA):
        raise ValueError("its columns are not the columns of a state")
    return reader


def _likely(names: set[str], head: StateVersion) -> list[str]:
    """Return the files of changes since the whole state that seems to be the last one, newest first."""
    numbers = {name: int(number) for name in names if (number := name.partition("-")[0]).isdecimal()}
    wholes = [number for name, number in numbers.items() if name.endswith(".whole") and number <= head.epoch]
    first = max(wholes, default=-1)
    found = [name for name, number in numbers.items() if first < number <= head.epoch and name.endswith(".0.delta")]
    return sorted(found, key=lambda name: (numbers[name], name), reverse=True)


def _name(directory: str, name: str) -> str:
    return f"{STATES}/{directory}/{name}"
