"""The files below a checkpoint location: small, named, written whole or not at all, readable by Spark.

Local files go through the operating system, so that only one process can create a file, and the file is on disk when
the call returns; all others go through `pyarrow.fs`. Layer: checkpoint.
"""

from __future__ import annotations

import errno
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.checkpoint.file_location import FileLocation, checked_name
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

# An offset of 100,000 partitions takes 2 MiB; a file of this size belongs to something else, or is damaged.
MAX_FILE_BYTES = 64 * 1024 * 1024

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@dataclass(frozen=True, slots=True, repr=False)
class CheckpointFiles(FileLocation):
    """Named files below one location, each written whole or not at all.

    Names are relative, with "/" between their parts; directories are created when they are needed. A file is written
    under another name, which begins with a dot, and then moved, so a reader sees all of it or nothing.

    Spark keeps a checksum, `.name.crc`, next to local files that it writes; programs that read through Hadoop's
    `FileSystem` refuse a file that does not match it, and accept a file without one. So every write here first removes
    the checksum.

    Runs on: driver and executors; plain data that pickles; file systems are opened where they are used.

    Args:
        location: a local path, a `file:` URI, or any URI that `pyarrow.fs.FileSystem.from_uri` takes (`hdfs`, `s3`,
            `s3a`, `gs`, `abfs`). A `file:` URI is read as Hadoop reads it: literally, without percent-decoding. A
            relative path is made absolute at once.

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
                opened, root = self._open()
                with opened.open_input_stream(f"{root}/{checked_name(name)}") as stream:
                    data = bytes(stream.read(MAX_FILE_BYTES + 1))
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
                facts={"location": self.shown, "name": name, "max_bytes": MAX_FILE_BYTES},
            )
        return data

    def create(self, name: str, data: bytes, *, durable: bool = True) -> bool:
        """Write a file that does not exist yet; all of it or nothing.

        If several processes create one local file at the same time, exactly one succeeds. On other file systems, and on
        local ones without hard links, two can succeed: there is only a check before the write.

        Args:
            name: the file.
            data: its content.
            durable: whether a local file is on disk when the call returns; if not, a crash of the machine may lose it.

        Returns:
            False if the file exists already; it is not changed.
        """
        return self._put(name, data, replace=False, durable=durable)

    def replace(self, name: str, data: bytes) -> None:
        """Write a file, or replace it; readers see the former or the new content."""
        self._put(name, data, replace=True)

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

    def delete(self, name: str) -> None:
        """Remove a file and its checksum; do nothing if there is no such file."""
        try:
            for each in (name, _checksum_name(name)):
                with suppress(FileNotFoundError):
                    self._remove(each)
            if not self._remote:
                with suppress(FileNotFoundError):
                    _sync_directory(os.path.dirname(self._path(name)))  # noqa: PTH120
        except (OSError, pa.ArrowException) as error:
            raise self._failure("delete", name, error) from error

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

    def _put_remote(self, name: str, temporary: str, data: bytes, *, replace: bool) -> bool:
        opened, root = self._open()
        path, written = f"{root}/{name}", f"{root}/{temporary}"
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
        # The error of some file systems does not tell that there is no such file.
        if self._is_there(path):
            opened.delete_file(path)

    def _names(self, directory: str) -> Iterator[str]:
        if not self._remote:
            path = self._path(directory) if directory else self.location
            with os.scandir(path) as entries:
                yield from (entry.name for entry in entries if entry.is_file())
            return
        from pyarrow import fs  # noqa: PLC0415 - as above

        opened, root = self._open()
        selected = fs.FileSelector(f"{root}/{checked_name(directory)}" if directory else root, allow_not_found=True)
        yield from (info.base_name for info in opened.get_file_info(selected) if info.type == fs.FileType.File)


def _checksum_name(name: str) -> str:
    directory, slash, base = name.rpartition("/")
    return f"{directory}{slash}.{base}.crc"


def _link(written: str, path: str) -> bool:
    """Move a file to its name; return False if the name is taken."""
    try:
        os.link(written, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
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
