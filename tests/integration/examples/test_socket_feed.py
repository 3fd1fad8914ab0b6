"""The example of a feed that cannot be replayed: its spool, its receiver, its contract, and a query that is killed."""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import socket_feed
from feed_server import FeedServer
from pyarrow import parquet
from pyspark.sql import SparkSession
from socket_feed import PlainFeed, Receiver, SegmentOffset, Spool, SpooledFeed, SpoolStream

from kit.programs.by_value import sent_by_value
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka import as_data_source
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.connector import SupportsRead
from pyspark_kafka.errors import CallError, OptionError, RetryError
from pyspark_kafka.testing.conformance import SourceContract
from pyspark_kafka.toolkit import Cancelled, RetryPolicy

_EXAMPLE = Path(__file__).parents[3] / "examples" / "socket_feed.py"


@pytest.fixture
def feed() -> Iterator[FeedServer]:
    with FeedServer() as served:
        yield served


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(CheckpointFiles(str(tmp_path / "spool")))


@contextmanager
def receiving(feed: FeedServer, spool: Spool) -> Iterator[Receiver]:
    """Run a receiver; the block begins when it is connected, and no thread is left behind it."""
    receiver = Receiver(feed.address, spool).start()
    try:
        eventually(lambda: feed.connected() == 1)
        yield receiver
    finally:
        receiver.stop()
        assert "feed receiver" not in [thread.name for thread in threading.enumerate()]


def lines(spool: Spool) -> list[str]:
    return [line for number in spool.numbers() for line in spool.get(number)["lines"]]


def gaps(spool: Spool) -> list[str]:
    return [spool.get(number)["gap"] for number in spool.numbers() if spool.get(number)["gap"] is not None]


# The receiver


def test_lines_are_spooled_in_order_and_a_lost_connection_is_a_gap(feed: FeedServer, spool: Spool) -> None:
    with receiving(feed, spool):
        feed.send("a", "b")
        eventually(lambda: lines(spool) == ["a", "b"])
        assert gaps(spool) == []
        feed.drop()
        eventually(lambda: feed.connected() == 1 and len(gaps(spool)) == 1)
        feed.send("", "d")
        eventually(lambda: lines(spool) == ["a", "b", "", "d"])
    (gap,) = gaps(spool)
    assert gap.startswith("lines after 20")
    assert gap.endswith("+00:00 may be missing: ConnectionResetError")


def test_receiver_that_is_started_again_says_so_and_numbers_continue(feed: FeedServer, spool: Spool) -> None:
    with receiving(feed, spool):
        feed.send("a")
        eventually(lambda: lines(spool) == ["a"])
    with receiving(feed, spool):
        feed.send("b")
        eventually(lambda: lines(spool) == ["a", "b"])
    assert spool.numbers() == [0, 1, 2]
    assert gaps(spool)[0].endswith("may be missing: the receiver was started")


def test_line_that_the_end_of_a_connection_cuts_is_no_row(feed: FeedServer, spool: Spool) -> None:
    with receiving(feed, spool):
        feed.send("whole")
        feed.send("ha", end="")
        eventually(lambda: lines(spool) == ["whole"])
        feed.drop()
        eventually(lambda: len(gaps(spool)) == 1)
        eventually(lambda: feed.connected() == 1)
        feed.send("lf")
        eventually(lambda: lines(spool) == ["whole", "lf"])


def test_full_spool_holds_the_feed_back_and_loses_nothing(
    feed: FeedServer, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_feed, "MAX_SEGMENTS", 3)
    monkeypatch.setattr(socket_feed, "SEGMENT_BYTES", 100_000)
    monkeypatch.setattr(socket_feed, "ROLL_S", 0.01)
    sent = [f"{number:06}" + "x" * 1_000 for number in range(12_000)]
    sender = threading.Thread(target=feed.send, args=sent)
    with receiving(feed, spool):
        sender.start()
        eventually(lambda: len(spool.numbers()) == 3)
        sender.join(0.3)
        assert sender.is_alive(), "the feed was not held back"
        assert spool.numbers() == [0, 1, 2]
        found: list[str] = []
        kept: list[int] = []
        while len(found) < len(sent):
            # The newest one stays when the others are removed.
            eventually(lambda kept=kept: spool.numbers() != kept)  # type: ignore[misc]
            fresh = [number for number in spool.numbers() if number not in kept]
            assert len(fresh) <= 3
            found += [line for number in fresh for line in spool.get(number)["lines"]]
            spool.free_below(fresh[-1] + 1)
            kept = fresh[-1:]
        sender.join(PATIENCE_S)
    assert found == sent


