"""A table of an SQL database as an exactly-once sink: PostgreSQL by psycopg, SQLite by the standard library.

    python examples/sql_sink.py                                        # SQLite, in a directory that is removed
    python examples/sql_sink.py --url postgresql://me@localhost/mine   # the password: PGPASSWORD, or ~/.pgpass

As a script it kills the driver of a query with kill -9, starts the query again, and counts the rows.

What it shows: a target with transactions is an exactly-once sink if rows and log become visible together.

1. Each attempt of a task stages its rows, under an id of its own, in `<table>_staged`.
2. The driver's commit is one transaction. It moves the rows of the attempts that Spark names into the table, and writes
   the epoch into `<table>_commits`. The same commit again finds its epoch and does nothing; other rows for a committed
   epoch are an error.
3. Each commit removes what dead attempts of its query have staged. What a dead query or batch write has staged goes
   after a week.

What it promises: readers of the table see each micro-batch as a whole, and once, whatever is killed when. A batch write
is one transaction too, but a program that runs again writes again. `mode("overwrite")` and complete mode replace all
rows in that transaction.

What it needs: the table, and the right to create the other two; remove `<table>_staged` if the columns of the table
change. The checkpoint location is the name of a query: set the option `checkpointLocation` also where a default is
configured, and use a new location for a query that begins again. SQLite takes numbers, text and bytes, on one machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from pyspark_kafka import as_data_source
from pyspark_kafka.connector import (
    BatchWrite,
    DataWriter,
    DataWriterFactory,
    StreamingDataWriterFactory,
    SupportsTruncate,
    SupportsWrite,
    TableCapability,
    Write,
    WriterCommitMessage,
)
from pyspark_kafka.toolkit import CommitState, EpochLog, EpochRecord, IdempotentStreamingWrite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_kafka.connector import LogicalWriteInfo, PhysicalWriteInfo

WEEK_S = 7 * 24 * 60 * 60


@dataclass(frozen=True)
class Target:
    """The table, the columns of it that are written, and the way to the database. DB-API, in SQL that both speak.

    The databases differ in `mark`, `quote` and `transaction`, and nowhere else.
    """

    url: str
    password: str | None = field(repr=False)
    table: str
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.url.startswith(("sqlite:", "postgresql://")):
            raise ValueError("Option 'url' must begin with sqlite: or postgresql://")
        if "password=" in self.url or ":" in self.url.removeprefix("postgresql://").rpartition("@")[0]:
            raise ValueError("Set the password by option 'password': urls are shown.")

    @property
    def mark(self) -> str:
        """What stands for a value in a statement."""
        return "?" if self.url.startswith("sqlite:") else "%s"

    def quote(self, name: str) -> str:
        """Return a name for a statement, whatever characters it has."""
        quoted = '"{}"'.format(name.replace('"', '""'))
        return quoted if self.mark == "?" else quoted.replace("%", "%%")

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Return a cursor whose statements take effect together at the end, or not at all after an error."""
        if self.mark == "?":
            # A change waits for the lock at its beginning, not in the middle, where it could only fail.
            connection: Any = sqlite3.connect(self.url[7:], timeout=60, isolation_level="IMMEDIATE")
        else:
            import psycopg  # SQLite works without

            connection = psycopg.connect(self.url, password=self.password, connect_timeout=10)
        with closing(connection), connection:
            yield connection.cursor()

    def sql(self, statement: str, values: int = 0) -> str:
        """Return a statement with names for `{target}`, `{staged}`, `{commits}`, `{columns}`, and marks for `?`.

        `{values}` are this number of marks.
        """
        tables = {"target": self.table, "staged": f"{self.table}_staged", "commits": f"{self.table}_commits"}
        return statement.replace("?", self.mark).format(
            **{each: ".".join(map(self.quote, name.split("."))) for each, name in tables.items()},
            columns=", ".join(map(self.quote, self.columns)),
            values=", ".join([self.mark] * values),
        )

    def run(self, cursor: Any, statement: str, *values: object) -> Any:
        """Execute a statement, and return the cursor."""
        cursor.execute(self.sql(statement, len(values)), values)
        return cursor

    def prepare(self) -> None:
        """Create the tables beside the table, unless they are there, and remove what nobody will commit."""
        with self.transaction() as cursor:
            self.run(
                cursor,
                "CREATE TABLE IF NOT EXISTS {staged} AS SELECT CAST('' AS TEXT) AS staged_query,"
                " CAST(0 AS BIGINT) AS staged_epoch, CAST('' AS TEXT) AS staged_by, CAST(0 AS BIGINT) AS staged_at,"
                " t.* FROM {target} t WHERE 1 = 0",
            )
            self.run(
                cursor,
                "CREATE TABLE IF NOT EXISTS {commits} (query TEXT, epoch BIGINT, commit_id TEXT, state TEXT,"
                " committed_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (query, epoch))",
            )
            self.run(cursor, "DELETE FROM {staged} WHERE staged_at < ?", int(time.time()) - WEEK_S)


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What an attempt has staged: its id, the number of rows, and the sum of their hashes."""

    by: str
    rows: int
    digest: int


class StagingWriter(DataWriter):
    """Stages the rows of one attempt. Each Arrow batch is a transaction, so that no lock is held for long."""

    def __init__(self, target: Target, query: str, epoch: int) -> None:
        self._target = target
        self._stage = (query, epoch, uuid.uuid4().hex, int(time.time()))
        self._rows = self._digest = 0

    def write(self, batch: pa.RecordBatch) -> None:
        rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        statement = "INSERT INTO {staged} (staged_query, staged_epoch, staged_by, staged_at, {columns}) "
        values = [(*self._stage, *row) for row in rows]
        with self._target.transaction() as cursor:
            cursor.executemany(self._target.sql(statement + "VALUES ({values})", 4 + batch.num_columns), values)
        self._rows += len(rows)
        self._digest += sum(int.from_bytes(hashlib.sha256(repr(row).encode()).digest(), "big") for row in rows)

    def commit(self) -> Staged:
        return Staged(self._stage[2], self._rows, self._digest)

    def abort(self) -> None:
        with self._target.transaction() as cursor:
            self._target.run(cursor, "DELETE FROM {staged} WHERE staged_by = ?", self._stage[2])

    def close(self) -> None:
        """Do nothing: no connection is kept."""


@dataclass(frozen=True)
class StagingWriters(StreamingDataWriterFactory, DataWriterFactory):
    """Makes the writers of streaming and of batch writes."""

    target: Target
    query: str

    def createWriter(self, partition_id: int, task_id: int, epoch_id: int = 0) -> StagingWriter:
        return StagingWriter(self.target, self.query, epoch_id)


class SqlEpochLog(EpochLog):
    """The commits of one query, in the database of the rows. It takes part in the transaction of `cursor`."""

    def __init__(self, target: Target, query: str) -> None:
        self._target, self._query = target, query
        self.cursor: Any = None

    def find(self, epoch_id: int) -> EpochRecord | None:
        statement = "SELECT commit_id, state FROM {commits} WHERE query = ? AND epoch = ?"
        found = self._run(statement, self._query, epoch_id).fetchone()
        return EpochRecord(epoch_id, found[0], CommitState(found[1])) if found else None

    def write(self, record: EpochRecord) -> None:
        # Of two drivers that commit an epoch at the same time, one fails at the primary key.
        if record.state is CommitState.PREPARED:
            statement = "INSERT INTO {commits} (commit_id, state, query, epoch) VALUES ({values})"
        else:
            statement = "UPDATE {commits} SET commit_id = ?, state = ? WHERE query = ? AND epoch = ?"
        self._run(statement, record.commit_id, record.state.value, self._query, record.epoch_id)

    def oldest(self) -> int | None:
        found = self._run("SELECT MIN(epoch) FROM {commits} WHERE query = ?", self._query).fetchone()
        return cast("int | None", found[0])

    def forget_before(self, epoch_id: int) -> None:
        self._run("DELETE FROM {commits} WHERE query = ? AND epoch < ?", self._query, epoch_id)

    def _run(self, statement: str, *values: object) -> Any:
        return self._target.run(self.cursor, statement, *values)


class SqlStreamingWrite(IdempotentStreamingWrite):
    """The micro-batches of one query. Rows and log share a transaction, so that no commit is ever in doubt."""

    def __init__(self, target: Target, query: str, *, replace: bool) -> None:
        self._epochs = SqlEpochLog(target, query)
        super().__init__(self._epochs)
        self._target, self._query, self._replace = target, query, replace

    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StagingWriters:
        self._target.prepare()
        return StagingWriters(self._target, self._query)

    def commit_id(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> str:
        # Equal for equal rows, in any order, by any attempt.
        staged = cast("Sequence[Staged]", messages)
        return f"{sum(each.rows for each in staged)}:{sum(each.digest for each in staged) % 2**256:064x}"

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        with self._target.transaction() as self._epochs.cursor:
            super().commit(epoch_id, messages)
            self._clear(self._epochs.cursor, epoch_id)

    def commit_once(
        self, epoch_id: int, commit_id: str, messages: Sequence[WriterCommitMessage], *, in_doubt: bool
    ) -> None:
        staged = [message for message in cast("Sequence[Staged]", messages) if message.rows]
        expected = sum(message.rows for message in staged)
        if self._replace:
            self._target.run(self._epochs.cursor, "DELETE FROM {target}")
        if staged:
            statement = "INSERT INTO {target} ({columns}) SELECT {columns} FROM {staged} WHERE staged_by IN ({values})"
            moved = self._target.run(self._epochs.cursor, statement, *(message.by for message in staged)).rowcount
            if moved != expected:
                raise RuntimeError(
                    f"Epoch {epoch_id}: tasks staged {expected} rows, and {self._target.table}_staged has {moved} of "
                    "them. Nothing was committed. Hint: Check that nothing else deletes rows there."
                )

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        with self._target.transaction() as cursor:
            self._clear(cursor, epoch_id)

    def _clear(self, cursor: Any, epoch_id: int) -> None:
        statement = "DELETE FROM {staged} WHERE staged_query = ? AND staged_epoch <= ?"
        self._target.run(cursor, statement, self._query, epoch_id)


class SqlBatchWrite(BatchWrite):
    """A batch write: the only epoch of a query of its own."""

    def __init__(self, target: Target, *, replace: bool) -> None:
        self._only = SqlStreamingWrite(target, f"batch {uuid.uuid4().hex}", replace=replace)

    def createBatchWriterFactory(self, info: PhysicalWriteInfo) -> StagingWriters:
        return self._only.createStreamingWriterFactory(info)

    def commit(self, messages: Sequence[WriterCommitMessage]) -> None:
        self._only.commit(0, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._only.abort(0, messages)


class SqlWrite(SupportsTruncate, Write):
    """The builder of one write, and the write."""

    def __init__(self, info: LogicalWriteInfo) -> None:
        options = info.options
        self._target = Target(options["url"], options.get("password"), options["table"], tuple(info.schema.names))
        self._query = options.get("checkpointLocation", "")
        self._replace = False

    def truncate(self) -> SqlWrite:
        self._replace = True
        return self

    def build(self) -> Write:
        return self

    def toBatch(self) -> BatchWrite:
        return SqlBatchWrite(self._target, replace=self._replace)

    def toStreaming(self) -> SqlStreamingWrite:
        if not self._query:
            raise ValueError("Set the option 'checkpointLocation': it is the name of the query in the log of commits.")
        return SqlStreamingWrite(self._target, self._query, replace=self._replace)


class SqlTable(SupportsWrite):
    """`format("sql")`, with the options `url`, `table`, and, for PostgreSQL, `password`."""

    def name(self) -> str:
        return "sql"

    def schema(self, options: object) -> pa.Schema:
        return pa.schema([])  # of reads; this table is only written

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset({TableCapability.BATCH_WRITE, TableCapability.STREAMING_WRITE, TableCapability.TRUNCATE})

    def newWriteBuilder(self, info: LogicalWriteInfo) -> SqlWrite:
        return SqlWrite(info)


# From here on: the demonstration.

FILES, ROWS = 6, 100


def drive(url: str, table: str, place: str) -> None:
    """Be the driver: write the files of a directory into the table, one file in each micro-batch."""
    from pyspark.sql import SparkSession  # the process that kills needs no Spark

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.dataSource.register(as_data_source(SqlTable()))
    rows = spark.readStream.schema("number LONG, square LONG").option("maxFilesPerTrigger", 1).json(f"{place}/files")
    query = rows.repartition(2).writeStream.format("sql").options(url=url, table=table)
    query.option("checkpointLocation", f"{place}/checkpoint").trigger(availableNow=True).start().awaitTermination()


def demonstrate(url: str, place: Path) -> None:
    """Kill a driver, start it again, and count."""
    target = Target(url, None, f"squares-{uuid.uuid4().hex[:8]}", ("number", "square"))
    command = [sys.executable, __file__, "--drive", url, target.table, str(place)]

    def count(statement: str) -> int:
        with target.transaction() as cursor:
            return int(target.run(cursor, f"SELECT COUNT({statement}").fetchone()[0])

    def report(when: str) -> None:
        epochs, rows, different = map(
            count, ("*) FROM {commits}", "*) FROM {target}", "DISTINCT number) FROM {target}")
        )
        print(f"{when}: {epochs} epochs are committed; the table has {rows} rows, {different} of them different.")

    (place / "files").mkdir()
    for file in range(FILES):
        rows = [{"number": number, "square": number**2} for number in range(file * ROWS, (file + 1) * ROWS)]
        (place / "files" / f"{file}.json").write_text("\n".join(map(json.dumps, rows)))
    with target.transaction() as cursor:
        target.run(cursor, "CREATE TABLE {target} (number BIGINT, square BIGINT)")
    target.prepare()
    print(f"A query writes {FILES} micro-batches of {ROWS} rows into table {target.table}.", flush=True)

    with (place / "spark.log").open("w+") as log:
        for when, kill in (("After kill -9 of the driver", True), ("After the query ran again", False)):
            driver = subprocess.Popen(command, stderr=log, start_new_session=True)
            try:
                while driver.poll() is None and not (kill and count("*) FROM {commits}") >= FILES // 3):
                    time.sleep(0.02)
            finally:
                if driver.poll() is None:
                    os.killpg(driver.pid, signal.SIGKILL)
            if driver.wait() not in {0, -signal.SIGKILL}:
                log.seek(0)
                sys.exit(log.read())
            report(when)
    with target.transaction() as cursor:
        for table in ("{target}", "{staged}", "{commits}"):
            target.run(cursor, f"DROP TABLE {table}")


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description="Write into a database exactly once, through a kill -9 of the driver.")
    parser.add_argument("--url", help="postgresql://user@host/database; without it, SQLite in a temporary directory")
    parser.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.drive:
        drive(*arguments.drive)
    else:
        with tempfile.TemporaryDirectory() as place:
            demonstrate(arguments.url or f"sqlite:{place}/sql.db", Path(place))


if __name__ == "__main__":
    main()
