"""The location of files: a local path or a URI of another file system, its opening, its failures' texts.

Used for checkpoints and for the spool files of exactly-once writes; the meaning of the files is decided there.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from pyspark_kafka.checkpoint.conditional_stores import EXTRAS, conditional_store, hadoop_files, has_client
from pyspark_kafka.errors import CheckpointError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from pyspark_kafka.checkpoint.conditional_stores import ConditionalStore

# At least two letters: `C:` is a drive.
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")
# Hadoop's names of file systems that pyarrow calls otherwise.
_SCHEMES_OF_HADOOP = {"s3a": "s3", "s3n": "s3"}
# The directory, with its slash, and the last part of a path that has one.
_REMOTE_PATH = re.compile(r"([^:]+:(?://[^/]*|(?!//))/+(?:.*/)?)([^/]+)", re.DOTALL)
# A user with a secret. One that is not encoded may have a slash or an at sign in it, so that everything up to the last
# at sign may be part of it. The colon of HDFS and similar stores begins a port, if a path follows.
_SECRET = re.compile(
    r"\A(?!(?:hdfs|webhdfs|swebhdfs|viewfs|ofs|o3fs)://[^/@]*:[0-9]+/)([^:]+://)[^/@]*:.*@", re.DOTALL | re.IGNORECASE
)
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_NO_RIGHT = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_OTHER_PLACE = "Use another location: a local or shared disk with hard links, S3, Google Cloud Storage, Azure, or HDFS."


@dataclass(frozen=True, slots=True, repr=False)
class FileLocation:
    """The location of files of one purpose.

    Runs on: driver and executors; plain data that pickles; file systems are opened where they are used.

    Args:
        location: a local path, a `file:` URI, or any URI that `pyarrow.fs.FileSystem.from_uri` takes (`hdfs`, `s3`,
            `s3a`, `gs`, `abfs`). A `file:` URI is read as Hadoop reads it: literally, without percent-decoding. A
            relative path is made absolute immediately.

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
        return _SECRET.sub(r"\1…@", self.location.partition("?")[0])

    @property
    def base_name(self) -> str:
        """Return the last part of the path; empty for the root of a file system."""
        return self._parts()[1]

    def beside(self, name: str) -> str:
        """Return the location of this name in the same directory; a URI keeps its query.

        Raises:
            CheckpointError: this is the root of a file system, which has nothing beside it.
        """
        parent, base, query = self._parts()
        if not base:
            raise CheckpointError(
                f"The {self.purpose} location {self.shown} is the root of a file system: nothing can be beside it.",
                condition=f"{self.condition}_LOCATION_INVALID",
                hint="Use a directory below it.",
                parameters={"location": self.shown},
            )
        return f"{parent}{checked_name(name)}{query}"

    def overlap(self, other: FileLocation) -> str:
        """Return how two locations share files: "" if they do not, "itself" if they are one, "within" if one is nested.

        Links of local paths are followed. URIs are compared without the password and the query.
        """
        first, second = self._compared(), other._compared()
        if first == second:
            return "itself"
        return "within" if first.startswith(second) or second.startswith(first) else ""

    def check_decides(self) -> None:
        """Check that exactly one of several processes can create a file; four calls on a store.

        Raises:
            CheckpointError: that is not so here, or a client for it is missing: condition CHECKPOINT_NOT_EXCLUSIVE; or
                files cannot be written.
        """
        name = f".decides-{uuid.uuid4().hex}"
        try:
            if self._remote:
                reason, hint = self._check_store(name)
            else:
                reason, hint = self._check_links(name)
        except (OSError, pa.ArrowException) as error:
            raise self._failure("write", name, error) from error
        if reason:
            raise CheckpointError(
                f"{reason}: two drivers of a query could both write the end of an epoch to {self.purpose} "
                f"{self.shown}, and rows would be lost or repeated. Nothing was read.",
                condition="CHECKPOINT_NOT_EXCLUSIVE",
                hint=hint,
                parameters={"location": self.shown},
            )

    def _parts(self) -> tuple[str, str, str]:
        """Return the directory with its slash, the last part of the path, and the query with its question mark."""
        if not self._remote:
            parent, slash, base = self.location.rpartition("/")
            return parent + slash, base, ""
        path, mark, query = self.location.partition("?")
        found = _REMOTE_PATH.fullmatch(path.rstrip("/"))
        return (found[1], found[2], mark + query) if found else (path, "", mark + query)

    def _compared(self) -> str:
        if not self._remote:
            return os.path.realpath(self.location).rstrip("/") + "/"
        parent, base, _ = self._parts()
        scheme, _, rest = _for_arrow(parent + base).partition(":")
        host, _, path = rest.removeprefix("//").partition("/") if rest.startswith("//") else ("", "", rest)
        user, _, host = host.rpartition("@")
        # The user of S3 is a key; the user of another store may name a container.
        user = "" if scheme.lower() == "s3" else user.partition(":")[0]
        path = posixpath.normpath("/" + path.lstrip("/")).rstrip("/")
        return f"{scheme.lower()}://{user}@{host.lower()}{path}/"

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
                "gs://, abfs://, or hdfs:// (with the extra hdfs, or libhdfs and Hadoop's CLASSPATH).",
                parameters={"location": self.shown},
            ) from (error if self.shown == self.location else None)

    def _conditional(self) -> ConditionalStore | None:
        """Return the client that decides which of several writers comes first; None if the location has none."""
        opened, root = self._open()
        try:
            return conditional_store(_for_arrow(self.location), root, getattr(opened, "region", None))
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"The {self.purpose} location {self.shown} cannot be opened: {error}",
                condition=f"{self.condition}_LOCATION_INVALID",
                hint="Use a URI that both pyarrow.fs.FileSystem.from_uri and obstore can open on this machine.",
                parameters={"location": self.shown},
            ) from None

    def _check_store(self, name: str) -> tuple[str, str]:
        """Return why a store does not decide, and what to do; empty texts if it does."""
        store, (_, root) = self._conditional(), self._open()
        scheme = _for_arrow(self.location).partition(":")[0].lower()
        if store is None and scheme not in EXTRAS:
            return f"Files of {scheme}:// cannot be created on the condition that there is none", _OTHER_PLACE
        if store is None:
            return (
                f"pyarrow cannot create a file of {scheme}:// on the condition that there is none",
                f"Run {install_command(EXTRAS[scheme])} on the driver and all executors, for a client that can.",
            )
        path = f"{root}/{name}"
        try:
            decides = store.create(path, b"1") and not store.create(path, b"2")
        finally:
            store.delete([path])
        if decides:
            return "", ""
        return "The store ignores the condition of a write that there is no such file (If-None-Match)", _OTHER_PLACE

    def _check_links(self, name: str) -> tuple[str, str]:
        """Return why a local file system does not decide, and what to do; empty texts if it does."""
        written, path = self._path(name), self._path(f"{name}.link")
        os.makedirs(self.location, exist_ok=True)  # noqa: PTH103
        try:
            os.close(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            os.link(written, path)
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            return f"The file system has no hard links ({error.strerror})", _OTHER_PLACE
        finally:
            for each in (written, path):
                with suppress(FileNotFoundError):
                    os.remove(each)  # noqa: PTH107
        return "", ""

    def _path(self, name: str) -> str:
        return os.path.join(self.location, checked_name(name))  # noqa: PTH118

    def _failure(self, action: str, name: str, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"Cannot {action} {name} of {self.purpose} {self.shown}: {type(error).__name__}: {error}.",
            condition=f"{self.condition}_IO",
            hint=_hint(error),
            # A full disk, a server that fails over: whoever can start again at the last committed batch may do so.
            retriable=getattr(error, "errno", None) not in _NO_RIGHT,
            parameters={"location": self.shown, "name": name, "action": action},
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

    location = _for_arrow(location)
    if location.lower().startswith("hdfs:") and has_client("hdfs"):
        # In the place of libhdfs, which needs a JVM, and whose moves are not atomic in pyarrow.
        files = fs.PyFileSystem(fs.FSSpecHandler(hadoop_files(location)))
        return files, unquote(urlsplit(location).path).rstrip("/")
    opened, root = fs.FileSystem.from_uri(location)
    return opened, root.rstrip("/")


def checked_name(name: str) -> str:
    """Return the name of a file below a location; raise CheckpointError if it is absolute or has `..`."""
    if not name or any(part in {"", ".", ".."} for part in name.split("/")):
        raise CheckpointError(
            f"{name!r} does not name a file below a location: a relative name without '..' is needed.",
            condition="CHECKPOINT_NAME_INVALID",
            parameters={"name": name},
        )
    return name
