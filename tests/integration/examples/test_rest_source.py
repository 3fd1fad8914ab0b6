"""The example that reads a REST API: its requests, its contracts, and queries over it."""

from __future__ import annotations

import json
import pickle
import runpy
import subprocess
import sys
import traceback
import urllib.request
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import rest_source
from pyspark.sql import SparkSession
from rest_server import ReadingsServer
from rest_source import RestApi, RestError, RestOffset, RestTable

from kit.programs.by_value import sent_by_value
from kit.programs.run import run_program
from pyspark_kafka import as_data_source, toolkit
from pyspark_kafka.connector import ContinuousPartitionReader, ContinuousStream, ReadMaxRows, SupportsRead
from pyspark_kafka.errors import ConnectorError, OptionError, RetryError
from pyspark_kafka.testing.conformance import ContinuousSourceContract, SourceContract

_EXAMPLES = Path(__file__).parents[3] / "examples"
_TOKEN = "s3cr3t-t0k3n"  # noqa: S105


@pytest.fixture
def server() -> Iterator[ReadingsServer]:
    with ReadingsServer(_TOKEN).start() as served:
        served.add(25)
        yield served


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, in s, which no test waits for."""
    slept: list[float] = []
    monkeypatch.setattr(rest_source, "retry", partial(toolkit.retry, sleep=slept.append))
    return slept


def options(server: ReadingsServer, **more: str) -> dict[str, str]:
    return {"url": server.url, "token": _TOKEN, "pageRows": "10", **more}


def statuses(server: ReadingsServer) -> list[int]:
    return [status for _, status in server.seen]


# Requests


@pytest.mark.parametrize("status", ["429", "503"])
@pytest.mark.parametrize(("form", "least_s"), [("2", 2.0), ("date", 1.0)])
def test_retry_after_is_kept_in_both_forms(
    server: ReadingsServer, pauses: list[float], status: str, form: str, least_s: float
) -> None:
    """The date is one of the server's clock, which is an hour ahead; it has whole seconds."""
    server.faults = iter([f"{status} {form}"])
    assert RestApi.of(options(server)).newest() == "r-25"
    (pause,) = pauses
    assert least_s <= pause < 2.5
    assert statuses(server) == [int(status), 200]


@pytest.mark.parametrize(("fault", "status"), [("500", 500), ("429", 429), ("reset", 0), ("cut", 200)])
def test_request_is_sent_again_after_a_fault_that_passes(
    server: ReadingsServer, pauses: list[float], fault: str, status: int
) -> None:
    server.faults = iter([fault, fault])
    assert RestApi.of(options(server)).newest() == "r-25"
    assert [pause < 0.3 for pause in pauses] == [True, True]
    assert statuses(server) == [status, status, 200]


@pytest.mark.full("Examples")
@pytest.mark.parametrize("fault", ["slow", "drip"])
def test_response_that_does_not_end_is_given_up(server: ReadingsServer, pauses: list[float], fault: str) -> None:
    server.faults = iter([fault])
    assert RestApi.of(options(server, timeout="3")).newest() == "r-25"
    assert len(pauses) == 1


def test_retry_after_beyond_the_deadline_is_not_waited_for(server: ReadingsServer, pauses: list[float]) -> None:
    server.faults = iter(["429 61"])
    with pytest.raises(RetryError, match=r"Gave up GET http://127.*limit=1 after 1 attempts.*the API answered 429"):
        RestApi.of(options(server)).newest()
    assert pauses == []


def test_unreachable_api_is_an_error_at_the_deadline() -> None:
    with ReadingsServer(_TOKEN).start() as server:
        gone = options(server, deadline="0.3")
    with pytest.raises(RetryError, match="no response: ConnectionRefusedError"):
        RestApi.of(gone).newest()


def test_response_without_an_end_takes_bounded_memory(server: ReadingsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_source, "MAX_BODY_BYTES", 100)
    with pytest.raises(RestError, match="more than 100 bytes; lower option 'pageRows'"):
        RestApi.of(options(server)).page(None, 10)
    assert statuses(server) == [200]


def test_request_that_finds_nothing_new_is_conditional(server: ReadingsServer) -> None:
    api = RestApi.of(options(server))
    assert [api.newest(), api.newest()] == ["r-25", "r-25"]
    server.add(1)
    assert api.newest() == "r-26"
    assert statuses(server) == [200, 304, 200]


# Secrets


def test_token_is_in_no_error_although_the_server_repeats_it(server: ReadingsServer, pauses: list[float]) -> None:
    wrong = "wrong-t0k3n"
    api = RestApi.of({**options(server), "token": wrong})
    with pytest.raises(RestError, match="the API answered 401") as raised:
        api.newest()
    shown = "".join(traceback.format_exception(raised.value))
    assert wrong not in shown
    assert wrong not in repr(api)
    assert pauses == []


