"""The files below a checkpoint location: small, named, written whole or not at all, readable by Spark.

Local files go through the operating system, so that only one process can create a file, and the file is on disk when
the call returns. Files of stores are read and written through a client that has writes on a condition, where one is
installed (`conditional_stores`), and otherwise through `pyarrow.fs`, as listings always are.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyspark_kafka._base.threads import side_by_side
from pyspark_kafka.checkpoint.file_location import NO_HARD_LINKS, FileLocation, checked_name
from pyspark_kafka.errors import CheckpointError, listed

# An offset of 100,000 partitions takes 2 MiB; a file of this size belongs to something else, or is damaged.
MAX_FILE_BYTES = 64 * 1024 * 1024

# A query keeps 100 batches, unless somebody has set another number.
MAX_NAMES = 2_000_000

# Files of state stores may be large; a copy holds one piece of them.
_COPIED_AT_ONCE = 1024 * 1024

# Spark's have a UUID with hyphens.
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f-]{8,36}\.tmp")

# Calls of one store or disk; their threads end with them.
_AT_A_TIME = 8


@dataclass(frozen=True, slots=True)
class DirectoryNames:
    """The names directly in a directory of a checkpoint, as they were at one moment.

    Attributes:
        files: the names of files, in no order.
        hidden: the names of files that begin with a dot: checksums, files being written, and leftover files.
        directories: the names of directories, in no order.
        complete: whether that is all; a directory with more than `MAX_NAMES` names is not listed to its end.
    """

    files: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class FileStatus:
    """The size of a file, and when it was written.

    Attributes:
        size: in bytes.
        modified_ms: milliseconds since 1970-01-01 UTC; None if the file system has none. A copy has its own time.
    """

    size: int
    modified_ms: int | None


@dataclass(frozen=True, slots=True, repr=False)
class CheckpointFiles(FileLocation):
    """Named files below one location, each written whole or not at all.

    Names are relative, with "/" between their parts; directories are created when they are needed. A file is written
    under another name, which begins with a dot, and then moved, so a reader sees all of it or nothing; stores write a
    file whole.

    Spark keeps a checksum, `.name.crc`, next to local files that it writes; programs that read through Hadoop's
    `FileSystem` refuse a file that does not match it, and accept a file without one. So every local write here first
    removes the checksum.

    Runs on: driver and executors; plain data that pickles; file systems are opened where they are used.

    Args:
        location: a local path, a `file:` URI, or any URI that `pyarrow.fs.FileSystem.from_uri` takes (`hdfs`, `s3`,
            `s3a`, `gs`, `abfs`). A `file:` URI is read as Hadoop reads it: literally, without percent-decoding. A
            relative path is made absolute immediately.

    Raises:
        CheckpointError: from every method: the location cannot be opened, read or written; the text names it.

    Source: Spark `CheckpointFileManager`; Hadoop `ChecksumFileSystem`, `Path`.
    """

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is no such file.

        Raises:
            CheckpointError: the file has more than `MAX_FILE_BYTES` bytes.
        """
        try:
            if self._remote:
                found = self._read_remote(name)
                if found is None:
                    return None
                data = found
            else:
                with open(self._path(name), "rb") as file:  # noqa: PTH123 - paths are text here, as in pyarrow.fs
                    data = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowException) as error:
            raise self._failure("read", name, error) from error
        if len(data) > MAX_FILE_BYTES:
            raise CheckpointError(
                f"File {name} of checkpoint {self.shown} has more than {MAX_FILE_BYTES:,} bytes; it was not read.",
                condition="CHECKPOINT_FILE_TOO_LARGE",
                hint="Check the location: a file of this size is not part of a streaming checkpoint.",
                parameters={"location": self.shown, "name": name, "max_bytes": MAX_FILE_BYTES},
            )
        return data

    def create(self, name: str, data: bytes, *, durable: bool = True) -> bool:
        """Write a file that does not exist yet; all of it or nothing.

        If several processes create one file at the same time, exactly one succeeds, where `check_decides` raises
        nothing. Elsewhere two can succeed: there is only a check before the write.

        Args:
            name: the file.
            data: its content.
            durable: whether a local file is on disk when the call returns; if not, a crash of the machine may lose it.

        Returns:
            False if the file exists already; it is not changed.
        """
        return self._put(name, data, replace=False, durable=durable)

    def replace(self, name: str, data: bytes) -> None:
        """Write a file, or replace it; readers see the previous or the new content."""
        self._put(name, data, replace=True)

    def side_by_side(self, *calls: Callable[[], object], durable: bool = False) -> None:
        """Make calls of these files that do not depend on each other: eight at a time on a store, locally one by one.

        Args:
            calls: the calls.
            durable: whether each waits for the disk; then there are eight at a time locally, too.

        Raises:
            CheckpointError: of the first call that fails; no other call runs then, and some may not have begun.
        """
        if not (self._remote or durable) or len(calls) < 2:
            for call in calls:
                call()
            return
        side_by_side(lambda call: call(), calls, _AT_A_TIME, "checkpoint")

    def list(self, directory: str = "") -> list[str]:
        """Return the names of the files directly in `directory`, sorted; none if there is no such directory.

        Names that begin with a dot are left out: checksums, and files that are being written.
        """
        try:
            return sorted(name for name in self._names(directory) if not name.startswith("."))
        except FileNotFoundError:
            return []
        except (OSError, pa.ArrowException) as error:
            raise self._failure("list", directory or ".", error) from error

    def scan(self, directory: str = "") -> DirectoryNames:
        """Return everything that is directly in `directory`, by one listing; nothing if there is no such directory."""
        files: list[str] = []
        hidden: list[str] = []
        directories: list[str] = []
        try:
            for number, (name, is_directory) in enumerate(self._entries(directory)):
                if number >= MAX_NAMES:
                    return DirectoryNames(tuple(files), tuple(hidden), tuple(directories), complete=False)
                (directories if is_directory else hidden if name.startswith(".") else files).append(name)
        except (FileNotFoundError, NotADirectoryError):
            return DirectoryNames()
        except (OSError, pa.ArrowException) as error:
            raise self._failure("list", directory or ".", error) from error
        return DirectoryNames(tuple(files), tuple(hidden), tuple(directories))

    def status(self, name: str) -> FileStatus | None:
        """Return the size and the time of a file; None if there is no such file."""
        try:
            if not self._remote:
                found = os.stat(self._path(name))  # noqa: PTH116
                return FileStatus(found.st_size, found.st_mtime_ns // 1_000_000)
            opened, root = self._open()
            info = opened.get_file_info(f"{root}/{checked_name(name)}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, pa.ArrowException) as error:
            raise self._failure("read", name, error) from error
        if info.size is None:
            return None
        return FileStatus(info.size, None if info.mtime_ns is None else info.mtime_ns // 1_000_000)

    def copy_from(self, other: CheckpointFiles, name: str) -> bool:
        """Copy a file of another location under the same name, of any size; return False if there is no such file.

        A file of this name is replaced as a whole, and its checksum removed.
        """
        directory, _, base = checked_name(name).rpartition("/")
        temporary = f"{directory}/" * bool(directory) + f".{base}.{uuid.uuid4().hex}.tmp"
        try:
            with other._opened(name) as source, self._writing(temporary) as target:
                while chunk := source.read(_COPIED_AT_ONCE):
                    target.write(chunk)
            self._put_in_place(temporary, name)
        except FileNotFoundError:
            if other.status(name) is None:
                return False
            raise
        except (OSError, pa.ArrowException) as error:
            raise self._failure("copy", name, error) from error
        finally:
            with suppress(OSError, pa.ArrowException, CheckpointError):
                self._remove(temporary)
        return True

    def delete(self, *names: str) -> None:
        """Remove files and their checksums; a missing file is not an error."""
        if not names:
            return
        try:
            if self._remote:
                self._delete_remote(names)
                return
            for each in names:
                for path in (self._path(each), self._path(_checksum_name(each))):
                    with suppress(FileNotFoundError):
                        os.remove(path)  # noqa: PTH107
            for directory in {os.path.dirname(self._path(each)) for each in names}:  # noqa: PTH120
                with suppress(FileNotFoundError):
                    _sync_directory(directory)
        except (OSError, pa.ArrowException) as error:
            raise self._failure("delete", listed(names, noun="files"), error) from error

    def _opened(self, name: str) -> Any:
        if self._remote:
            opened, root = self._open()
            return opened.open_input_stream(f"{root}/{checked_name(name)}")
        return open(self._path(name), "rb")  # noqa: PTH123 - the caller closes it

    @contextmanager
    def _writing(self, temporary: str) -> Iterator[Any]:
        if self._remote:
            opened, root = self._open()
            opened.create_dir(f"{root}/{temporary}".rpartition("/")[0], recursive=True)
            with opened.open_output_stream(f"{root}/{temporary}") as stream:
                yield stream
            return
        path = self._path(temporary)
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:  # noqa: PTH123
            yield file
            file.flush()
            os.fsync(file.fileno())

    def _put_in_place(self, temporary: str, name: str) -> None:
        with suppress(FileNotFoundError):
            self._remove(_checksum_name(name))
        if self._remote:
            opened, root = self._open()
            (self._conditional() or opened).move(f"{root}/{temporary}", f"{root}/{name}")
            return
        path = self._path(name)
        os.replace(self._path(temporary), path)  # noqa: PTH105
        _sync_directory(os.path.dirname(path))  # noqa: PTH120

    def _put(self, name: str, data: bytes, *, replace: bool, durable: bool = True) -> bool:
        directory, _, base = checked_name(name).rpartition("/")
        temporary = f"{directory}/" * bool(directory) + f".{base}.{uuid.uuid4().hex}.tmp"
        try:
            if self._remote:
                return self._put_remote(name, temporary, data, replace=replace)
            return self._put_local(name, temporary, data, replace=replace, durable=durable)
        except (OSError, pa.ArrowException) as error:
            raise self._failure("write", name, error) from error

    def _put_local(self, name: str, temporary: str, data: bytes, *, replace: bool, durable: bool) -> bool:
        path, written = self._path(name), self._path(temporary)
        if not replace and os.path.lexists(path):
            return False
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        try:
            # Not tempfile: its files are for one user only, and Spark may run as another.
            with open(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:  # noqa: PTH123
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            # Before the file exists: a crash in between leaves a file without a checksum, never one with the wrong
            # checksum. One that Spark has written a moment ago is removed as well, which does no harm.
            with suppress(FileNotFoundError):
                os.remove(self._path(_checksum_name(name)))  # noqa: PTH107
            if replace:
                os.replace(written, path)  # noqa: PTH105
            elif not _link(written, path):
                return False
        finally:
            with suppress(FileNotFoundError):
                os.remove(written)  # noqa: PTH107
        if durable:
            _sync_directory(os.path.dirname(path))  # noqa: PTH120
        return True

    def _read_remote(self, name: str) -> bytes | None:
        opened, root = self._open()
        path = f"{root}/{checked_name(name)}"
        if (store := self._conditional()) is not None:
            return store.read(path, MAX_FILE_BYTES + 1)
        with opened.open_input_stream(path) as stream:
            return bytes(stream.read(MAX_FILE_BYTES + 1))

    def _delete_remote(self, names: Sequence[str]) -> None:
        _, root = self._open()
        if (store := self._conditional()) is not None:
            store.delete([f"{root}/{checked_name(name)}" for name in names])
            return
        for name in names:
            for each in (name, _checksum_name(name)):
                with suppress(FileNotFoundError):
                    self._remove(each)

    def _put_remote(self, name: str, temporary: str, data: bytes, *, replace: bool) -> bool:
        opened, root = self._open()
        path, written = f"{root}/{name}", f"{root}/{temporary}"
        if (store := self._conditional()) is not None:
            if replace:
                store.replace(path, data)
                return True
            return store.create(path, data)
        if not replace and self._is_there(path):
            return False
        opened.create_dir(path.rpartition("/")[0], recursive=True)
        try:
            with opened.open_output_stream(written) as stream:
                stream.write(data)
            with suppress(FileNotFoundError):
                self._remove(_checksum_name(name))
            if not replace and self._is_there(path):
                return False
            opened.move(written, path)
        finally:
            with suppress(FileNotFoundError):
                self._remove(temporary)
        return True

    def _is_there(self, path: str) -> bool:
        from pyarrow import fs  # noqa: PLC0415 - loads the clients of clouds; most locations are local

        return bool(self._open()[0].get_file_info(path).type != fs.FileType.NotFound)

    def _remove(self, name: str) -> None:
        if not self._remote:
            os.remove(self._path(name))  # noqa: PTH107
            return
        opened, root = self._open()
        path = f"{root}/{checked_name(name)}"
        # The error of some file systems does not show that there is no such file.
        if self._is_there(path):
            opened.delete_file(path)

    def _names(self, directory: str) -> Iterator[str]:
        return (name for name, is_directory in self._entries(directory) if not is_directory)

    def _entries(self, directory: str) -> Iterator[tuple[str, bool]]:
        """Yield the names of files and directories in `directory`, and whether each is a directory."""
        if not self._remote:
            path = self._path(directory) if directory else self.location
            with os.scandir(path) as entries:
                for entry in entries:
                    # Most are files.
                    if entry.is_file():
                        yield entry.name, False
                    elif entry.is_dir():
                        yield entry.name, True
            return
        from pyarrow import fs  # noqa: PLC0415 - as above

        opened, root = self._open()
        selected = fs.FileSelector(f"{root}/{checked_name(directory)}" if directory else root, allow_not_found=True)
        for info in opened.get_file_info(selected):
            if info.type in (fs.FileType.File, fs.FileType.Directory):
                yield info.base_name, info.type == fs.FileType.Directory


def target_of_temporary(name: str) -> str | None:
    """Return the name of the file that a temporary file was to become, without directories; None for another file."""
    found = _TEMPORARY.fullmatch(name)
    return None if found is None else found[1]


def _checksum_name(name: str) -> str:
    directory, slash, base = name.rpartition("/")
    return f"{directory}{slash}.{base}.crc"


def _link(written: str, path: str) -> bool:
    """Move a file to its name; return False if the name is taken."""
    try:
        os.link(written, path)
    except FileExistsError:
        # A network file system may repeat a call whose response was lost, and then find the link that it has made.
        return os.path.lexists(path) and os.path.samestat(os.lstat(written), os.lstat(path))
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
        if os.path.lexists(path):
            return False
        os.replace(written, path)  # noqa: PTH105
    return True


def _sync_directory(path: str) -> None:
    # A new name is on disk once its directory is synced; some file systems cannot sync one, and need not.
    opened = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(opened)
    finally:
        os.close(opened)
