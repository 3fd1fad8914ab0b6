"""State by key for aggregations: merged atomically with its epoch, restored with it, larger than memory.

The store is SQLite, of Python's standard library: one file, transactions, and a cache of bounded size.
A merge writes to a small table, `changes`, and moves a part of it to the large one, `state`, one range of keys at a
time: keys that are far apart in the large table would each cost a page. A snapshot is a number: changes that are
younger than the oldest snapshot are not moved, so a restore drops what is younger than its own.
"""

# ruff: noqa: S608 - what is put into statements is written here, never a caller's
from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_kafka.errors import CommitConflictError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from typing_extensions import Self

_FORM = 2
_FILE = "state.sqlite"
_READ_AT_ONCE = 500
# The small table keeps this number of rows, some 20 MiB: enough for neighboring keys, which are moved together.
_MAX_CHANGES = 400_000
_MIN_MOVED = 1_000
# The log is written back at this size, so pages that change in each merge are written back once for several.
_LOG_PAGES = 16_384
_LOG_BYTES = _LOG_PAGES * 4096

_TABLES = (
    "CREATE TABLE IF NOT EXISTS state (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    # A key that is removed has no value. `since`: the number of the snapshot before the change, 0 if there was none.
    "CREATE TABLE IF NOT EXISTS changes (key BLOB, since INTEGER, value BLOB, PRIMARY KEY (key, since)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS snapshots (number INTEGER PRIMARY KEY, epoch INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY CHECK (id = 0), epoch INTEGER NOT NULL)",
)
# SQLite takes `value` from the row that has the maximum.
_NEWEST = "SELECT key, value, max(since) FROM changes"