def test_token_is_not_sent_to_where_the_api_redirects(server: ReadingsServer) -> None:
    with ReadingsServer(_TOKEN).start() as other:
        server.faults = iter([f"302 {other.url}"])
        with pytest.raises(RestError, match="401"):
            RestApi.of(options(server)).newest()
        assert statuses(other) == [401]


@pytest.mark.parametrize(
    "changed",
    [
        {"token": "t0k3n\nX-Other: 1"},
        {"token": "t0k3n und Größe"},
        {"url": "http://user:t0k3n@127.0.0.1/readings"},
        {"url": "http://127.0.0.1/readings?key=t0k3n"},
        {"url": "file:///t0k3n"},
    ],
)
def test_option_that_would_show_or_lose_the_token_is_refused_and_not_shown(changed: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=r"^\[REST_OPTION\] Option '") as raised:
        RestApi.of({"url": "http://127.0.0.1/readings", "token": "t", **changed})
    assert "t0k3n" not in str(raised.value)


# Reads


def read(server: ReadingsServer, start: RestOffset, end: RestOffset) -> list[str]:
    stream = RestTable().newScanBuilder(options(server)).build().toMicroBatchStream(None)
    (planned,) = stream.planInputPartitions(start, end)
    reader = stream.createReaderFactory().createReader(planned)
    found = []
    while reader.next():
        found += reader.get().column("id").to_pylist()
    return found


def test_limit_is_a_number_of_items_over_pages(server: ReadingsServer) -> None:
    stream: Any = RestTable().newScanBuilder(options(server)).build().toMicroBatchStream(None)
    assert stream.latestOffset(RestOffset(), ReadMaxRows(12)) == RestOffset("r-12", 12)
    assert [path.partition("?")[2] for path, _ in server.seen] == [
        "order=desc&limit=1",
        "limit=10",
        "after=r-10&limit=2",
    ]
    assert read(server, RestOffset("r-2", 2), RestOffset("r-15", 15)) == [f"r-{number}" for number in range(3, 16)]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda items: items.pop(3), "expected 20, found 19 up to 'r-20'"),
        (lambda items: items.pop(19), "expected 20, found 20 up to 'r-21'"),
        (lambda items: items.insert(3, {"id": "r-late"}), "expected 20, found 20 up to 'r-19'"),
        (lambda items: items.clear(), "expected 20, found 0 up to None"),
    ],
)
def test_items_that_changed_are_an_error_and_not_other_rows(server: ReadingsServer, change: Any, found: str) -> None:
    change(server.items)
    with pytest.raises(RestError, match=found):
        read(server, RestOffset(), RestOffset("r-20", 20))


def test_cursor_that_is_gone_is_an_error_and_not_the_beginning(server: ReadingsServer) -> None:
    del server.items[4]
    with pytest.raises(RestError, match="the API answered 404"):
        read(server, RestOffset("r-5", 5), RestOffset("r-20", 20))
    stream: Any = RestTable().newScanBuilder(options(server)).build().toMicroBatchStream(None)
    with pytest.raises(RestError, match="the API answered 404"):
        stream.latestOffset(RestOffset("r-5", 5), ReadMaxRows(5))


