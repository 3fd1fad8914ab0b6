"""Spool files, in which tasks of an exactly-once write leave record batches for the driver, and their removal.

Names, reading, writing; what is removed and when. The content of the files: `executor/outbox.py`.
"""

from __future__ import annotations

import os
import random
import re
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from pyspark_kafka.checkpoint.file_location import FileLocation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Bytes = bytes | bytearray | memoryview

# One directory for each owner: a streaming query, or a batch write. Its name shows which product made it.
_OWNER_PREFIX = "pyspark-kafka-"
_OWNER = re.compile(rf"{_OWNER_PREFIX}[0-9A-Za-z_-]+")
_BATCH = re.compile(r"\d+")
_FILE = re.compile(r"\d+-\d+-[0-9a-f]{32}")
# Nobody needs a file after its micro-batch: one that is run again spools again. No batch takes as long as this.
_DEAD_AFTER_S = 7 * 86_400.0
# How many directories one sweep looks at; the others have their turn in another.
_SWEPT = 20


@dataclass(frozen=True, slots=True, repr=False)
class SpoolFiles(FileLocation):
    """The spool files of one owner, in directories of its own: `pyspark-kafka-<owner>/<batch>/<task>-<attempt>-<uuid>`.

    Several owners may share a location; only files and directories with such names are removed, and files of other
    owners only if they are days old. Names are never used twice, so a file is not renamed after it is written, and its
    reader knows its size from the task's message.

    Runs on: executor (`write`, `remove`) and driver; every method blocks on the file system; plain data that pickles.

    Args:
        location: see `FileLocation`.
        owner: the id of the streaming query, or of the batch write.

    Raises:
        CheckpointError: from every method: the location cannot be opened, read or written; the text names it.
    """

    purpose: ClassVar[str] = "spool (option 'spoolLocation')"
    condition: ClassVar[str] = "SPOOL"

    owner: str

    @property
    def directory(self) -> str:
        """The owner's directory, below the location."""
        return _OWNER_PREFIX + re.sub(r"[^0-9A-Za-z_-]", "_", self.owner)

    def write(self, batch_id: int, task: str, data: Sequence[Bytes]) -> str:
        """Write bytes, end to end, into a new file; return its name.

        Args:
            batch_id: the micro-batch; 0 in a batch write.
            task: Spark partition and task attempt, as `<partition>-<attempt>`.
            data: the pieces.
        """
        name = f"{self.directory}/{batch_id}/{task}-{uuid.uuid4().hex}"
        try:
            if self._remote:
                self._write_remote(name, data)
            else:
                self._write_local(name, data)
        except (OSError, pa.ArrowException) as error:
            raise self._failure("write", name, error) from error
        return name

    def read(self, name: str, size: int) -> bytes | None:
        """Return the bytes of a file, at most `size` and one more; None if there is no such file."""
        try:
            if self._remote:
                opened, root = self._open()
                with opened.open_input_stream(f"{root}/{name}") as stream:
                    return bytes(stream.read(size + 1))
            with open(self._path(name), "rb") as file:  # noqa: PTH123 - paths are text here, as in pyarrow.fs
                return file.read(size + 1)
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowException) as error:
            raise self._failure("read", name, error) from error

    def remove(self, names: Iterable[str]) -> None:
        """Remove files of attempts that were given up; one that is gone already is not an error."""
        for name in names:
            with self._removing(name), suppress(FileNotFoundError):
                if self._remote:
                    opened, root = self._open()
                    opened.delete_file(f"{root}/{name}")
                else:
                    os.remove(self._path(name))  # noqa: PTH107

    def remove_batch(self, batch_id: int) -> None:
        """Remove all files of one micro-batch: with few calls, however many there are."""
        self._remove_tree(f"{self.directory}/{batch_id}")

    def remove_before(self, batch_id: int) -> None:
        """Remove what attempts of earlier micro-batches have left; at most some directories at a time."""
        earlier = [name for name in self._directories(self.directory, _BATCH) if int(name) < batch_id]
        for name in earlier[:_SWEPT]:
            self._remove_tree(f"{self.directory}/{name}")

    def remove_owner(self) -> None:
        """Remove everything of this owner; for an ended batch write."""
        for name in self._directories(self.directory, _BATCH):
            self._remove_tree(f"{self.directory}/{name}")
        self._remove_empty(self.directory)

    def remove_dead(self, now: Callable[[], float] = time.time) -> None:
        """Remove what other owners have left in the location, if everything in their directories is days old."""
        others = [name for name in self._directories("", _OWNER) if name != self.directory]
        for owner in random.sample(others, min(_SWEPT, len(others))):
            if self._newest(owner) < now() - _DEAD_AFTER_S:
                for name in self._directories(owner, _BATCH):
                    self._remove_tree(f"{owner}/{name}")
                self._remove_empty(owner)

    # -- files

    def _write_local(self, name: str, data: Sequence[Bytes]) -> None:
        path = self._path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        try:
            # Not tempfile: its files are for one user only, and driver and executors may run as others. Not synced: a
            # machine that goes down takes the task with it, or the driver, which runs the tasks again.
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:  # noqa: PTH123
                file.writelines(data)
        except BaseException:
            with suppress(OSError):
                os.remove(path)  # noqa: PTH107
            raise

    def _write_remote(self, name: str, data: Sequence[Bytes]) -> None:
        opened, root = self._open()
        path = f"{root}/{name}"

        def put() -> None:
            with opened.open_output_stream(path) as stream:
                stream.write(b"".join(data))

        try:
            try:
                put()
            except FileNotFoundError:
                # Most file systems make directories with the file, and object stores have none.
                opened.create_dir(path.rpartition("/")[0], recursive=True)
                put()
        except BaseException:
            with suppress(OSError, pa.ArrowException):
                opened.delete_file(path)
            raise

    # -- directories

    def _directories(self, below: str, pattern: re.Pattern[str]) -> list[str]:
        """Return the names of our directories right below one, with one call; none if it is not there."""
        try:
            names = self._remote_directories(below) if self._remote else self._local_directories(below)
            return sorted(name for name in names if pattern.fullmatch(name))
        except FileNotFoundError:
            return []
        except (OSError, pa.ArrowException) as error:
            raise self._failure("list", below or ".", error) from error

    def _local_directories(self, below: str) -> Iterator[str]:
        with os.scandir(self._path(below) if below else self.location) as entries:
            yield from (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    def _remote_directories(self, below: str) -> Iterator[str]:
        from pyarrow import fs  # noqa: PLC0415 - has the clients of clouds in it; most locations are local

        opened, root = self._open()
        selected = fs.FileSelector(f"{root}/{below}" if below else root, allow_not_found=True)
        yield from (info.base_name for info in opened.get_file_info(selected) if info.type == fs.FileType.Directory)

    def _newest(self, owner: str) -> float:
        """Return the time of an owner's last write, in seconds since 1970; infinity if it is unknown."""
        with self._removing(owner), suppress(FileNotFoundError):
            if not self._remote:
                top = self._path(owner)
                times = [os.stat(folder).st_mtime for folder, _, _ in os.walk(top)]  # noqa: PTH116
                return max(times, default=float("inf"))
            from pyarrow import fs  # noqa: PLC0415 - as above

            opened, root = self._open()
            found = opened.get_file_info(fs.FileSelector(f"{root}/{owner}", recursive=True))
            times = [info.mtime.timestamp() for info in found if info.type == fs.FileType.File and info.mtime]
            return max(times, default=float("inf"))
        return float("inf")

    def _remove_tree(self, directory: str) -> None:
        with self._removing(directory), suppress(FileNotFoundError):
            if self._remote:
                opened, root = self._open()
                # Object stores remove a thousand files with one call here, one after the other otherwise.
                opened.delete_dir(f"{root}/{directory}")
                return
            path = self._path(directory)
            with os.scandir(path) as entries:
                ours = [entry.path for entry in entries if _FILE.fullmatch(entry.name)]
            for each in ours:
                with suppress(FileNotFoundError):
                    os.remove(each)  # noqa: PTH107
            self._remove_empty(directory)

    def _remove_empty(self, directory: str) -> None:
        if self._remote:
            with self._removing(directory), suppress(FileNotFoundError):
                opened, root = self._open()
                opened.delete_dir(f"{root}/{directory}")
        else:
            # Not empty: a task that still runs after its batch is writing, or there are files that are not ours.
            with suppress(OSError):
                os.rmdir(self._path(directory))  # noqa: PTH106

    @contextmanager
    def _removing(self, name: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise self._failure("remove", name, error) from error
