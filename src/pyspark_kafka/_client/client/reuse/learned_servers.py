"""Brokers that clients have learned of, for new clients: in memory, and in a file for the other processes of a machine.

Bootstrap servers may retire while a query runs. Spark starts Python processes at any time, for planning, tasks and
commits, and ends idle ones: such a process would know only the bootstrap servers.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

Server = tuple[str, int]

_PREFIX = "pyspark-kafka-brokers-"
# Spark names a directory so that belongs to one application, and that it removes with it.
_DIRECTORY_OF_SPARK = "blockmgr-"
# The number of clusters whose brokers are remembered.
_MAX_CLUSTERS = 64
_MAX_SERVERS = 16
_MAX_FILE_BYTES = 16 * 1024


def application_directory() -> Path | None:
    """Return a directory that the processes of this application share on this machine; None if there is none."""
    if os.name != "posix":
        # Files there have no owner to check.
        return None
    places = map(Path, os.environ.get("SPARK_LOCAL_DIRS", "").split(","))
    return next((place for place in places if place.name.startswith(_DIRECTORY_OF_SPARK)), None)


class LearnedServers:
    """Some brokers of each cluster, by its bootstrap servers.

    Runs on: driver and executor; any thread. Reads or writes a small file for a cluster new to this process,
    and writes it again when one of the remembered brokers is gone. A file is a help: one that cannot be read or written
    changes nothing.

    Args:
        directory: of the files; None for memory only.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        # Never changed, only replaced: so a thread, or a forked child, sees the old or the new one, and needs no lock.
        self._servers: dict[tuple[Server, ...], tuple[Server, ...]] = {}

    def get(self, bootstrap: tuple[Server, ...]) -> tuple[Server, ...]:
        """Return the brokers that this process has learned of, or else its neighbours."""
        return self._servers.get(bootstrap) or self.newest(bootstrap)

    def newest(self, bootstrap: tuple[Server, ...]) -> tuple[Server, ...]:
        """Return the brokers that any of the processes has learned of last; reads the file."""
        stored = self._read(bootstrap)
        if stored:
            self._remember(bootstrap, stored)
        return stored or self._servers.get(bootstrap, ())

    def put(self, bootstrap: tuple[Server, ...], servers: tuple[Server, ...]) -> None:
        """Remember brokers, also for the other processes."""
        if servers and self._servers.get(bootstrap) != servers:
            self._remember(bootstrap, servers)
            self._write(bootstrap, servers)

    def _remember(self, bootstrap: tuple[Server, ...], servers: tuple[Server, ...]) -> None:
        others = [item for item in self._servers.items() if item[0] != bootstrap]
        self._servers = dict([*others[-(_MAX_CLUSTERS - 1) :], (bootstrap, servers)])

    def _path(self, directory: Path, bootstrap: tuple[Server, ...]) -> Path:
        return directory / f"{_PREFIX}{hashlib.sha256(repr(bootstrap).encode()).hexdigest()[:16]}"

    def _read(self, bootstrap: tuple[Server, ...]) -> tuple[Server, ...]:
        if self._directory is None:
            return ()
        with suppress(OSError, ValueError):
            descriptor = os.open(self._path(self._directory, bootstrap), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                # Another user must not lead this process to a broker.
                if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                    return _parse(file.read(_MAX_FILE_BYTES))
        return ()

    def _write(self, bootstrap: tuple[Server, ...], servers: tuple[Server, ...]) -> None:
        if self._directory is None:
            return
        with suppress(OSError):
            path = self._path(self._directory, bootstrap)
            descriptor, name = tempfile.mkstemp(prefix=_PREFIX, dir=self._directory)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(servers, file)
                # A reader sees the old file or the new one.
                Path(name).replace(path)
            except OSError:
                Path(name).unlink()
                raise


def _parse(text: bytes) -> tuple[Server, ...]:
    """Return the servers of a file.

    Raises:
        ValueError: the text has another form.
    """
    try:
        parsed = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(parsed, list):
        raise ValueError("no list")  # noqa: TRY004 - as for text that is not JSON
    servers: list[Server] = []
    for each in parsed[:_MAX_SERVERS]:
        match each:
            case [str(host), int(port)] if host and 0 < port < 65_536:
                servers.append((host, port))
            case _:
                raise ValueError("no server")
    return tuple(servers)
