"""A TCP feed that cannot be replayed, as a source: what can be promised then, and what cannot.

    python examples/socket_feed.py                       # a feed of this machine, for some seconds
    python examples/socket_feed.py HOST:PORT DIRECTORY   # a feed of yours, into Parquet files, until you interrupt it

The feed sends a line once, to whoever is connected. Spark reads a micro-batch again after a restart. So there are two
shapes.

`SpooledFeed`: **at least once from the receiver on**. A receiver writes what arrives into a spool of numbered segments.
A segment is written whole and is on disk before a query sees its number, and it stays until its micro-batch is
committed; a line in the spool is a row of one micro-batch, once. Lost is what the feed sends while no receiver is
connected, and what a receiver that is killed has not yet written: the lines of `ROLL_S`, at most `SEGMENT_BYTES`, and
what is in the buffers of the connection. Nobody can count these lines: a row that has a `gap` and no `line` says that
lines may be missing, from the time in its text to the time at which it was `received`.

`PlainFeed`: **at most once**. Each micro-batch is one connection of a task. Lost is what the feed sends in between, and
no row says so; a micro-batch that runs again has other rows.

The receiver runs in the process that plans the query: Spark starts one for each run of a query, on the driver, and it
ends with the query. A task comes and goes, and several would receive each line several times. A receiver that is a
process of its own has gaps that do not depend on restarts of the query: run `Receiver(...).run()` there, and leave the
option `feed` out here. The spool is on a file system that the driver and all tasks share.

Memory and disk are bounded: a receiver with a full spool does not read, so TCP slows the feed down, or the feed drops.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import pyspark_kafka
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.connector import (
    InputPartition,
    MicroBatchStream,
    Offset,
    PartitionReaderFactory,
    RowPartitionReader,
    Scan,
    ScanBuilder,
    SimpleSource,
    SupportsRead,
    TableCapability,
)
from pyspark_kafka.errors import CheckpointError, OptionError
from pyspark_kafka.toolkit import Cancelled, CancelSignal, RetryPolicy, retry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

ROLL_S = 0.2
SEGMENT_BYTES = 1024 * 1024
MAX_SEGMENTS = 256
RECONNECT = RetryPolicy(attempts=10_000, max_delay_ms=5_000, deadline_ms=600_000)
SCHEMA = pa.schema(
    [
        pa.field("segment", pa.int64(), nullable=False),
        pa.field("received", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("line", pa.string()),
        pa.field("gap", pa.string()),
    ]
)


def connect(feed: str) -> socket.socket:
    """Return a connection to `host:port`."""
    host, _, port = feed.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def gather(connection: socket.socket, data: bytes, seconds: float) -> tuple[bytes, str]:
    """Return what arrives in some seconds, behind what there is; and why the connection has ended, or an empty text."""
    ends = time.monotonic() + seconds
    while len(data) < SEGMENT_BYTES and (left := ends - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            part = connection.recv(65_536)
        except TimeoutError:
            break
        except OSError as error:
            return data, type(error).__name__
        if not part:
            return data, "the feed closed the connection"
        data += part
    return data, ""


# The spool, and who fills it


@dataclass(frozen=True)
class Spool:
    """Numbered segments below a location, each a small file that is written whole and flushed, or not at all."""

    files: CheckpointFiles

    def numbers(self) -> list[int]:
        """Return the numbers of the segments that are kept."""
        return [int(name) for name in self.files.list()]

    def end(self) -> int:
        """Return the number of the next segment."""
        return max(self.numbers(), default=-1) + 1

    def put(self, number: int, lines: Sequence[str], gap: str | None = None) -> None:
        """Write the next segment: a gap, and the lines after it."""
        content = {"received": time.time(), "gap": gap, "lines": lines}
        if not self.files.create(f"{number:012}", json.dumps(content).encode()):
            raise RuntimeError(f"another receiver writes to {self.files.shown}: segment {number} is there already")

    def get(self, number: int) -> Mapping[str, Any]:
        """Return a segment."""
        content = self.files.read(f"{number:012}")
        if content is None:
            raise RuntimeError(f"segment {number} is gone from {self.files.shown}: its lines are lost")
        return json.loads(content)  # type: ignore[no-any-return]

    def free_below(self, number: int) -> None:
        """Remove segments. The newest one stays, as numbers continue from it."""
        for each in self.numbers()[:-1]:
            if each < number:
                self.files.delete(f"{each:012}")


class Receiver:
    """Writes a feed into a spool until it is stopped, and connects again after each failure.

    Args:
        feed: `host:port`.
        spool: of this receiver alone.
    """

    def __init__(self, feed: str, spool: Spool) -> None:
        self._feed, self._spool = feed, spool
        self._stop = CancelSignal()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run_in_thread, name="feed receiver", daemon=True)

    def start(self) -> Receiver:
        """Receive in a thread."""
        self._thread.start()
        return self

    def check(self) -> None:
        """Raise what has ended the receiver, if something has."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(timeout=15)

    def run(self) -> None:
        """Receive until `stop`, or until the feed is out of reach for the deadline of `RECONNECT`."""
        number = self._spool.end()
        since, why = self._spool.get(number - 1)["received"] if number else None, "the receiver was started"
        while True:
            what = f"connecting to the feed {self._feed}"
            with retry(self._connect, what=what, policy=RECONNECT, sleep=self._stop.wait) as connection:
                self._wait_for_room()
                if since is not None:
                    self._spool.put(number, [], f"lines after {_shown(since)} may be missing: {why}")
                    number += 1
                first, rest, why = number, b"", ""
                while not why:
                    self._wait_for_room()
                    since = time.time()
                    data, why = gather(connection, rest, ROLL_S)
                    whole, newline, rest = data.rpartition(b"\n")
                    if newline:
                        self._spool.put(number, whole.decode(errors="replace").split("\n"))
                        number += 1
                    if len(rest) >= SEGMENT_BYTES:
                        why = f"a line has more than {SEGMENT_BYTES:,} bytes"
            if number == first:
                # A feed that accepts and closes at once is not asked again and again.
                self._stop.wait(1)

    def _connect(self) -> socket.socket:
        self._stop.check()
        return connect(self._feed)

    def _wait_for_room(self) -> None:
        self._stop.check()
        while len(self._spool.numbers()) >= MAX_SEGMENTS:
            self._stop.wait(ROLL_S)
            self._stop.check()

    def _run_in_thread(self) -> None:
        try:
            self.run()
        except Cancelled:
            pass
        except Exception as error:  # noqa: BLE001 - raised by check()
            self._failure = error


