"""The example that reads a directory of files that grows."""

from __future__ import annotations

import itertools
import json
import os
import runpy
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import directory_source
import pyarrow as pa
import pytest
from directory_source import DirectoryStream, DirectoryTable, EntryOffset
from pyarrow import parquet
from pyspark.sql import SparkSession

from pyspark_kafka.connector import ReadAllAvailable, ReadLimit, SupportsRead
from pyspark_kafka.errors import CheckpointError
from pyspark_kafka.testing.conformance import SourceContract

SCHEMA = pa.schema([pa.field("number", pa.int64()), pa.field("text", pa.string())])
TABLE = DirectoryTable("files", SCHEMA)


def content(path: Path, numbers: Iterable[int]) -> None:
    """Write rows of these numbers in the format of the name."""
    rows = [{"number": number, "text": f"№ {number}, of {number}"} for number in numbers]
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({**row, "other": "x"}) + "\n" for row in rows))
    else:
        path.write_text("".join(["text,other,number\n", *(f'"{row["text"]}",x,{row["number"]}\n' for row in rows)]))


class Contract(SourceContract):
    """The contract of a source, over files of one format, with a limit."""

    counts_rows = False  # it counts files
    ending: str
    limits: Mapping[str, str]

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.inbox = tmp_path / "inbox"
        self.inbox.mkdir()
        self.numbers = itertools.count()

    def table(self) -> SupportsRead:
        return TABLE

    def options(self) -> Mapping[str, str]:
        return {"path": str(self.inbox), "format": {"jsonl": "json"}.get(self.ending, self.ending), **self.limits}

    def add_rows(self, count: int) -> None:
        """Add files of 10 rows, and one of the rest, of which the last ones have the lowest names."""
        left = list(itertools.islice(self.numbers, count))
        for begin in range(0, count, 10):
            content(self.inbox / f"{1_000 - left[begin]}.{self.ending}", left[begin : begin + 10])


class TestCsv(Contract):
    ending, limits = "csv", {"maxFilesPerTrigger": "2"}


class TestJsonLines(Contract):
    ending, limits = "jsonl", {"maxBytesPerTrigger": "400"}


class TestParquet(Contract):
    ending, limits = "parquet", {}


class Inbox:
    """A directory, a log, and what a query reads of it."""

    def __init__(self, place: Path) -> None:
        self.path = place / "the %41 é inbox"
        self.log = place / "log"
        self.path.mkdir()
        self.clock = itertools.count(1_000)
        self.stream = self.restarted()

    def restarted(self, **options: str) -> DirectoryStream:
        self.stream = TABLE.newScanBuilder({"path": str(self.path), **options}).toMicroBatchStream(str(self.log))
        return self.stream

    def put(self, name: str, *numbers: int, modified: int | None = None) -> Path:
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        content(path, numbers)
        os.utime(path, (time := modified or next(self.clock), time))
        return path

    def next(self, start: int, limit: ReadLimit | None = None) -> int:
        """Return the end of the next micro-batch."""
        return self.stream.latestOffset(EntryOffset(start), limit or self.stream.getDefaultReadLimit()).entry

    def read(self, start: int, end: int) -> list[int]:
        """Return the numbers of a micro-batch."""
        factory, numbers = self.stream.createReaderFactory(), []
        for partition in self.stream.planInputPartitions(EntryOffset(start), EntryOffset(end)):
            reader = factory.createReader(partition)
            while reader.next():
                numbers += reader.get()["number"].to_pylist()
            reader.close()
        return numbers

    def batches(self, start: int = 0) -> list[list[int]]:
        """Return all micro-batches from an entry on."""
        found = []
        while (end := self.next(start)) != start:
            found.append(self.read(start, end))
            start = end
        return found


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path)


def test_files_come_in_the_order_of_their_times_and_then_names(inbox: Inbox) -> None:
    inbox.put("b.csv", 3, modified=20)
    inbox.put("a.csv", 2, modified=20)
    inbox.put("deeper/z.csv", 1, modified=10)
    assert inbox.batches() == [[1, 2, 3]]


def test_late_file_is_read_although_it_is_older(inbox: Inbox) -> None:
    inbox.put("a.csv", 1)
    assert inbox.next(0) == 1
    inbox.put("b.csv", 2, modified=1)
    inbox.restarted()
    assert inbox.batches(1) == [[2]]
    assert inbox.next(2) == 2