def test_line_without_an_end_takes_bounded_memory_and_is_a_gap(
    feed: FeedServer, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_feed, "SEGMENT_BYTES", 100)
    with receiving(feed, spool):
        feed.send("x" * 200, end="")
        eventually(lambda: len(gaps(spool)) == 1)
    assert gaps(spool)[0].endswith("a line has more than 100 bytes")
    assert lines(spool) == []


@pytest.fixture
def nobody() -> str:
    """The address of a feed that is gone."""
    with FeedServer() as gone:
        return gone.address


def test_feed_out_of_reach_ends_the_query_at_the_deadline(
    nobody: str, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_feed, "RECONNECT", RetryPolicy(attempts=100, initial_delay_ms=10, deadline_ms=2_000))
    stream = SpoolStream(spool, nobody)
    assert stream.latestOffset() == SegmentOffset(0)
    eventually(lambda: stream._receiver is not None and stream._receiver._failure is not None)
    with pytest.raises(RetryError, match=f"Gave up connecting to the feed {nobody} after"):
        stream.latestOffset()
    stream.stop()


def test_receiver_stops_while_it_waits_for_the_feed(nobody: str, spool: Spool) -> None:
    receiver = Receiver(nobody, spool).start()
    receiver.stop()
    receiver.check()
    assert "feed receiver" not in [thread.name for thread in threading.enumerate()]


