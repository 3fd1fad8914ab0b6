"""The example that writes into a database, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sql_sink
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sql_sink import SqlStreamingWrite, SqlTable, Staged, Target

from kit.fixtures.postgres import Postgres
from kit.programs.by_value import sent_by_value
from kit.programs.run import run_program
from pyspark_kafka import as_data_source
from pyspark_kafka.connector import LogicalWriteInfo, PhysicalWriteInfo, SupportsWrite
from pyspark_kafka.errors import CommitConflictError
from pyspark_kafka.testing.conformance import SinkContract
from pyspark_kafka.testing.conformance.killed import Steps, run_until_killed

POSTGRES = pytest.mark.full("The second database")
_EXAMPLE = Path(__file__).parents[3] / "examples" / "sql_sink.py"
# What breaks a statement that is put together from names as they are.
_COLUMNS = ('n"umber', "100%s ? {x}; DROP TABLE t --")


class Place:
    """A table of a name that needs quotes, in one of the databases."""

    def __init__(self, url: str, password: str | None = None) -> None:
        self.options = {"url": url, "table": f'Sp%s; "é" ?{{}}-{uuid.uuid4().hex[:8]}', "checkpointLocation": "/query"}
        if password:
            self.options["password"] = password
        self.target = Target(url, password, self.options["table"], _COLUMNS)
        number, text = map(self.target.quote, _COLUMNS)
        self._number = number
        with self.target.transaction() as cursor:
            cursor.execute(self.target.sql("CREATE TABLE {target} ") + f"({number} BIGINT, {text} TEXT)", ())

    def numbers(self, table: str = "{target}") -> list[int]:
        with self.target.transaction() as cursor:
            cursor.execute(f"SELECT {self._number} " + self.target.sql(f"FROM {table}"), ())
            return [row[0] for row in cursor.fetchall()]

    def commits(self) -> list[tuple[Any, ...]]:
        with self.target.transaction() as cursor:
            statement = "SELECT query, epoch, commit_id, state FROM {commits} ORDER BY query, epoch"
            return [tuple(row) for row in self.target.run(cursor, statement).fetchall()]

    def write(self, *, replace: bool = False) -> SqlStreamingWrite:
        return SqlStreamingWrite(self.target, "/query", replace=replace)

    def stage(self, epoch: int, *tasks: Sequence[int]) -> list[Staged]:
        """Have tasks stage rows of these numbers."""
        factory = self.write().createStreamingWriterFactory(PhysicalWriteInfo(len(tasks)))
        staged = []
        for task, numbers in enumerate(tasks):
            writer = factory.createWriter(task, task, epoch)
            for number in numbers:
                writer.write(pa.RecordBatch.from_pylist([row(number)], schema=SCHEMA))
            staged.append(writer.commit())
        return staged


SCHEMA = pa.schema([pa.field(_COLUMNS[0], pa.int64()), pa.field(_COLUMNS[1], pa.string())])


def row(number: int) -> dict[str, Any]:
    return {_COLUMNS[0]: number, _COLUMNS[1]: None if number % 7 == 0 else f"'; DROP TABLE %s ? -- {number}"}


class Contract(SinkContract):
    """The contract of a sink, over a place that the subclasses set."""

    place: Place

    def table(self) -> SupportsWrite:
        return SqlTable()

    def options(self) -> Mapping[str, str]:
        return self.place.options

    def schema(self) -> pa.Schema:
        return SCHEMA

    def row(self, number: int) -> Mapping[str, Any]:
        return row(number)

    def visible(self) -> Sequence[int]:
        return self.place.numbers()


class TestSqlite(Contract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.place = Place(f"sqlite:{tmp_path}/sql.db")


@POSTGRES
class TestPostgres(Contract):
    @pytest.fixture(autouse=True)
    def _place(self, postgres: Postgres) -> None:
        self.place = Place(postgres.url, postgres.password)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=POSTGRES)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return Place(f"sqlite:{tmp_path}/sql.db")
    server: Postgres = request.getfixturevalue("postgres")
    return Place(server.url, server.password)


def test_kill_before_any_statement_of_a_commit_loses_and_doubles_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for killed_before in range(20):
        epoch, number = killed_before, killed_before * 10

        def commit(steps: Steps, epoch: int = epoch, number: int = number) -> None:
            messages = place.stage(epoch, [number, number + 1], [number + 2])
            run = Target.run

            def run_or_die(target: Target, cursor: Any, statement: str, *values: object) -> Any:
                steps.next()
                return run(target, cursor, statement, *values)

            monkeypatch.setattr(Target, "run", run_or_die)
            place.write().commit(epoch, messages)

        ended = run_until_killed(commit, killed_before)
        # All or nothing, before the query runs again.
        visible = sorted(place.numbers())[3 * epoch :]
        assert visible == ([number, number + 1, number + 2] if ended else [])
        assert run_until_killed(commit, None)
        assert sorted(place.numbers()) == [each * 10 + n for each in range(epoch + 1) for n in range(3)]
        assert place.numbers("{staged}") == [], "what the dead driver's tasks have staged is still there"
        if ended:
            assert killed_before > 5
            return
    pytest.fail("the commit has no end")


def test_epoch_that_runs_again_may_have_other_order_and_tasks_and_no_other_rows(place: Place) -> None:
    place.write().commit(0, place.stage(0, [1, 2], [3]))
    place.write().commit(0, place.stage(0, [3], [], [2, 1]))
    assert sorted(place.numbers()) == [1, 2, 3]
    with pytest.raises(CommitConflictError, match="Nothing was committed"):
        place.write().commit(0, place.stage(0, [1, 2], [4]))
    assert sorted(place.numbers()) == [1, 2, 3]
    place.write().commit(1, place.stage(1, [4]))
    assert place.numbers("{staged}") == []
    assert [(query, epoch, state) for query, epoch, _, state in place.commits()] == [
        ("/query", 0, "committed"), ("/query", 1, "committed"),
    ]  # fmt: skip


def test_second_driver_that_commits_the_epoch_at_the_same_time_fails(place: Place) -> None:
    """Both have looked for the epoch before one of them writes it: the slower one finds the primary key taken."""
    messages, late = place.stage(0, [1]), place.stage(0, [1])
    slow, fast = place.write(), place.write()

    class Log(type(slow._epochs)):  # type: ignore[misc]
        def find(self, epoch_id: int) -> Any:
            found = super().find(epoch_id)
            fast.commit(0, messages)
            return found

    slow._log = Log(place.target, "/query")
    slow._epochs = slow._log
    with pytest.raises(Exception, match=r"(?i)unique"):
        slow.commit(0, late)
    assert place.numbers() == [1]


def test_rows_that_are_no_longer_staged_are_an_error_and_nothing_is_committed(place: Place) -> None:
    messages = place.stage(3, [1, 2], [3])
    with place.target.transaction() as cursor:
        place.target.run(cursor, "DELETE FROM {staged} WHERE staged_by = ?", messages[1].by)
    with pytest.raises(RuntimeError, match=r"Epoch 3: tasks staged 3 rows, and .*_staged has 2 of them"):
        place.write().commit(3, messages)
    assert (place.numbers(), place.commits()) == ([], [])


def test_staging_of_dead_attempts_and_of_dead_writes_is_removed(place: Place) -> None:
    place.stage(0, [1, 2])
    place.write().commit(0, place.stage(0, [1, 2]))
    assert place.numbers("{staged}") == []
    batch = SqlTable().newWriteBuilder(LogicalWriteInfo(place.options, SCHEMA)).toBatch()
    writer = batch.createBatchWriterFactory(PhysicalWriteInfo(1)).createWriter(0, 0)
    writer.write(pa.RecordBatch.from_pylist([row(9)], schema=SCHEMA))
    place.write().commit(1, place.stage(1, [3]))
    assert place.numbers("{staged}") == [9], "another write is not finished"
    with place.target.transaction() as cursor:
        place.target.run(cursor, "UPDATE {staged} SET staged_at = staged_at - ?", 8 * 24 * 60 * 60)
    place.stage(2, [4])
    assert place.numbers("{staged}") == [4], "nobody will commit what is older than a week"


def test_write_that_replaces_shows_its_rows_alone(place: Place) -> None:
    place.write().commit(0, place.stage(0, [1, 2]))
    place.write(replace=True).commit(1, place.stage(1, [3]))
    place.write(replace=True).commit(1, place.stage(1, [3]))
    assert place.numbers() == [3]
    batch = SqlTable().newWriteBuilder(LogicalWriteInfo(place.options, SCHEMA)).truncate().toBatch()
    assert batch.createBatchWriterFactory(PhysicalWriteInfo(0)) is not None
    batch.commit([])
    assert place.numbers() == []


def test_password_is_in_no_text(postgres: Postgres) -> None:
    place = Place(postgres.url, postgres.password)
    (staged,) = place.stage(0, [1])
    shown = f"{place.target} {staged} {place.write().__dict__} {place.commits()}"
    with pytest.raises(Exception, match="password authentication failed") as refused:
        Place(postgres.url, f"wrong {postgres.password}")
    assert postgres.password not in f"{shown} {refused.value} {refused.getrepr()}"


@pytest.mark.parametrize(
    "url", ["postgresql://me:s3cret@host/db", "postgresql://host/db?password=s3cret", "postgresql://:s3cret@/db"]
)
def test_url_with_a_password_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="Set the password by option 'password'") as refused:
        Target(url, None, "t", ())
    assert "s3cret" not in str(refused.value)


def test_url_of_another_database_and_a_query_without_a_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must begin with sqlite: or postgresql://"):
        Target("mysql://host/db", None, "t", ())
    options = {"url": f"sqlite:{tmp_path}/sql.db", "table": "t"}
    with pytest.raises(ValueError, match="Set the option 'checkpointLocation'"):
        SqlTable().newWriteBuilder(LogicalWriteInfo(options, SCHEMA)).toStreaming()


def test_write_pickles_before_its_commit(tmp_path: Path) -> None:
    place = Place(f"sqlite:{tmp_path}/sql.db")
    messages, write = pickle.loads(pickle.dumps((place.stage(0, [1]), place.write())))  # noqa: S301 - our own bytes
    write.commit(0, messages)
    assert place.numbers() == [1]


# With Spark


@pytest.fixture
def sql_format(spark: SparkSession) -> Iterator[None]:
    """The format `sql`."""
    with sent_by_value(sql_sink):
        spark.dataSource.register(as_data_source(SqlTable()))
        yield


@pytest.mark.usefixtures("sql_format")
def test_spark_writes_a_batch_as_a_whole_or_not_at_all(place: Place, spark: SparkSession) -> None:
    def write(numbers: str, mode: str, tasks: int = 4) -> None:
        rows = spark.range(0, 40, 1, tasks).selectExpr(f"{numbers} AS `{_COLUMNS[0]}`", f"'x' AS `{_COLUMNS[1]}`")
        rows.write.format("sql").options(**place.options).mode(mode).save()

    write("id", "append")
    assert sorted(place.numbers()) == list(range(40))
    with pytest.raises(PySparkException, match="thirty-five"):
        write("IF(id = 35, raise_error('thirty-five'), id)", "append")
    assert sorted(place.numbers()) == list(range(40))
    # A task that still ran when Spark gave up the job above may stage rows yet; here there is no other task.
    with pytest.raises(PySparkException, match="thirty-five"):
        write("IF(id = 35, raise_error('thirty-five'), id + 200)", "append", tasks=1)
    assert sorted(place.numbers()) == list(range(40))
    assert [number for number in place.numbers("{staged}") if number >= 200] == []
    write("id + 100", "overwrite")
    assert sorted(place.numbers()) == list(range(100, 140))


@pytest.mark.usefixtures("sql_format")
def test_complete_mode_replaces_what_the_table_has(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(f"sqlite:{tmp_path}/sql.db")
    (tmp_path / "files").mkdir()
    for number in range(3):
        (tmp_path / "files" / f"{number}.json").write_text('{"text": "one"}\n' * (number + 1))
    rows = spark.readStream.schema("text STRING").option("maxFilesPerTrigger", 1).json(f"{tmp_path}/files")
    counts = rows.groupBy("text").count().selectExpr(f"count AS `{_COLUMNS[0]}`", f"text AS `{_COLUMNS[1]}`")
    query = counts.writeStream.format("sql").outputMode("complete").options(**place.options)
    query = query.option("checkpointLocation", f"{tmp_path}/checkpoint").trigger(availableNow=True)
    query.start().awaitTermination(120)
    assert place.numbers() == [6]
    assert [epoch for _, epoch, _, _ in place.commits()] == [0, 1, 2]


_ON_CONNECT = """
import json, sys
from pyspark import cloudpickle
from pyspark.sql import SparkSession