class KeyedState:
    """Values by key, as bytes, as they are after an epoch.

    `merge` applies one epoch as a whole: a crash leaves the state before it or after it. The same epoch again is a
    no-op, so a micro-batch that runs again does not count twice; an epoch that is not the next one is an error.
    `snapshot` notes a state that `restore` goes back to. It costs no more for many keys than for few, so one can follow
    each merge; a restore takes as long as the changes since. Snapshots are part of the file: `copy_to` is for what must
    outlive its disk.

    Another object of the same process may read the same directory while one merges: it sees the merges that have ended.

    Runs on: one process; methods block on a local disk. One thread at a time, and does not pickle. Memory is bounded by
    `cache_bytes` and by the updates of one merge, whatever the number of keys.

    Args:
        directory: local and of this state alone; made if it is missing.
        cache_bytes: pages that SQLite keeps in memory.
        kept_snapshots: older ones are removed.
        durable: whether a crash of the machine keeps what a finished merge wrote. False for a state that is built again
            from elsewhere after a crash: merges do not wait for the disk.

    Raises:
        StateError: from every method: the file is damaged, cut short, or of something else.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        cache_bytes: int = 64 * 1024 * 1024,
        kept_snapshots: int = 3,
        durable: bool = True,
    ) -> None:
        if kept_snapshots < 1:
            raise ValueError("kept_snapshots must be positive")
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._cache_kib = max(1, cache_bytes // 1024)
        self._kept = kept_snapshots
        self._durable = durable
        self._database = self._open()
        # At most as many rows are in `changes` that could be moved.
        self._max_changes = int(self._run("SELECT count(*) FROM changes").fetchone()[0])
        self._next_moved = b""

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
        """Return the number of keys. Reads all of the file."""
        statement = (
            "SELECT (SELECT count(*) FROM state)"
            " + coalesce(sum((value IS NOT NULL) - EXISTS (SELECT 1 FROM state WHERE state.key = newest.key)), 0)"
            f" FROM ({_NEWEST} GROUP BY key) AS newest"
        )
        return int(self._run(statement).fetchone()[0])

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None if it has none."""
        return self.get_all([key]).get(key)

    def get_all(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the values of the keys that have one."""
        # Sorted: neighbours are on one page.
        wanted = sorted(set(keys))
        found: dict[bytes, bytes] = {}
        for begin in range(0, len(wanted), _READ_AT_ONCE):
            part = wanted[begin : begin + _READ_AT_ONCE]
            marks = ",".join("?" * len(part))
            newest = self._all(f"{_NEWEST} WHERE key IN ({marks}) GROUP BY key", part)
            found.update((key, value) for key, value, _ in newest if value is not None)
            left = set(part).difference(key for key, _, _ in newest)
            marks = ",".join("?" * len(left))
            found.update(self._all(f"SELECT key, value FROM state WHERE key IN ({marks})", sorted(left)))
        return found

    def items(self, prefix: bytes = b"", first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Return all keys with their values, in the order of the keys. The state must not change in the meantime.

        Args:
            prefix: only keys that begin with it; others are not read.
            first: only keys from the prefix and this on.
        """
        within, bounds = _range_of(prefix, first)
        changes = self._rows(f"{_NEWEST} WHERE {within} GROUP BY key ORDER BY key", bounds)
        change = next(changes, None)
        for key, value in self._rows(f"SELECT key, value FROM state WHERE {within} ORDER BY key", bounds):
            while change is not None and change[0] < key:
                if change[1] is not None:
                    yield change[0], change[1]
                change = next(changes, None)
            if change is None or change[0] != key:
                yield key, value
        while change is not None:
            if change[1] is not None:
                yield change[0], change[1]
            change = next(changes, None)

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
            remove: keys to remove, such as the keys of closed windows.

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
                parameters={"epoch": epoch_id, "last": last},
            )
        values: dict[bytes, bytes | None] = {**dict.fromkeys(remove), **updates}
        if any(values[key] is None for key in updates):
            raise TypeError("a value of an update is None; name the key in 'remove' to remove it")
        if combine is not None:
            for key, old in self.get_all(updates).items():
                values[key] = combine(key, old, updates[key])
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                since = self._database.execute("SELECT coalesce(max(number), 0) FROM snapshots").fetchone()[0]
                self._database.executemany(
                    "INSERT OR REPLACE INTO changes VALUES (?, ?, ?)",
                    ((key, since, values[key]) for key in sorted(values)),
                )
                self._move(len(values))
                self._database.execute("INSERT OR REPLACE INTO progress VALUES (0, ?)", (epoch_id,))
        except sqlite3.Error as error:
            raise self._failure(f"merging epoch {epoch_id}", error) from error
        return True

    def snapshot(self) -> int:
        """Record the state durably as a snapshot to return to, forget old snapshots, and return its epoch.

        Writes a few pages, whatever the size of the state. For an epoch that has one it does nothing.
        """
        epoch = self.epoch_id
        if epoch is None:
            raise StateError(
                "The state has no epoch yet, so there is nothing to snapshot.",
                condition="STATE_EMPTY",
                hint="Merge an epoch first.",
            )
        # Epochs rise, so the epoch of the last snapshot is the largest.
        if epoch not in self.snapshots():
            try:
                with self._database:
                    self._database.execute("BEGIN IMMEDIATE")
                    self._database.execute("INSERT INTO snapshots (epoch) VALUES (?)", (epoch,))
                    self._database.execute(
                        "DELETE FROM snapshots WHERE number NOT IN "
                        "(SELECT number FROM snapshots ORDER BY number DESC LIMIT ?)",
                        (self._kept,),
                    )
            except sqlite3.Error as error:
                raise self._failure(f"writing the snapshot of epoch {epoch}", error) from error
        return epoch

    def snapshots(self) -> list[int]:
        """Return the epochs of which there is a snapshot, lowest first."""
        return [int(epoch) for (epoch,) in self._all("SELECT epoch FROM snapshots ORDER BY number")]

    def restore(self, epoch_id: int) -> None:
        """Go back to the snapshot of an epoch, as a whole; the present state and younger snapshots are given up.

        Raises:
            StateError: there is no such snapshot, or the file is damaged; the present state is unchanged.
        """
        row = self._run("SELECT number FROM snapshots WHERE epoch = ?", (epoch_id,)).fetchone()
        if row is None:
            raise StateError(
                f"There is no snapshot of epoch {epoch_id} in {self._directory}. The state did not change.",
                condition="STATE_SNAPSHOT_MISSING",
                hint=f"Choose one of {self.snapshots()}.",
                parameters={"epoch": epoch_id},
            )
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.execute("DELETE FROM changes WHERE since >= ?", row)
                self._database.execute("DELETE FROM snapshots WHERE number > ?", row)
                self._database.execute("UPDATE progress SET epoch = ?", (epoch_id,))
        except sqlite3.Error as error:
            raise self._failure(f"restoring the snapshot of epoch {epoch_id}", error) from error

    def copy_to(self, directory: str | Path) -> Path:
        """Write the whole state with its snapshots to another directory, and return the file.

        `KeyedState(directory)` opens the copy. Takes as long as the state is large. The copy is complete when its name
        is there: it is written beside and renamed.

        Raises:
            StateError: the directory has a state already, or cannot be written.
        """
        target = Path(directory)
        path = target / _FILE
        if path.exists():
            raise StateError(
                f"{target} has a state already, so the one in {self._directory} was not copied there.",
                condition="STATE_COPY_EXISTS",
                hint="Copy to a new directory.",
                parameters={"directory": str(target)},
            )
        beside = path.with_suffix(".tmp")
        try:
            target.mkdir(parents=True, exist_ok=True)
            beside.unlink(missing_ok=True)
            self._database.execute("VACUUM INTO ?", (str(beside),))
            _sync(beside)
            beside.replace(path)
            _sync(target)
        except (sqlite3.Error, OSError) as error:
            raise self._failure(f"copying to {target}", error) from error
        return path

    def close(self) -> None:
        """Release the file. May be called more than once."""
        self._database.close()

    def _move(self, added: int) -> None:
        """Move the excess of changes, if there is one, to the large table: the changes of the next keys.

        Part of a merge's transaction. What is younger than the oldest snapshot stays.
        """
        self._max_changes += added
        if self._max_changes <= _MAX_CHANGES:
            return
        run = self._database.execute
        oldest = run("SELECT min(number) FROM snapshots").fetchone()[0]
        # Without a snapshot there is nothing to go back to.
        movable, bounds = ("TRUE", []) if oldest is None else ("since < ?", [oldest])
        count = f"SELECT count(*) FROM changes WHERE {movable}"
        self._max_changes = run(count, bounds).fetchone()[0]
        if self._max_changes <= _MAX_CHANGES:
            return
        number = max(_MIN_MOVED, self._max_changes - _MAX_CHANGES)
        movable, bounds = f"{movable} AND key >= ?", [*bounds, self._next_moved]
        end = run(
            f"SELECT key FROM changes WHERE {movable} ORDER BY key LIMIT 1 OFFSET ?", [*bounds, number]
        ).fetchone()
        if end is not None:
            movable, bounds = f"{movable} AND key < ?", [*bounds, end[0]]
        newest = f"{_NEWEST} WHERE {movable} GROUP BY key"
        run(f"INSERT OR REPLACE INTO state SELECT key, value FROM ({newest}) WHERE value IS NOT NULL", bounds)
        run(f"DELETE FROM state WHERE key IN (SELECT key FROM ({newest}) WHERE value IS NULL)", bounds)
        self._max_changes -= run(f"DELETE FROM changes WHERE {movable}", bounds).rowcount
        # After the last key the first ones are next.
        self._next_moved = b"" if end is None else end[0]

    def _open(self) -> sqlite3.Connection:
        try:
            # One thread at a time, any of them.
            database = sqlite3.connect(self._directory / _FILE, isolation_level=None, check_same_thread=False)
            form = database.execute("PRAGMA user_version").fetchone()[0]
            if form not in (0, _FORM):
                raise sqlite3.DatabaseError(f"its form is {form}, not {_FORM}")
            # A crash of the machine keeps what a finished merge wrote: the log is flushed at each commit.
            database.execute("PRAGMA journal_mode = WAL")
            database.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")
            database.execute(f"PRAGMA cache_size = -{self._cache_kib}")
            database.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            database.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
            for statement in _TABLES:
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {_FORM}")
        except sqlite3.Error as error:
            raise self._failure("opening the state", error) from error
        return database

    def _run(self, statement: str, arguments: object = ()) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, arguments)  # type: ignore[arg-type]
        except sqlite3.Error as error:
            raise self._failure("reading the state", error) from error

    def _rows(self, statement: str, arguments: object = ()) -> Iterator[Any]:
        rows = self._run(statement, arguments)
        while True:
            try:
                row = rows.fetchone()
            except sqlite3.Error as error:
                raise self._failure("reading the state", error) from error
            if row is None:
                return
            yield row

    def _all(self, statement: str, arguments: object = ()) -> list[Any]:
        try:
            return self._database.execute(statement, arguments).fetchall()  # type: ignore[arg-type]
        except sqlite3.Error as error:
            raise self._failure("reading the state", error) from error

    def _failure(self, step: str, error: Exception) -> StateError:
        return StateError(
            f"Keyed state in {self._directory}: {step} failed: {error}. The state is as it was before.",
            condition="STATE_FAILED",
            hint="Check the disk; if the file is damaged, replace it with a copy that copy_to() made.",
            parameters={"directory": str(self._directory)},
        )


def _range_of(prefix: bytes, first: bytes) -> tuple[str, list[bytes]]:
    """Return the condition that a key begins with a prefix and is not before another one, and its arguments."""
    begin = prefix + first
    if not begin:
        return "TRUE", []
    # The first key after all of them: the last byte that can grow, grown by one.
    shorter = prefix.rstrip(b"\xff")
    if not shorter:
        return "key >= ?", [begin]
    return "key >= ? AND key < ?", [begin, shorter[:-1] + bytes([shorter[-1] + 1])]


def _sync(path: Path) -> None:
    import os  # noqa: PLC0415

    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
