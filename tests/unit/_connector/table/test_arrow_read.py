"""Threads that read the partitions of a plan: order, errors, bounds, and their end."""

from __future__ import annotations

import io
import threading
from collections import deque
from typing import Any

import pyarrow as pa
import pytest

from kit.number_source import EVENTS, NumberReaderFactory, Numbers, values
from kit.waiting import eventually
from pyspark_kafka._connector.table.arrow_read import _ProgressLine, _Reading, read_arrow
from pyspark_kafka.connector import InputPartition
from pyspark_kafka.errors import OptionError, SchemaError

OPTIONS = {"kafka.bootstrap.servers": "not-asked:9092", "subscribe": "orders"}


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()


def reading(*partitions: InputPartition, threads: int = 2) -> _Reading:
    return _Reading(NumberReaderFactory(), deque(partitions), threads)


def test_all_partitions_are_read_however_few_the_threads_are() -> None:
    found = reading(Numbers(3), Numbers(1), Numbers(0), Numbers(2))
    assert sorted(values(found.batches(None))) == [1, 1, 1, 2, 2, 3]
    found.end()
    assert EVENTS.count("close") == EVENTS.count("create") == 4


def test_plan_without_partitions_has_no_batches() -> None:
    assert list(reading().batches(None)) == []


def test_error_of_a_partition_is_raised_where_batches_are_used() -> None:
    found = reading(Numbers(1, fails=True), threads=1)
    batches = found.batches(None)
    assert values([next(batches)]) == [1]
    with pytest.raises(ValueError, match="the reader failed"):
        next(batches)
    found.end()
    assert EVENTS[-1] == "close"


def test_threads_wait_while_nobody_takes_batches_and_end_with_the_read() -> None:
    found = reading(Numbers(100_000), threads=1)
    next(found.batches(None))
    eventually(lambda: EVENTS.count("next") >= 3)
    # One is taken, two wait, one is in the hand of the thread.
    assert EVENTS.count("next") <= 4
    found.end()
    assert EVENTS[-1] == "close"
    assert not [each for each in threading.enumerate() if each.name.startswith("read-arrow")]


def test_progress_is_shown_from_the_third_second_on_and_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("pyspark_kafka._connector.table.arrow_read.time.monotonic", lambda: now[0])
    line = _ProgressLine("Subscribe[orders]", 12, io.StringIO())
    for at in (101.0, 103.0, 103.5):
        now[0] = at
        line.show(1_234, 9)
    line.end()
    shown: Any = line.out
    assert shown.getvalue() == "\rReading Subscribe[orders]: 1,234 records, 3 of 12 parts begun, 3 s \n"


def test_options_and_columns_are_checked_before_anything_is_read() -> None:
    with pytest.raises(OptionError, match="'subscribe'"):
        read_arrow({"kafka.bootstrap.servers": "not-asked:9092"})
    with pytest.raises(SchemaError, match="There is no column 'vaule'; the columns are key, value, topic"):
        read_arrow(OPTIONS, columns=["vaule"])
    found = read_arrow({**OPTIONS, "includeHeaders": True}, columns=["offset", "headers"])
    assert found.schema.names == ["offset", "headers"]
    assert found.schema.field("offset").type == pa.int64()