url, folder, options = sys.argv[1:]
sys.path.append(folder)
import sql_sink

cloudpickle.register_pickle_by_value(sql_sink)
spark = SparkSession.builder.remote(url).getOrCreate()
spark.dataSource.register(sql_sink.as_data_source(sql_sink.SqlTable()))
rows = spark.range(20).selectExpr("id AS `n\\"umber`")
rows.write.format("sql").options(**json.loads(options)).mode("append").save()
"""


@pytest.mark.full("Spark Connect")
def test_spark_connect_writes_a_batch(tmp_path: Path, connect_url: str) -> None:
    place = Place(f"sqlite:{tmp_path}/sql.db")
    run_program(_ON_CONNECT, connect_url, str(_EXAMPLE.parent), json.dumps(place.options), place=tmp_path)
    assert sorted(place.numbers()) == list(range(20))


@pytest.mark.full("Examples")
@pytest.mark.timeout(900)  # two drivers start, which takes long on a busy machine
def test_driver_that_is_killed_and_starts_again_leaves_each_row_once(postgres: Postgres) -> None:
    """The example as a script, on PostgreSQL: two drivers of their own, and kill -9 of the first."""
    run = subprocess.run(
        [sys.executable, _EXAMPLE, "--url", postgres.url],
        env={**os.environ, "PGPASSWORD": postgres.password}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    killed, again = re.findall(
        r"(\d+) epochs are committed; the table has (\d+) rows, (\d+) of them different", run.stdout
    )
    assert 2 <= int(killed[0]) < 6, run.stdout
    assert killed[1:] == (str(100 * int(killed[0])),) * 2
    # Spark's file source notes the file of a micro-batch before the micro-batch is planned: a kill between the two
    # leaves two files for one.
    assert int(again[0]) in {5, 6}
    assert again[1:] == ("600", "600")
