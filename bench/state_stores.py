"""Embedded stores that state by key could be kept in, each behind the same few calls, for bench/keyed_state.py.

Each merges durably: it is flushed to the disk when `merge` returns. What a store has for snapshots is used: RocksDB
links its files, LMDB and SQLite copy theirs.
"""

from __future__ import annotations

import shutil
import sqlite3
from abc import ABC, abstractmethod
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark_kafka.toolkit import KeyedState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    Combine = Callable[[bytes, bytes, bytes], bytes]

# What each may keep in memory; the operating system's cache of files comes on top.
CACHE_BYTES = 64 * 1024 * 1024
_READ_AT_ONCE = 500


class Store(ABC):
    """State by key in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True)

    @abstractmethod
    def load(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Fill the empty store with rows, in the order of their keys."""

    @abstractmethod
    def merge(self, updates: Mapping[bytes, bytes], combine: Combine) -> None:
        """Combine new values with old ones, durably."""

    @abstractmethod
    def snapshot(self) -> None:
        """Make a state that can be restored."""

    @abstractmethod
    def restore(self) -> None:
        """Go back to the last snapshot."""

    @abstractmethod
    def get(self, key: bytes) -> bytes | None:
        """Return a value."""

    def close(self) -> None:  # noqa: B027 - a dictionary has nothing to release
        """Release files."""

    def size_bytes(self) -> int:
        """Return what the store takes on the disk; of a file that is linked twice, once."""
        files = {}
        for path in self.directory.rglob("*"):
            found = path.stat()
            if path.is_file():
                # LMDB's file has holes.
                files[found.st_ino] = min(found.st_size, found.st_blocks * 512)
        return sum(files.values())


