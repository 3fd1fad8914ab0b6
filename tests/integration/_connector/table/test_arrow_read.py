"""Topics as Arrow batches without Spark, from a real broker, in the libraries that users have."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.waiting import eventually
from pyspark_kafka import read_arrow
from pyspark_kafka.connector.filters import EqualTo, GreaterThan, GreaterThanOrEqual
from pyspark_kafka.errors import OptionError, RecordError

COUNT, PARTITIONS = 2_000, 4


@pytest.fixture
def options(bootstrap_servers: str, make_topic: TopicMaker) -> dict[str, str]:
    topic = make_topic(PARTITIONS)
    produce(bootstrap_servers, topic, [Record(None, b'{"id":%d}' % n, n % PARTITIONS) for n in range(COUNT)])
    return {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic}


def test_each_consumer_of_arrow_streams_has_all_records(options: dict[str, str]) -> None:
    orders = read_arrow(options)
    expected = {(n % PARTITIONS, n // PARTITIONS, b'{"id":%d}' % n) for n in range(COUNT)}
    for table in (pa.table(orders), orders.reader().read_all(), pl.DataFrame(orders).to_arrow()):
        rows = zip(*(table.column(name).to_pylist() for name in ("partition", "offset", "value")), strict=True)
        assert set(rows) == expected
        assert table.num_rows == COUNT
    assert orders.reader().read_pandas()["offset"].sum() == sum(n // PARTITIONS for n in range(COUNT))
    assert duckdb.sql('SELECT count(*), max("offset") FROM orders').fetchall() == [(COUNT, COUNT // PARTITIONS - 1)]


def test_each_use_reads_what_is_there_then(options: dict[str, str]) -> None:
    orders = read_arrow(options, columns=["offset"])
    assert pa.table(orders).num_rows == COUNT
    produce(options["kafka.bootstrap.servers"], options["subscribe"], [Record(None, b"{}", 0)])
    assert pa.table(orders).num_rows == COUNT + 1


def test_filters_and_columns_narrow_the_read(options: dict[str, str]) -> None:
    filters = [GreaterThanOrEqual(("offset",), 490), EqualTo(("partition",), 2)]
    found = pa.table(read_arrow(options, columns=["partition", "offset"], filters=filters))
    assert found.to_pylist() == [{"partition": 2, "offset": offset} for offset in range(490, 500)]
    typed = {**options, "valueFormat": "json", "valueSchema": "id BIGINT"}
    found = pa.table(read_arrow(typed, columns=["value"], filters=[GreaterThan(("value", "id"), COUNT - 4)]))
    assert sorted(found.column("value").to_pylist(), key=str) == [
        {"id": COUNT - 3},
        {"id": COUNT - 2},
        {"id": COUNT - 1},
    ]


def test_bad_record_is_an_error_or_a_column(options: dict[str, str]) -> None:
    produce(options["kafka.bootstrap.servers"], options["subscribe"], [Record(None, b"poison", 1)])
    typed = {**options, "valueFormat": "json", "valueSchema": "id BIGINT"}
    with pytest.raises(RecordError, match="JSON"):
        read_arrow({**typed, "mode": "FAILFAST"}).reader().read_all()
    found = pa.table(read_arrow({**typed, "mode": "PERMISSIVE"}))
    bad = [row for row in found.to_pylist() if row["_corrupt_record"] is not None]
    assert [(row["partition"], row["offset"]) for row in bad] == [(1, 500)]


def test_error_keeps_its_class_in_a_reader_and_its_condition_in_a_capsule(options: dict[str, str]) -> None:
    beyond = {**options, "startingOffsets": json.dumps({options["subscribe"]: dict.fromkeys("0123", 99_999)})}
    with pytest.raises(OptionError, match="is after the end"):
        read_arrow(beyond).reader().read_all()
    with pytest.raises(pa.ArrowInvalid, match="RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET"):
        pa.table(read_arrow(beyond))


def test_read_that_is_forgotten_leaves_no_thread(options: dict[str, str]) -> None:
    reader = read_arrow(options, threads=2).reader()
    assert reader.read_next_batch().num_rows > 0
    del reader
    eventually(lambda: not [each for each in threading.enumerate() if each.name.startswith("read-arrow")])


def test_pyspark_is_not_imported(options: dict[str, str]) -> None:
    program = (
        "import json, sys, pyarrow as pa\n"
        "from pyspark_kafka import read_arrow\n"
        "rows = pa.table(read_arrow(json.loads(sys.argv[1]))).num_rows\n"
        "print(rows, 'pyspark' in sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, json.dumps(options)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == [str(COUNT), "False"]