def test_feed_that_closes_at_once_is_not_asked_again_and_again(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    receiver = Receiver("127.0.0.1:1", spool)

    def closed(_: str) -> socket.socket:
        ours, theirs = socket.socketpair()
        theirs.close()
        return ours

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        if len(pauses) == 3:
            receiver._stop.set()
        return False

    monkeypatch.setattr(socket_feed, "connect", closed)
    monkeypatch.setattr(receiver._stop, "wait", wait)
    with pytest.raises(Cancelled):
        receiver.run()
    assert pauses == [1, 1, 1]
    assert gaps(spool)[0].endswith("may be missing: the feed closed the connection")


def test_second_receiver_of_a_spool_is_an_error(spool: Spool) -> None:
    spool.put(0, ["a"])
    with pytest.raises(RuntimeError, match=r"another receiver writes to .*spool: segment 0 is there already"):
        spool.put(0, ["b"])
    assert lines(spool) == ["a"]


# The source


def test_committed_segments_are_removed_and_the_newest_one_stays(spool: Spool) -> None:
    for number in range(4):
        spool.put(number, [str(number)])
    stream = SpoolStream(spool, None)
    stream.commit(SegmentOffset(2))
    assert spool.numbers() == [2, 3]
    stream.commit(SegmentOffset(4))
    assert spool.numbers() == [3]
    assert spool.end() == 4


def test_segment_that_is_gone_and_a_spool_that_was_emptied_are_errors(spool: Spool) -> None:
    spool.put(1, ["a"])
    stream = SpoolStream(spool, None)
    (planned,) = stream.planInputPartitions(SegmentOffset(0), SegmentOffset(2))
    with pytest.raises(CallError, match=r"segment 0 is gone from .*: its lines are lost"):
        stream.createReaderFactory().createReader(planned).next()
    with pytest.raises(RuntimeError, match=r"ends before .*7.*: it was emptied"):
        stream.planInputPartitions(SegmentOffset(7), SegmentOffset(2))


def test_spool_that_is_not_named_is_an_error() -> None:
    with pytest.raises(OptionError, match="Option 'spool' is missing"):
        SpooledFeed().newScanBuilder({"feed": "127.0.0.1:1"})


class TestSpooledFeed(SourceContract):
    """The contract over a spool, which a receiver elsewhere fills."""

    counts_rows = False
    keeps_committed_rows = False

    @pytest.fixture(autouse=True)
    def place(self, spool: Spool) -> None:
        self._spool = spool
        self._sent = 0

    def table(self) -> SupportsRead:
        return SpooledFeed()

    def options(self) -> dict[str, str]:
        return {"spool": self._spool.files.location}

    def add_rows(self, count: int) -> None:
        numbers = [str(self._sent + number) for number in range(count)]
        self._sent += count
        for first in range(0, count, 4):
            self._spool.put(self._spool.end(), numbers[first : first + 4])


def test_plain_feed_has_other_rows_when_a_micro_batch_runs_again(feed: FeedServer) -> None:
    options = {"feed": feed.address, "seconds": "2"}

    def listened(*sent: str) -> list[str]:
        def send() -> None:
            eventually(lambda: feed.send(*sent) == 1)

        sender = threading.Thread(target=send)
        sender.start()
        rows = [line for (line,) in PlainFeed().read(options, 0, 1)]
        sender.join()
        eventually(lambda: feed.connected() == 0)
        return rows

    assert listened("a", "b") == ["a", "b"]
    feed.send("lost")
    assert listened("c") == ["c"]


# Queries


def stored(place: Path) -> list[tuple[str | None, str | None]]:
    """Return line and gap of the rows that the query has committed, in their order."""
    logs = (place / "rows" / "_spark_metadata").glob("[0-9]*")
    committed = {json.loads(entry)["path"] for log in logs for entry in log.read_text().splitlines()[1:]}
    rows = [row for path in committed for row in parquet.read_table(path.removeprefix("file://")).to_pylist()]
    return [(row["line"], row["gap"]) for row in sorted(rows, key=lambda row: (row["segment"], row["gap"] is None))]


@pytest.mark.full("Examples")
@pytest.mark.usefixtures("spark")
def test_spooled_lines_come_once_through_a_kill_and_the_gap_is_said(feed: FeedServer, tmp_path: Path) -> None:
    """A query with its driver is killed between two micro-batches; another driver continues."""
    spool = Spool(CheckpointFiles(str(tmp_path / "spool")))
    command = [sys.executable, str(_EXAMPLE), feed.address, str(tmp_path)]
    with (tmp_path / "log").open("wb") as log:
        killed = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        eventually(lambda: feed.connected() == 1, 300)
        feed.send("a1", "a2")
        eventually(lambda: stored(tmp_path) == [("a1", None), ("a2", None)])
        feed.send("b1", "b2")
        eventually(lambda: spool.numbers()[-1] >= 1)
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait(120)
    eventually(lambda: feed.connected() == 0)
    assert feed.send("lost") == 0
    with sent_by_value(socket_feed):
        query = socket_feed.query_of(feed.address, str(tmp_path)).format("parquet").start(str(tmp_path / "rows"))
    try:
        eventually(lambda: feed.connected() == 1)
        feed.send("c1")
        eventually(lambda: ("c1", None) in stored(tmp_path))
    finally:
        query.stop()
    rows = stored(tmp_path)
    assert [line for line, _ in rows if line is not None] == ["a1", "a2", "b1", "b2", "c1"]
    (said,) = [(number, gap) for number, (_, gap) in enumerate(rows) if gap is not None]
    assert said[0] == 4, "the gap stands between the lines before and after it"
    assert "may be missing: the receiver was started" in said[1]
    # The receiver ends with its query.
    eventually(lambda: feed.connected() == 0)


def test_plain_feed_is_read_while_a_task_is_connected(spark: SparkSession, feed: FeedServer) -> None:
    with sent_by_value(socket_feed):
        spark.dataSource.register(as_data_source(PlainFeed()))
    sender = threading.Thread(target=lambda: eventually(lambda: feed.send("a", "b") == 1))
    sender.start()
    rows = spark.read.format("plain_feed").options(feed=feed.address, seconds="4").load().collect()
    sender.join()
    assert [row.line for row in rows] == ["a", "b"]


@pytest.mark.full("Examples")
@pytest.mark.usefixtures("spark")
def test_script_shows_lines_and_a_gap(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [str(_EXAMPLE)])
    runpy.run_path(str(_EXAMPLE), run_name="__main__")
    said = capsys.readouterr().out
    assert said.count("|segment|received") >= 5
    # Lines before the query listens are not in the feed.
    assert re.search(r"\|line \d+", said)
    assert "may be missing: ConnectionResetError" in said