def _shown(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")


# At least once from the receiver on


class SpooledFeed(SupportsRead):
    """The lines of a feed. Options: `spool`, a directory of this query alone; `feed`, as `host:port`."""

    def name(self) -> str:
        return "spooled_feed"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        return SCHEMA

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset({TableCapability.MICRO_BATCH_READ})

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        if not options.get("spool"):
            raise OptionError("Option 'spool' is missing: a directory of this query alone.", condition="FEED_OPTION")
        return SpoolScan(Spool(CheckpointFiles(options["spool"])), options.get("feed"))


class SpoolScan(ScanBuilder, Scan):
    """One read; there is nothing to push down, so the builder is the scan."""

    def __init__(self, spool: Spool, feed: str | None) -> None:
        self._spool, self._feed = spool, feed

    def build(self) -> Scan:
        return self

    def readSchema(self) -> pa.Schema:
        return SCHEMA

    def toMicroBatchStream(self, checkpointLocation: str | None) -> MicroBatchStream:
        return SpoolStream(self._spool, self._feed)


@dataclass(frozen=True, eq=False)
class SegmentOffset(Offset):
    """The number of the next segment."""

    segment: int

    def json(self) -> str:
        return json.dumps({"segment": self.segment})


@dataclass(frozen=True)
class Segments(InputPartition):
    """Segments `[start, end)`."""

    start: int
    end: int


@dataclass(frozen=True)
class SegmentReaders(PartitionReaderFactory):
    """Makes readers of segments."""

    spool: Spool

    def createReader(self, partition: Segments) -> SegmentReader:  # type: ignore[override]
        return SegmentReader(self.spool, partition)


class SegmentReader(RowPartitionReader):
    """Reads segments, one of them in memory."""

    def __init__(self, spool: Spool, segments: Segments) -> None:
        super().__init__(SCHEMA)
        self._spool, self._segments = spool, segments

    def rows(self) -> Iterator[tuple[Any, ...]]:
        for number in range(self._segments.start, self._segments.end):
            found = self._spool.get(number)
            received = datetime.fromtimestamp(found["received"], timezone.utc)
            if found["gap"] is not None:
                yield number, received, None, found["gap"]
            for line in found["lines"]:
                yield number, received, line, None


class SpoolStream(MicroBatchStream):
    """Micro-batches of whole segments; the receiver starts with the first look-up."""

    def __init__(self, spool: Spool, feed: str | None) -> None:
        self._spool, self._feed = spool, feed
        self._receiver: Receiver | None = None

    def initialOffset(self) -> Offset:
        return SegmentOffset(min(self._spool.numbers(), default=0))

    def deserializeOffset(self, text: str) -> Offset:
        try:
            return SegmentOffset(json.loads(text)["segment"])
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{text[:200]!r} is no offset of a spool.", condition="FEED_OFFSET") from error

    def latestOffset(self) -> Offset:
        self._receive()
        return SegmentOffset(self._spool.end())

    def planInputPartitions(  # type: ignore[override]
        self, start: SegmentOffset, end: SegmentOffset
    ) -> Sequence[InputPartition]:
        # After a restart a micro-batch may run again before anything is looked up.
        self._receive()
        if end.segment < start.segment:
            raise RuntimeError(f"{self._spool.files.shown} ends before {start}: it was emptied. Use a new checkpoint.")
        return [Segments(start.segment, end.segment)] if start != end else []

    def createReaderFactory(self) -> PartitionReaderFactory:
        return SegmentReaders(self._spool)

    def commit(self, end: SegmentOffset) -> None:  # type: ignore[override]
        self._spool.free_below(end.segment)

    def stop(self) -> None:
        if self._receiver is not None:
            self._receiver.stop()

    def _receive(self) -> None:
        if self._feed is not None and self._receiver is None:
            self._receiver = Receiver(self._feed, self._spool).start()
        if self._receiver is not None:
            self._receiver.check()


# At most once


class PlainFeed(SimpleSource):
    """The lines that a feed sends while a task is connected: for `seconds` in each micro-batch."""

    def name(self) -> str:
        return "plain_feed"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        return pa.schema([pa.field("line", pa.string(), nullable=False)])

    def initial(self, options: Mapping[str, str]) -> int:
        return 0

    def latest(self, options: Mapping[str, str], start: int) -> int:
        # There is always another second to listen to.
        return start + 1

    def read(self, options: Mapping[str, str], start: int, end: int) -> Iterable[tuple[str]]:
        with connect(options["feed"]) as connection:
            data, _ = gather(connection, b"", float(options.get("seconds", "1")))
        for line in data.rpartition(b"\n")[0].splitlines():
            yield (line.decode(errors="replace"),)


def query_of(feed: str, directory: str) -> DataStreamWriter:
    """Return a query over a feed that keeps everything below a directory; its sink is missing."""
    from pyspark.sql import SparkSession

    pyspark_kafka.prepare()
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.dataSource.register(pyspark_kafka.as_data_source(SpooledFeed()))
    lines = spark.readStream.format("spooled_feed").options(feed=feed, spool=f"{directory}/spool").load()
    return lines.writeStream.option("checkpointLocation", f"{directory}/checkpoint").trigger(processingTime="1 second")


def main() -> None:
    """Read a feed that loses its connections."""
    import tempfile

    from feed_server import FeedServer

    with FeedServer() as feed, tempfile.TemporaryDirectory() as directory:
        shown: list[int] = []

        def show(rows: DataFrame, number: int) -> None:
            rows.show(1000, truncate=False)
            shown.append(number)
            if len(shown) == 2:
                feed.drop()

        query = query_of(feed.address, directory).foreachBatch(show).start()
        for number in range(2_500):
            feed.send(f"line {number}")
            if query.exception() is not None or len(shown) >= 5:
                break
            time.sleep(0.2)
        query.stop()


if __name__ == "__main__":
    if sys.argv[1:]:
        query_of(*sys.argv[1:]).format("parquet").option("path", f"{sys.argv[2]}/rows").start().awaitTermination()
    else:
        main()
