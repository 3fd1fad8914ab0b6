"""The transactional ids that the tasks on one host use again."""

from __future__ import annotations

import getpass
import hashlib
import logging
import os
import re
import shutil
import socket
import stat
import tempfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_kafka._connector.sink.transactional_ids import task_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG = logging.getLogger(__name__)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_FILE = re.compile(r"(\d+)-([0-9a-f]{32})")
# As transactional.id.expiration.ms of brokers.
_FORGOTTEN_S = 7 * 86_400.0
# The directories that were warned of.
_WARNED: set[Path] = set()


class TaskIds:
    """Lends each task attempt a transactional id that nobody else uses, and keeps it for tasks of later micro-batches.

    An id is a new random name, so nobody else can have it. One that was given back is a file with its name in a
    directory of the host; whoever removes the file has the id. A file that is lost costs a new name. The directory
    names host and boot, so that a copy of it elsewhere is of no use.

    Runs on: executor; blocks on the local file system only.

    Args:
        sink_id: the sink's transactional id.
        pool: of the planning, see `continue_pool`.
        epoch: of the planning: an id that a task of the same planning has used is not lent again, because it may be
            about to be committed.
        directory: where the files are; None: in the directory for temporary files.
    """

    def __init__(self, sink_id: str, pool: str, epoch: int, directory: Path | None = None) -> None:
        self._prefix, self._epoch = task_prefix(sink_id, pool), epoch
        pool_name = hashlib.sha256(self._prefix.encode()).hexdigest()[:32]
        self._directory = (directory or _own_directory()) / pool_name

    def take_id(self) -> str:
        """Return an id for one attempt."""
        with _warned(self._directory):
            _check(self._directory)
            for name in os.listdir(self._directory):  # noqa: PTH208 - names
                found = _FILE.fullmatch(name)
                if found is None or int(found[1]) >= self._epoch:
                    continue
                try:
                    (self._directory / name).unlink()
                except FileNotFoundError:
                    # Another task was faster.
                    continue
                return f"{self._prefix}{found[2]}"
        return f"{self._prefix}{uuid.uuid4().hex}"

    def give_back(self, name: str) -> None:
        """Keep an id for tasks of later plannings; once, when the attempt writes nothing more."""
        with _warned(self._directory):
            if not self._directory.exists():
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                _remove_old(self._directory.parent)
            _check(self._directory)
            (self._directory / f"{self._epoch}-{name.removeprefix(self._prefix)}").touch(mode=0o600)


@contextmanager
def _warned(directory: Path) -> Iterator[None]:
    """Do without the files if the directory cannot be used; warn of that once in a process."""
    try:
        yield
    except FileNotFoundError:
        # Nothing was given back yet, or somebody has tidied up.
        return
    except OSError as error:
        if directory.parent not in _WARNED:
            _WARNED.add(directory.parent)
            _LOG.warning(
                "The transactional ids of tasks cannot be kept for later tasks on this host: each task gets a new one, "
                "which brokers remember for days. Make %s a directory of this user alone, or remove it. %s",
                directory.parent, error,
            )  # fmt: skip


def _own_directory() -> Path:
    """Return this user's directory for this host and boot."""
    try:
        boot = _BOOT_ID.read_text().strip()
    except OSError:
        boot = ""
    host = hashlib.sha256(f"{socket.gethostname()} {boot}".encode()).hexdigest()[:16]
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return Path(tempfile.gettempdir()) / f"pyspark-kafka-ids-{user}" / host


def _check(directory: Path) -> None:
    """Raise if another user could have put names into the directory."""
    for each in (directory, directory.parent, directory.parent.parent):
        found = each.lstat()
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(f"{each} is of another user")


def _remove_old(parent: Path) -> None:
    """Remove the directories of pools that nobody has used for a week: brokers have forgotten their ids."""
    for directory in parent.iterdir():
        if time.time() - directory.stat().st_mtime > _FORGOTTEN_S:
            shutil.rmtree(directory, ignore_errors=True)