def test_file_that_is_not_whole_is_read_when_it_has_its_name(inbox: Inbox) -> None:
    names = ("a.csv.tmp", ".b.csv", "_c.csv", "_temporary/d.csv", "e.txt")
    paths = [inbox.put(name, number) for number, name in enumerate(names)]
    (inbox.path / "empty.csv").touch()
    assert inbox.next(0) == 0
    for number, path in enumerate(paths):
        path.rename(inbox.path / f"whole-{number}.csv")
    assert inbox.batches() == [[0, 1, 2, 3, 4]]


def test_limits_count_files_and_bytes_and_a_micro_batch_has_one_file_at_least(inbox: Inbox) -> None:
    for number in range(5):
        inbox.put(f"{number}.csv", number)
    size = (inbox.path / "0.csv").stat().st_size
    inbox.put("large.csv", *range(100, 120))
    inbox.put("last.csv", 9)
    inbox.restarted(maxFilesPerTrigger="3", maxBytesPerTrigger=str(2 * size))
    assert inbox.batches() == [[0, 1], [2, 3], [4], list(range(100, 120)), [9]]


def test_limits_by_files_alone_and_by_the_engine(inbox: Inbox) -> None:
    for number in range(7):
        inbox.put(f"{number}.csv", number)
    inbox.restarted(maxFilesPerTrigger="2")
    assert inbox.read(0, inbox.next(0)) == [0, 1]
    assert inbox.read(1, inbox.next(1, ReadLimit.maxFiles(1))) == [2]
    assert inbox.read(2, inbox.next(2, ReadAllAvailable())) == [3, 4, 5, 6]


def test_micro_batch_that_was_planned_before_a_crash_is_the_next_one_whatever_the_limit(inbox: Inbox) -> None:
    inbox.put("a.csv", 1)
    assert inbox.next(0) == 1  # and the driver dies before Spark takes note
    inbox.put("b.csv", 2)
    inbox.restarted(maxFilesPerTrigger="7")
    assert inbox.batches() == [[1], [2]]


@pytest.mark.parametrize("change", ["more", "same size", "gone", "while it is read"])
def test_file_that_was_changed_or_removed_since_it_was_found_is_an_error(inbox: Inbox, change: str) -> None:
    path = inbox.put("a.csv", 1)
    end = inbox.next(0)
    inbox.restarted()
    if change == "gone":
        path.unlink()
    elif change == "more":
        inbox.put("a.csv", 1, 2, modified=1_000)
    elif change == "same size":
        inbox.put("a.csv", 3)
    (partition,) = inbox.stream.planInputPartitions(EntryOffset(0), EntryOffset(end))
    reader = inbox.stream.createReaderFactory().createReader(partition)
    if change == "while it is read":
        assert reader.next()
        inbox.put("a.csv", 1, 2)
    now = "it is gone" if change == "gone" else r"it has \d+ bytes, of "
    with pytest.raises(RuntimeError, match=rf"File a\.csv of .*inbox was found with \d+ bytes, and now {now}"):
        reader.next()


def test_file_of_another_form_is_named(inbox: Inbox) -> None:
    (inbox.path / "a.csv").write_text("number,text\none,uno\n")
    with pytest.raises(
        RuntimeError, match=r"File a\.csv of .*inbox cannot be read as csv with the columns number, text"
    ):
        inbox.read(0, inbox.next(0))


