"""A directory of this process for the local copy of a state; one that a killed process left is removed by the next."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "pyspark-kafka-state-"
_LOCK = "lock"


class LocalDirectory:
    """A new directory below the directory of Spark's executor, or below the system's for temporary files.

    Runs on: executor. Whoever is alive holds a lock in its directory; those without one are removed here.

    Attributes:
        path: the directory.
    """

    def __init__(self) -> None:
        # Spark removes these when the application ends.
        places = [each for each in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if each]
        parent = Path(places[0]) if places and os.access(places[0], os.W_OK) else Path(tempfile.gettempdir())
        _remove_left(parent)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        # Locked before it has its name: another process must not find it without an owner.
        made = self.path / f"{_LOCK}.new"
        self._lock = os.open(made, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        made.rename(self.path / _LOCK)

    def remove(self) -> None:
        """Remove the directory with what is in it. Call once."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _remove_left(parent: Path) -> None:
    for left in parent.glob(f"{_PREFIX}*"):
        # Directories of other users, and directories that another process removes at this moment, are not ours. A
        # directory without a lock is being made. Everybody may write to a directory for temporary files: links there
        # are not followed.
        with suppress(OSError):
            found = os.lstat(left)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            lock = os.open(left / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(lock)