class PlainDict(Store):
    """A dictionary of this process: not durable, all in memory; a snapshot is a pickle."""

    def load(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Fill it."""
        self.values = dict(rows)

    def merge(self, updates: Mapping[bytes, bytes], combine: Combine) -> None:
        """Combine in memory."""
        values = self.values
        for key, new in updates.items():
            old = values.get(key)
            values[key] = new if old is None else combine(key, old, new)

    def snapshot(self) -> None:
        """Pickle all of it."""
        import os  # noqa: PLC0415
        import pickle  # noqa: PLC0415

        with (self.directory / "state.pickle").open("wb") as file:
            pickle.dump(self.values, file, protocol=5)
            file.flush()
            os.fsync(file.fileno())

    def restore(self) -> None:
        """Read the pickle."""
        import pickle  # noqa: PLC0415

        self.values = pickle.loads((self.directory / "state.pickle").read_bytes())  # noqa: S301 - our own

    def get(self, key: bytes) -> bytes | None:
        """Return a value."""
        return self.values.get(key)


class Toolkit(Store):
    """The `KeyedState` of this package."""

    def load(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Merge them in epochs, as a query would."""
        self._state = KeyedState(self.directory, cache_bytes=CACHE_BYTES)
        self._epoch, source = -1, iter(rows)
        while part := dict(islice(source, 100_000)):
            self._epoch += 1
            self._state.merge(self._epoch, part)

    def merge(self, updates: Mapping[bytes, bytes], combine: Combine) -> None:
        """Merge the next epoch."""
        self._epoch += 1
        self._state.merge(self._epoch, updates, combine)

    def snapshot(self) -> None:
        """Make one."""
        self._state.snapshot()
        self._kept = self._epoch

    def restore(self) -> None:
        """Go back."""
        self._state.restore(self._kept)
        self._epoch = self._kept

    def get(self, key: bytes) -> bytes | None:
        """Return a value."""
        return self._state.get(key)

    def close(self) -> None:
        """Close it."""
        self._state.close()


class Sqlite(Store):
    """SQLite alone.

    Args:
        directory: of it.
        page: bytes of a page.
        journal: `WAL`, or `DELETE` for a journal for taking back, without which SQLite is not durable.
        rowid: rows by number with an index of keys, rather than rows by key.
    """

    def __init__(self, directory: Path, page: int = 4096, journal: str = "WAL", *, rowid: bool = False) -> None:
        super().__init__(directory)
        self._database = sqlite3.connect(directory / "state.sqlite", isolation_level=None)
        self._database.execute(f"PRAGMA page_size = {page}")
        self._database.execute(f"PRAGMA journal_mode = {journal}")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute(f"PRAGMA cache_size = -{CACHE_BYTES // 1024}")
        self._database.execute(
            f"CREATE TABLE state (key BLOB PRIMARY KEY, value BLOB NOT NULL) {'' if rowid else 'WITHOUT ROWID'}"
        )

    def load(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Insert in one transaction."""
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("INSERT INTO state VALUES (?, ?)", rows)

    def merge(self, updates: Mapping[bytes, bytes], combine: Combine) -> None:
        """Read the old values, write the new ones in the order of the keys."""
        values, keys = dict(updates), sorted(updates)
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            for begin in range(0, len(keys), _READ_AT_ONCE):
                part = keys[begin : begin + _READ_AT_ONCE]
                marks = ",".join("?" * len(part))
                statement = f"SELECT key, value FROM state WHERE key IN ({marks})"  # noqa: S608
                for key, old in self._database.execute(statement, part):
                    values[key] = combine(key, old, values[key])
            self._database.executemany(
                "INSERT OR REPLACE INTO state VALUES (?, ?)", ((key, values[key]) for key in keys)
            )

    def snapshot(self) -> None:
        """Copy all pages."""
        copy = self.directory / "copy.sqlite"
        copy.unlink(missing_ok=True)
        self._database.execute("VACUUM INTO ?", (str(copy),))
        _flush(copy)

    def restore(self) -> None:
        """Copy all pages back."""
        source = sqlite3.connect(self.directory / "copy.sqlite")
        source.backup(self._database)
        source.close()

    def get(self, key: bytes) -> bytes | None:
        """Return a value."""
        row = self._database.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def close(self) -> None:
        """Close it."""
        self._database.close()


class Lmdb(Store):
    """LMDB, by the package `lmdb`; its cache is the operating system's."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._environment = self._open()

    def _open(self) -> Any:
        import lmdb  # noqa: PLC0415 - not always installed

        return lmdb.open(str(self.directory / "state"), map_size=1 << 36)

    def load(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Append in one transaction."""
        with self._environment.begin(write=True) as transaction, transaction.cursor() as cursor:
            cursor.putmulti(rows, append=True)

    def merge(self, updates: Mapping[bytes, bytes], combine: Combine) -> None:
        """Read the old values, write the new ones in the order of the keys."""
        values, keys = dict(updates), sorted(updates)
        with self._environment.begin(write=True) as transaction, transaction.cursor() as cursor:
            for key, old in cursor.getmulti(keys):
                values[key] = combine(key, old, values[key])
            cursor.putmulti([(key, values[key]) for key in keys])

    def snapshot(self) -> None:
        """Copy all pages in use."""
        copy = self.directory / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        self._environment.copy(str(copy))
        _flush(copy / "data.mdb")

    def restore(self) -> None:
        """Copy the file back."""
        self._environment.close()
        shutil.copyfile(self.directory / "copy" / "data.mdb", self.directory / "state" / "data.mdb")
        _flush(self.directory / "state" / "data.mdb")
        self._environment = self._open()

    def get(self, key: bytes) -> bytes | None:
        """Return a value."""
        with self._environment.begin() as transaction:
            found: bytes | None = transaction.get(key)
            return found

    def close(self) -> None:
        """Close it."""
        self._environment.close()


class RocksDb(Store):
    """RocksDB, by the package `rocksdict`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._path = directory / "state"
        self._database = self._open()

    def _open(self) -> Any:
        import rocksdict  # noqa: PLC0415 - not always installed

        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_block_cache(rocksdict.Cache(CACHE_BYTES))
        blocks.set_bloom_filter(10, False)
        options.set_block_based_table_factory(blocks)
        database = rocksdict.Rdict(str(self._path), options)
        writes = rocksdict.WriteOptions()
        writes.sync = True
        database.set_write_options(writes)
        return database

    def load(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Write in batches, and let it sort its files out."""
        import rocksdict  # noqa: PLC0415

        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, value in rows:
            batch.put(key, value)
            if batch.len() == 100_000:
                self._database.write(batch)
                batch = rocksdict.WriteBatch(raw_mode=True)
        self._database.write(batch)
        self._database.flush()
        self._database.compact_range(None, None)

    def merge(self, updates: Mapping[bytes, bytes], combine: Combine) -> None:
        """Read the old values, write all new ones as one batch."""
        import rocksdict  # noqa: PLC0415

        keys = sorted(updates)
        batch = rocksdict.WriteBatch(raw_mode=True)
        for begin in range(0, len(keys), _READ_AT_ONCE):
            part = keys[begin : begin + _READ_AT_ONCE]
            for key, old in zip(part, self._database.get(part), strict=True):
                new = updates[key]
                batch.put(key, new if old is None else combine(key, old, new))
        self._database.write(batch)

    def snapshot(self) -> None:
        """Link the files, and flush what is in memory alone."""
        import rocksdict  # noqa: PLC0415

        copy = self.directory / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        rocksdict.Checkpoint(self._database).create_checkpoint(str(copy))

    def restore(self) -> None:
        """Open a copy of the snapshot."""
        self._database.close()
        shutil.rmtree(self._path)
        self._path.mkdir()
        for file in (self.directory / "copy").iterdir():
            # Tables never change; the rest is small.
            target = self._path / file.name
            if file.suffix == ".sst":
                target.hardlink_to(file)
            else:
                shutil.copyfile(file, target)
        self._database = self._open()

    def get(self, key: bytes) -> bytes | None:
        """Return a value."""
        found: bytes | None = self._database.get(key)
        return found

    def close(self) -> None:
        """Close it."""
        self._database.close()


def _flush(path: Path) -> None:
    import os  # noqa: PLC0415

    with path.open("rb") as file:
        os.fsync(file.fileno())


STORES: dict[str, Callable[[Path], Store]] = {
    "toolkit": Toolkit,
    "dict": PlainDict,
    "sqlite": Sqlite,
    "sqlite-no-wal": lambda directory: Sqlite(directory, journal="DELETE"),
    "sqlite-1k": lambda directory: Sqlite(directory, page=1024),
    "sqlite-16k": lambda directory: Sqlite(directory, page=16384),
    "sqlite-rowid": lambda directory: Sqlite(directory, rowid=True),
    "lmdb": Lmdb,
    "rocksdb": RocksDb,
}