def test_state_is_bounded_and_a_kept_micro_batch_is_planned_again(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are moved away when they are old: the log has the names of those that are there."""
    monkeypatch.setattr(directory_source, "KEPT_ENTRIES", kept := 10)
    inbox.put("stays.csv", 0)
    number = end = inbox.next(0)
    while number < 3 * kept + 1:
        path = inbox.put(f"{number}.csv", number)
        end = inbox.next(end)
        assert inbox.read(number, end) == [number]
        path.unlink()
        number = end
    assert len(list((inbox.log / "entries").iterdir())) <= 2 * kept
    assert json.loads((inbox.log / "folded").read_text())["paths"] == ["stays.csv"]
    inbox.restarted()
    assert inbox.next(end) == end, "a file that stays is known"
    planned = inbox.stream.planInputPartitions(EntryOffset(end - kept), EntryOffset(end))
    assert [file.path for file in planned] == [f"{each}.csv" for each in range(end - kept, end)]
    with pytest.raises(RuntimeError, match="lacks entry 1, which the checkpoint of the query names"):
        inbox.stream.planInputPartitions(EntryOffset(0), EntryOffset(1))


def test_driver_that_dies_when_it_folds_leaves_entries_that_the_next_one_removes(inbox: Inbox) -> None:
    for number in range(2):
        inbox.put(f"{number}.csv", number)
        inbox.next(number)
    (inbox.log / "folded").write_text(json.dumps({"last": 1, "paths": ["0.csv"]}))
    inbox.restarted()
    assert inbox.next(2) == 2
    assert [path.name for path in (inbox.log / "entries").iterdir()] == ["2"]


def test_available_now_leaves_out_what_came_later_and_what_is_gone(inbox: Inbox) -> None:
    gone = inbox.put("a.csv", 1)
    inbox.put("b.csv", 2)
    inbox.put("c.csv", 3)
    inbox.restarted(maxFilesPerTrigger="1").prepareForTriggerAvailableNow()
    gone.unlink()
    inbox.put("d.csv", 4)
    assert inbox.batches() == [[2], [3]]


def test_log_that_is_lost_is_an_error_and_nothing_is_read_again(inbox: Inbox) -> None:
    inbox.put("a.csv", 1)
    inbox.next(0)
    (inbox.log / "entries" / "1").unlink()
    inbox.restarted()
    with pytest.raises(RuntimeError, match=r"lacks entry 1, .* its last entry is 0\. Nothing was read\."):
        inbox.next(1)


def test_second_driver_with_the_same_log_is_stopped(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = inbox.restarted(), inbox.restarted()
    inbox.put("a.csv", 1)
    find = type(second._directory).find

    def find_and_be_slower(directory: Any) -> Any:
        monkeypatch.undo()
        first.latestOffset(EntryOffset(0), ReadAllAvailable())
        return find(directory)

    monkeypatch.setattr(type(second._directory), "find", find_and_be_slower)
    with pytest.raises(RuntimeError, match="Another query has written entry 1"):
        inbox.next(0)


def test_batch_read_has_all_files_and_keeps_no_log(inbox: Inbox) -> None:
    for number in range(3):
        inbox.put(f"{number}.csv", number)
    batch = TABLE.newScanBuilder({"path": str(inbox.path)}).toBatch()
    factory = batch.createReaderFactory()
    found: Counter[int] = Counter()
    for partition in batch.planInputPartitions():
        reader = factory.createReader(partition)
        while reader.next():
            found.update(reader.get()["number"].to_pylist())
    assert found == {0: 1, 1: 1, 2: 1}
    assert not inbox.log.exists()


def test_stream_without_a_place_for_its_log_is_refused(inbox: Inbox) -> None:
    with pytest.raises(ValueError, match="Set the option 'checkpointLocation' of the read"):
        TABLE.newScanBuilder({"path": str(inbox.path)}).toMicroBatchStream(None)


@pytest.mark.full("Examples")
def test_script_shows_what_each_run_of_a_query_reads(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example as a script: a query that stops and starts again, twice."""
    # Other tests go on with it.
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    runpy.run_path(directory_source.__file__, run_name="__main__")
    micro_batches = [line for line in capsys.readouterr().out.splitlines() if "micro-batch " in line and "{" in line]
    assert micro_batches == [
        "  micro-batch 0: {'Oslo': 2, 'Rome': 1}",
        "  micro-batch 1: {'Lima': 3}",
        "  micro-batch 2: {'Bern': 1}",
        "  micro-batch 3: {'Cairo': 1}",
    ]


@pytest.mark.parametrize("text", ['{"at":7}', "[]", "7", '{"entry":"first"}', "{"])
def test_offset_of_another_source_is_refused(tmp_path: Path, text: str) -> None:
    stream: Any = TABLE.newScanBuilder({"path": str(tmp_path)}).build().toMicroBatchStream(str(tmp_path / "log"))
    with pytest.raises(CheckpointError, match="is not an offset of a directory"):
        stream.deserializeOffset(text)
