"""The location of files: a local path or a URI of another file system, how it is opened, the texts of its failures.

Used for checkpoints and for the spool files of exactly-once writes; the meaning of the files is decided there.
Layer: checkpoint.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import pyarrow as pa

from pyspark_kafka.errors import CheckpointError

# At least two letters: `C:` is a drive.
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")
# Hadoop's names of file systems that pyarrow calls otherwise.
_SCHEMES_OF_HADOOP = {"s3a": "s3", "s3n": "s3"}
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_RIGHT = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@dataclass(frozen=True, slots=True, repr=False)
class FileLocation:
    """The location of files of one purpose.

    Runs on: driver and executors; plain data that pickles; file systems are opened where they are used.

    Args:
        location: a local path, a `file:` URI, or any URI that `pyarrow.fs.FileSystem.from_uri` takes (`hdfs`, `s3`,
            `s3a`, `gs`, `abfs`). A `file:` URI is read as Hadoop reads it: literally, without percent-decoding. A
            relative path is made absolute at once.

    Raises:
        CheckpointError: from every method: the location cannot be opened, read or written; the text names it.

    Source: Hadoop `Path`.
    """

    # The name of the location in texts, and in the conditions of errors.
    purpose: ClassVar[str] = "checkpoint"
    condition: ClassVar[str] = "CHECKPOINT"

    location: str

    def __post_init__(self) -> None:
        if not self.location.strip():
            raise CheckpointError(
                f"The location of a {self.purpose} is empty.",
                condition=f"{self.condition}_LOCATION_INVALID",
                hint="Set it to a path or a URI.",
            )
        path = _local_path(self.location)
        if path is not None:
            object.__setattr__(self, "location", os.path.abspath(path))  # noqa: PTH100 - paths are text here, as in pyarrow.fs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shown!r})"

    @property
    def shown(self) -> str:
        """Return the location as errors show it: without the password and the query of a URI."""
        if not self._remote:
            return self.location
        return re.sub(r"(://)[^/@]*:[^/@]*@", r"\1…@", self.location.partition("?")[0])

    @property
    def _remote(self) -> bool:
        return _local_path(self.location) is None

    def _open(self) -> tuple[Any, str]:
        try:
            return _filesystem(self.location)
        except (OSError, pa.ArrowException) as error:
            # pyarrow repeats the URI with its secrets; the cause would show them as well.
            reason = str(error).replace(_for_arrow(self.location), self.shown).replace(self.location, self.shown)
            raise CheckpointError(
                f"The {self.purpose} location {self.shown} cannot be opened: {reason}",
                condition=f"{self.condition}_LOCATION_INVALID",
                hint="Use a local path, or a URI that pyarrow.fs.FileSystem.from_uri opens on this machine: s3://, "
                "gs://, abfs://, or hdfs:// (which needs libhdfs and Hadoop's CLASSPATH).",
                facts={"location": self.shown},
            ) from (error if self.shown == self.location else None)

    def _path(self, name: str) -> str:
        return os.path.join(self.location, checked_name(name))  # noqa: PTH118

    def _failure(self, action: str, name: str, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"Cannot {action} {name} of {self.purpose} {self.shown}: {type(error).__name__}: {error}.",
            condition=f"{self.condition}_IO",
            hint=_hint(error),
            facts={"location": self.shown, "name": name, "action": action},
        )


def _hint(error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number in _NO_ROOM:
        return "Free space there, or name another location: the file system is full, or a quota is used up."
    if number in _NO_RIGHT:
        return "Grant this process the permission to read and write there."
    return "Check that the location exists and that this process may read and write it."


def _local_path(location: str) -> str | None:
    """Return the path of a local location; None for another file system."""
    scheme = _SCHEME.match(location)
    if scheme is None:
        return location
    if scheme[1].lower() != "file":
        return None
    # file:/path, file:///path and file://host/path, which Hadoop also reads as a local path.
    rest = location[scheme.end() :]
    return "/" + rest[2:].partition("/")[2] if rest.startswith("//") else rest


def _for_arrow(location: str) -> str:
    scheme, colon, rest = location.partition(":")
    return _SCHEMES_OF_HADOOP.get(scheme.lower(), scheme) + colon + rest


@lru_cache(maxsize=32)
def _filesystem(location: str) -> tuple[Any, str]:
    from pyarrow import fs  # noqa: PLC0415 - loads the clients of clouds; most locations are local

    opened, root = fs.FileSystem.from_uri(_for_arrow(location))
    return opened, root.rstrip("/")


def checked_name(name: str) -> str:
    """Return the name of a file below a location; raise CheckpointError if it is absolute or has `..`."""
    if not name or any(part in {"", ".", ".."} for part in name.split("/")):
        raise CheckpointError(
            f"{name!r} does not name a file below a location: a relative name without '..' is needed.",
            condition="CHECKPOINT_NAME_INVALID",
            facts={"name": name},
        )
    return name