class ApiInAProcess:
    """An API in a process of its own: a case of a contract counts the files and threads of this one."""

    @pytest.fixture(autouse=True)
    def api(self) -> Iterator[None]:
        command = [sys.executable, str(_EXAMPLES / "rest_server.py")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            self._url = process.stdout.readline().strip()
            yield
            process.terminate()

    def table(self) -> SupportsRead:
        return RestTable()

    def options(self) -> dict[str, str]:
        return {"url": self._url, "token": "secret", "pageRows": "4", "maxRowsPerTrigger": "10"}

    def add_rows(self, count: int) -> None:
        urllib.request.urlopen(f"{self._url}?count={count}", data=b"").close()  # noqa: S310 - loopback


class TestRestMicroBatches(ApiInAProcess, SourceContract):
    """The contract of micro-batches."""


class TestRestContinuous(ApiInAProcess, ContinuousSourceContract):
    """The contract of continuous reads."""

    def options(self) -> dict[str, str]:
        return {**super().options(), "pollInterval": "0.05"}


# Continuous reads, driven by hand


def continuous(server: ReadingsServer) -> ContinuousStream:
    return RestTable().newScanBuilder(options(server, pollInterval="0.01")).build().toContinuousStream(None)


def reader_from(stream: ContinuousStream, offset: str) -> ContinuousPartitionReader:
    (planned,) = stream.planInputPartitions(stream.deserializeOffset(offset))
    factory = pickle.loads(pickle.dumps(stream.createContinuousReaderFactory()))  # noqa: S301 - our own bytes
    return factory.createReader(pickle.loads(pickle.dumps(planned)))  # type: ignore[no-any-return]  # noqa: S301


def test_continuous_reader_follows_the_end_and_continues_behind_its_offset(server: ReadingsServer) -> None:
    stream, found = continuous(server), []
    reader = reader_from(stream, stream.initialOffset().json())
    while reader.next():
        found += reader.get().column("id").to_pylist()
    assert found == [f"r-{number}" for number in range(1, 26)]
    assert [reader.next(), reader.next()] == [False, False]
    assert statuses(server)[-1] == 304
    server.add(2)
    while not reader.next():
        pass
    merged = stream.mergeOffsets([reader.getOffset()])
    assert merged == RestOffset("r-25", 25), "rows that get() has not returned are not read"
    # As after a crash: the rows that were not returned are read again.
    reader.close()
    again = reader_from(stream, merged.json())
    assert again.getOffset() == merged
    assert again.next()
    assert again.get().column("id").to_pylist() == ["r-26", "r-27"]
    assert stream.mergeOffsets([again.getOffset()]).json() == '{"after": "r-27", "rows": 27}'


# Queries


@pytest.fixture
def registered(spark: SparkSession) -> SparkSession:
    with sent_by_value(rest_source):
        spark.dataSource.register(as_data_source(RestTable()))
    return spark


@pytest.mark.full("Examples")
def test_micro_batches_have_each_item_once_through_faults_and_a_restart(
    registered: SparkSession, server: ReadingsServer, tmp_path: Path
) -> None:
    server.faults = cycle([None, "500", None, "reset", None, "429 0", "cut"])
    found: list[tuple[int, list[str]]] = []
    for _ in range(2):
        query = (
            registered.readStream.format("rest_readings").options(**options(server), maxRowsPerTrigger="12").load()
            .writeStream.foreachBatch(lambda df, number: found.append((number, [row.id for row in df.collect()])))
            .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination(120)
        server.add(7)
    assert [id_ for _, ids in sorted(found) for id_ in ids] == [f"r-{number}" for number in range(1, 33)]
    assert [len(ids) for _, ids in sorted(found)] == [12, 12, 1, 7]
    last = (tmp_path / "checkpoint/offsets/3").read_text().splitlines()[-1]
    assert json.loads(last) == {"after": "r-32", "rows": 32}


# In a process of its own: PySpark keeps in the environment that a session of Connect was there.
_CONNECT = """
import json, sys
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark_kafka import as_data_source

url, examples, options = sys.argv[1:]
sys.path.insert(0, examples)
import rest_source

cloudpickle.register_pickle_by_value(rest_source)
spark = SparkSession.builder.remote(url).getOrCreate()
spark.dataSource.register(as_data_source(rest_source.RestTable()))
rows = spark.read.format("rest_readings").options(**json.loads(options)).load().collect()
print(json.dumps([list(row) for row in rows]))
spark.stop()
"""


@pytest.mark.full("Spark Connect")
def test_batch_read_on_connect_has_all_items(connect_url: str, server: ReadingsServer, tmp_path: Path) -> None:
    said = run_program(_CONNECT, connect_url, str(_EXAMPLES), json.dumps(options(server)), place=tmp_path)
    rows = json.loads(said)
    assert rows[:2] == [["r-1", "s1", 0.5], ["r-2", "s2", 1.0]]
    assert len(rows) == 25


def test_error_of_a_query_names_the_request_and_not_the_token(registered: SparkSession, server: ReadingsServer) -> None:
    server.faults = cycle(["500"])
    failing = registered.read.format("rest_readings").options(**options(server), deadline="0.2")
    with pytest.raises(Exception, match=r"RETRIES_EXHAUSTED.*the API answered 500") as raised:
        failing.load().collect()
    assert _TOKEN not in str(raised.value)
    assert _TOKEN not in "".join(traceback.format_exception(raised.value))


@pytest.mark.full("Examples")
def test_script_shows_its_rows(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Other tests continue with it.
        patch.setattr(type(spark), "stop", lambda _: None)
        runpy.run_path(str(_EXAMPLES / "rest_source.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "|     s1|   84|" in said
    assert [f"micro-batch {number}: {rows} rows" in said for number, rows in enumerate((100, 100, 50))] == [True] * 3


def test_errors_of_the_example_are_connector_errors_that_pickle() -> None:
    sent = RestError("it failed", retriable=True, pause_ms=5)
    error = pickle.loads(pickle.dumps(sent))  # noqa: S301 - our own bytes
    assert isinstance(error, ConnectorError)
    assert (str(error), error.retriable, error.pause_ms) == ("[REST_API] it failed", True, 5)  # type: ignore[attr-defined]
