"""State by key for aggregations: merged atomically with its epoch, restored with it, larger than memory.

The store is SQLite, of Python's standard library: one file, transactions, and a cache of bounded size.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_kafka.errors import CommitConflictError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from typing_extensions import Self

_FORM = 1
_SNAPSHOT = "state-{epoch}.sqlite"
_CHUNK = 500


class KeyedState:
    """Values by key, as bytes, as they are after an epoch.

    `merge` applies one epoch as a whole: a crash leaves the state before it or after it. The same epoch again is a
    no-op, so a micro-batch that runs again does not count twice; an epoch that is not the next one is an error.
    `snapshot` writes a copy beside, which `restore` goes back to.

    Runs on: one process; methods block on a local disk. Not thread-safe, and does not pickle. Memory is bounded by
    `cache_bytes`, whatever the number of keys.

    Args:
        directory: local and of this state alone; made if it is missing.
        cache_bytes: pages that SQLite keeps in memory.
        kept_snapshots: older ones are removed.

    Raises:
        StateError: from every method: the file is damaged, cut short, or of something else.
    """

    def __init__(self, directory: str | Path, *, cache_bytes: int = 64 * 1024 * 1024, kept_snapshots: int = 3) -> None:
        if kept_snapshots < 1:
            raise ValueError("kept_snapshots must be positive")
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._cache_kib = max(1, cache_bytes // 1024)
        self._kept = kept_snapshots
        self._database = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def epoch_id(self) -> int | None:
        """The epoch that was merged last; None if none was."""
        row = self._run("SELECT epoch FROM progress").fetchone()
        return None if row is None else int(row[0])

    def __len__(self) -> int:
        return int(self._run("SELECT count(*) FROM state").fetchone()[0])

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None if it has none."""
        row = self._run("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def get_all(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the values of those of the keys that have one."""
        wanted, found = list(dict.fromkeys(keys)), {}
        for begin in range(0, len(wanted), _CHUNK):
            part = wanted[begin : begin + _CHUNK]
            marks = ",".join("?" * len(part))
            for key, value in self._run(f"SELECT key, value FROM state WHERE key IN ({marks})", part):  # noqa: S608
                found[bytes(key)] = bytes(value)
        return found

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Return all keys with their values, in the order of the keys. The state must not change meanwhile."""
        for key, value in self._run("SELECT key, value FROM state ORDER BY key"):
            yield bytes(key), bytes(value)

    def merge(
        self,
        epoch_id: int,
        updates: Mapping[bytes, bytes],
        combine: Callable[[bytes, bytes, bytes], bytes | None] | None = None,
        *,
        remove: Iterable[bytes] = (),
    ) -> bool:
        """Apply one epoch as a whole, durably.

        Args:
            epoch_id: the one after the last, any for the first, or the last one again, which is a no-op.
            updates: new values by key.
            combine: `(key, old, new) -> value` for a key that has a value; None removes it. Without it the new one
                replaces the old one.
            remove: keys to remove, such as those of windows that are over.

        Returns:
            False if the epoch was merged before.

        Raises:
            CommitConflictError: the epoch is older than the last one, or one was left out.
        """
        last = self.epoch_id
        if last is not None and epoch_id == last:
            return False
        if last is not None and epoch_id != last + 1:
            raise CommitConflictError(
                f"Epoch {epoch_id} cannot be merged into a state of epoch {last}: the next one is {last + 1}. "
                "The state did not change.",
                condition="STATE_EPOCH_OUT_OF_ORDER",
                hint="Restore the snapshot of the epoch before it.",
                facts={"epoch": epoch_id, "last": last},
            )
        dropped = list(remove)
        values: dict[bytes, bytes] = dict(updates)
        if combine is not None:
            for key, old in self.get_all(updates).items():
                combined = combine(key, old, updates[key])
                if combined is None:
                    del values[key]
                    dropped.append(key)
                else:
                    values[key] = combined
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany("DELETE FROM state WHERE key = ?", ((key,) for key in dropped))
                # In the order of the keys: neighbours are on one page.
                self._database.executemany(
                    "INSERT INTO state VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    sorted(values.items()),
                )
                self._database.execute(
                    "INSERT INTO progress VALUES (0, ?) ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch",
                    (epoch_id,),
                )
        except sqlite3.Error as error:
            raise self._failure(f"merging epoch {epoch_id}", error) from error
        return True

    def snapshot(self) -> Path:
        """Write a copy of the state under the number of its epoch, remove old copies, and return its path.

        The copy is complete when its name is there: it is written beside and renamed.
        """
        epoch = self.epoch_id
        if epoch is None:
            raise StateError(
                "The state has no epoch yet, so there is nothing to snapshot.",
                condition="STATE_EMPTY",
                hint="Merge an epoch first.",
            )
        path = self._directory / _SNAPSHOT.format(epoch=epoch)
        beside = path.with_suffix(".tmp")
        beside.unlink(missing_ok=True)
        try:
            self._database.execute("VACUUM INTO ?", (str(beside),))
            _sync(beside)
            beside.replace(path)
            _sync(self._directory)
        except (sqlite3.Error, OSError) as error:
            raise self._failure(f"writing the snapshot of epoch {epoch}", error) from error
        for old in self.snapshots()[: -self._kept]:
            (self._directory / _SNAPSHOT.format(epoch=old)).unlink(missing_ok=True)
        return path

    def snapshots(self) -> list[int]:
        """Return the epochs of which there is a snapshot, lowest first."""
        names = (path.name for path in self._directory.glob(_SNAPSHOT.format(epoch="*")))
        numbers = (name.removeprefix("state-").removesuffix(".sqlite") for name in names)
        return sorted(int(number) for number in numbers if number.isdecimal())

    def restore(self, epoch_id: int) -> None:
        """Go back to the snapshot of an epoch; the present state is given up once the snapshot is found to be sound.

        Raises:
            StateError: there is no such snapshot, or it is damaged; the present state is unchanged.
        """
        path = self._directory / _SNAPSHOT.format(epoch=epoch_id)
        if not path.exists():
            raise StateError(
                f"There is no snapshot of epoch {epoch_id} in {self._directory}. The state did not change.",
                condition="STATE_SNAPSHOT_MISSING",
                hint=f"Choose one of {self.snapshots()}.",
                facts={"epoch": epoch_id},
            )
        try:
            with closing(sqlite3.connect(path)) as source:
                if source.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                    raise sqlite3.DatabaseError("its pages are damaged")
                if source.execute("SELECT epoch FROM progress").fetchone() != (epoch_id,):
                    raise sqlite3.DatabaseError("it is of another epoch")
                source.backup(self._database)
        except sqlite3.Error as error:
            raise self._failure(f"restoring the snapshot of epoch {epoch_id}", error) from error

    def close(self) -> None:
        """Release the file. May be called more than once."""
        self._database.close()

    def _open(self) -> sqlite3.Connection:
        path = self._directory / "state.sqlite"
        try:
            database = sqlite3.connect(path, isolation_level=None)
            form = database.execute("PRAGMA user_version").fetchone()[0]
            if form not in (0, _FORM):
                raise sqlite3.DatabaseError(f"its form is {form}, not {_FORM}")
            # A crash of the machine keeps what a finished merge wrote: the log is flushed at each commit.
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute(f"PRAGMA cache_size = -{self._cache_kib}")
            database.execute(
                "CREATE TABLE IF NOT EXISTS state (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
            )
            database.execute(
                "CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY CHECK (id = 0), epoch INTEGER NOT NULL)"
            )
            database.execute(f"PRAGMA user_version = {_FORM}")
        except sqlite3.Error as error:
            raise self._failure("opening the state", error) from error
        return database

    def _run(self, statement: str, arguments: object = ()) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, arguments)  # type: ignore[arg-type]
        except sqlite3.Error as error:
            raise self._failure("reading the state", error) from error

    def _failure(self, step: str, error: Exception) -> StateError:
        return StateError(
            f"Keyed state in {self._directory}: {step} failed: {error}. The state is as it was before.",
            condition="STATE_FAILED",
            hint="Check the disk; restore a snapshot if the file is damaged.",
            facts={"directory": str(self._directory)},
        )


def _sync(path: Path) -> None:
    import os  # noqa: PLC0415

    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
