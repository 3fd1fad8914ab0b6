"""A directory of files that grows, as a source: each file is read once, in the order in which it was found.

    python examples/directory_source.py

As a script it reads a directory of CSV files in three runs of a query, between which files come.

What it shows: a source that keeps a state of its own. Which files are new cannot be said by a number or a time: a file
can come late and be old. So the source keeps a log. Entry N of it has the files of one micro-batch, written before the
micro-batch begins; an offset is the number of an entry.

What it promises:

- A file is read once, also if it is older than files that were read. A name stands for one file: never use it again.
- A micro-batch that runs again reads the same files. If one of them was changed or removed since, that is an error.
- A file that is still being written is not read if it is written under another name and then renamed. Names that begin
  with `.` or `_`, also of directories, names without the ending of the format, and empty files are left out.
- `maxFilesPerTrigger` and `maxBytesPerTrigger` limit a micro-batch; it has one file at least.
- The log has at most 200 entries, and the names of older files that are still in the directory. If you move files away,
  at least 100 micro-batches after they were read, it stays small.

What it needs: `checkpointLocation` as an option of the read, a directory for the log of this query alone. Directories
are absolute paths, or URIs that `pyarrow.fs` knows. Each trigger lists the directory, and each file is a task. JSON
lines need pyarrow 20 or newer.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import fs, parquet
from pyarrow import json as arrow_json

from pyspark_kafka import as_data_source
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.connector import (
    Batch,
    CompositeReadLimit,
    InputPartition,
    MicroBatchStream,
    Offset,
    PartitionReader,
    PartitionReaderFactory,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    Scan,
    ScanBuilder,
    SupportsRead,
    SupportsTriggerAvailableNow,
    TableCapability,
)
from pyspark_kafka.errors import CheckpointError

KEPT_ENTRIES = 100
ENDINGS = {"csv": (".csv",), "json": (".json", ".jsonl"), "parquet": (".parquet",)}


@dataclass(frozen=True)
class FoundFile(InputPartition):
    """A file as it was when it was found: what one task reads. The path is relative to the directory."""

    path: str
    size: int
    modified_ns: int


@dataclass(frozen=True, eq=False)
class EntryOffset(Offset):
    """The number of the last entry of the log that was read."""

    entry: int

    def json(self) -> str:
        return json.dumps({"entry": self.entry})


@dataclass(frozen=True)
class Directory(PartitionReaderFactory):
    """The directory, the format of its files, and their columns; also what tasks make their readers with."""

    uri: str
    format: str
    schema: pa.Schema

    def find(self) -> list[FoundFile]:
        """Return all files that are whole, the oldest first."""
        system, root = fs.FileSystem.from_uri(self.uri)
        found = []
        for info in system.get_file_info(fs.FileSelector(root, recursive=True)):
            path = PurePosixPath(info.path).relative_to(root)
            hidden = any(part.startswith((".", "_")) for part in path.parts)
            if info.type == fs.FileType.File and info.size and not hidden and path.name.endswith(ENDINGS[self.format]):
                found.append(FoundFile(str(path), info.size, info.mtime_ns))
        return sorted(found, key=lambda file: (file.modified_ns, file.path))

    def createReader(self, partition: InputPartition) -> FileReader:
        return FileReader(self._read(cast("FoundFile", partition)))

    def _read(self, file: FoundFile) -> Iterator[pa.RecordBatch]:
        self._check(file)
        system, root = fs.FileSystem.from_uri(self.uri)
        try:
            with system.open_input_file(f"{root}/{file.path}") as opened:
                for batch in self._decode(opened):
                    columns = [batch.column(field.name).cast(field.type) for field in self.schema]
                    yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
        except (pa.ArrowException, KeyError) as error:
            wanted = f"{self.format} with the columns {', '.join(self.schema.names)}"
            raise RuntimeError(f"File {file.path} of {self.uri} cannot be read as {wanted}.") from error
        self._check(file)

    def _decode(self, opened: Any) -> Any:
        if self.format == "csv":
            options = arrow_csv.ConvertOptions(column_types=self.schema, include_columns=self.schema.names)
            return arrow_csv.open_csv(opened, convert_options=options)
        if self.format == "json":
            options = arrow_json.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="ignore")
            return arrow_json.open_json(opened, parse_options=options)
        return parquet.ParquetFile(opened).iter_batches(columns=self.schema.names)

    def _check(self, file: FoundFile) -> None:
        system, root = fs.FileSystem.from_uri(self.uri)
        info = system.get_file_info(f"{root}/{file.path}")
        if (info.size, info.mtime_ns) != (file.size, file.modified_ns):
            now = "it is gone" if info.type == fs.FileType.NotFound else f"it has {info.size} bytes, of {info.mtime}"
            raise RuntimeError(
                f"File {file.path} of {self.uri} was found with {file.size} bytes, and now {now}: the micro-batch "
                "cannot have the rows that it was planned with. Nothing of it is committed. Hint: Restore the file and "
                "its time. Write files under another name, rename them, and never change them."
            )


class FileReader(PartitionReader):
    """Returns the rows of one file."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches: Any = batches
        self._batch: pa.RecordBatch | None = None

    def next(self) -> bool:
        self._batch = next(self._batches, None)
        return self._batch is not None

    def get(self) -> pa.RecordBatch:
        return self._batch

    def close(self) -> None:
        self._batches.close()


class FileLog:
    """Which files were found: entries as files `entries/N`, and in the file `folded` the names of those before.

    Entries are written whole or not at all, and only one driver can write entry N.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._files = CheckpointFiles(location)
        self._entries: dict[int, list[FoundFile]] = {}
        self._folded: Any = None
        self.known: set[str] = set()
        self.last = 0

    def refresh(self) -> None:
        """Read what is new in the log."""
        if self._folded is None:
            self._folded = json.loads(self._files.read("folded") or '{"last": 0, "paths": []}')
        for number in sorted(int(name) for name in self._files.list("entries")):
            if number <= self._folded["last"]:
                self._files.delete(f"entries/{number}")  # a driver died when it folded
            elif number not in self._entries:
                data = self._files.read(f"entries/{number}")
                self._entries[number] = [FoundFile(*each) for each in json.loads(data or b"[]")]
        self.known = {file.path for files in self._entries.values() for file in files} | set(self._folded["paths"])
        self.last = max(self._entries, default=self._folded["last"])

    def files(self, start: int, end: int) -> list[FoundFile]:
        """Return the files of the entries behind `start`, up to `end`."""
        missing = [number for number in range(start + 1, end + 1) if number not in self._entries]
        if missing:
            raise RuntimeError(
                f"The log of files in {self._location} lacks entry {missing[0]}, which the checkpoint of the query "
                f"names; its last entry is {self.last}. Nothing was read. Hint: Restore the log together with the "
                "checkpoint, or begin again with a new checkpoint and a new log."
            )
        return [file for number in range(start + 1, end + 1) for file in self._entries[number]]

    def append(self, files: Sequence[FoundFile]) -> None:
        """Write the next entry."""
        if not self._files.create(f"entries/{self.last + 1}", json.dumps([astuple(file) for file in files]).encode()):
            raise RuntimeError(
                f"Another query has written entry {self.last + 1} of the log of files in {self._location}. Nothing was "
                "read. Hint: Use a checkpointLocation for each query, and run one driver of it at a time."
            )
        self.refresh()

    def fold(self, done: int, present: Iterable[FoundFile]) -> None:
        """Fold old entries into one file, without the names of files that are gone.

        Args:
            done: the last entry that was read. As many as are kept can be read again.
            present: what a listing found. One that found new files: the directory was not just unmounted.
        """
        old = [number for number in self._entries if number <= done - KEPT_ENTRIES]
        if len(old) < KEPT_ENTRIES:
            return
        gone = self.known - {file.path for file in present}
        paths = set(self._folded["paths"]) | {file.path for number in old for file in self._entries[number]}
        self._folded = {"last": max(old), "paths": sorted(paths - gone)}
        self._files.replace("folded", json.dumps(self._folded).encode())
        for number in old:
            del self._entries[number]
        self.refresh()


class DirectoryStream(MicroBatchStream, SupportsTriggerAvailableNow):
    """The micro-batches of a query."""

    def __init__(self, directory: Directory, limits: Sequence[ReadLimit], location: str) -> None:
        self._directory, self._limits = directory, limits
        self._log = FileLog(location)
        self._available: set[str] | None = None

    def initialOffset(self) -> EntryOffset:
        return EntryOffset(0)

    def deserializeOffset(self, json_text: str) -> EntryOffset:
        try:
            return EntryOffset(int(json.loads(json_text)["entry"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{json_text[:200]!r} is not an offset of a directory. Nothing was read.",
                condition="OFFSET_UNREADABLE",
                hint="Use the checkpoint of a query on this source.",
            ) from error

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadLimit.compositeLimit(self._limits) if self._limits else ReadLimit.allAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._available = {file.path for file in self._directory.find()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> EntryOffset:
        done = self.deserializeOffset(start.json()).entry
        self._log.refresh()
        self._log.files(self._log.last, done)  # an error if the log ends before the offset
        everything = isinstance(limit, ReadAllAvailable)
        if done < self._log.last and not everything:
            return EntryOffset(done + 1)  # written by a driver that died before Spark took note
        found = self._directory.find()
        new = [file for file in found if file.path not in self._log.known]
        if self._available is not None:
            new = [file for file in new if file.path in self._available]
        if new:
            self._log.append(list(admit(new, limit)))
            self._log.fold(done, found)
        return EntryOffset(self._log.last)

    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[FoundFile]:
        self._log.refresh()
        first, last = (self.deserializeOffset(offset.json()).entry for offset in (start, end))
        return self._log.files(first, last)

    def createReaderFactory(self) -> Directory:
        return self._directory

    def commit(self, end: Offset) -> None:
        """Do nothing: an entry can be read again."""

    def stop(self) -> None:
        """Do nothing: nothing is open."""


def admit(files: Iterable[FoundFile], limit: ReadLimit) -> Iterator[FoundFile]:
    """Yield the first files within a limit, and one at least."""
    limits = limit.limits if isinstance(limit, CompositeReadLimit) else (limit,)
    most_files = min((each.max_files for each in limits if isinstance(each, ReadMaxFiles)), default=math.inf)
    most_bytes = min((each.max_bytes for each in limits if isinstance(each, ReadMaxBytes)), default=math.inf)
    size = 0
    for number, file in enumerate(files):
        size += file.size
        if number and (number >= most_files or size > most_bytes):
            return
        yield file


class DirectoryScan(ScanBuilder, Scan, Batch):
    """One read, its builder, and the batch read: all files that are there."""

    def __init__(self, options: Mapping[str, str], schema: pa.Schema) -> None:
        self._directory = Directory(options["path"], options.get("format", "csv"), schema)
        names = {"maxFilesPerTrigger": ReadMaxFiles, "maxBytesPerTrigger": ReadMaxBytes}
        self._limits = [kind(int(options[name])) for name, kind in names.items() if name in options]

    def build(self) -> Scan:
        return self

    def readSchema(self) -> pa.Schema:
        return self._directory.schema

    def toBatch(self) -> Batch:
        return self

    def planInputPartitions(self) -> Sequence[FoundFile]:
        return self._directory.find()

    def createReaderFactory(self) -> Directory:
        return self._directory

    def toMicroBatchStream(self, checkpointLocation: str | None) -> DirectoryStream:
        if not checkpointLocation:
            raise ValueError("Set the option 'checkpointLocation' of the read: a directory for the log of files.")
        return DirectoryStream(self._directory, self._limits, checkpointLocation)


@dataclass(frozen=True)
class DirectoryTable(SupportsRead):
    """A format for directories of files with these columns; options `path`, `format`, and the limits."""

    format_name: str
    columns: pa.Schema

    def name(self) -> str:
        return self.format_name

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        return self.columns

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset({TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ})

    def newScanBuilder(self, options: Mapping[str, str]) -> DirectoryScan:
        return DirectoryScan(options, self.columns)


# From here on: the demonstration.


def main() -> None:
    """Read a directory in three runs, between which files come."""
    from pyspark.sql import SparkSession  # tests of the classes need no Spark

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    schema = pa.schema([("city", pa.string()), ("celsius", pa.float64())])
    spark.dataSource.register(as_data_source(DirectoryTable("readings", schema)))

    with tempfile.TemporaryDirectory() as place:
        inbox = Path(place, "inbox")
        inbox.mkdir()

        def put(name: str, city: str, *celsius: float, modified: int) -> None:
            (inbox / name).write_text("city,celsius\n" + "".join(f"{city},{each}\n" for each in celsius))
            os.utime(inbox / name, (modified, modified))

        def run(what: str) -> None:
            print(what, flush=True)
            rows = spark.readStream.format("readings").option("path", str(inbox)).option("maxFilesPerTrigger", 2)
            query = rows.option("checkpointLocation", f"{place}/log").load().writeStream.foreachBatch(show)
            query.option("checkpointLocation", f"{place}/query").trigger(availableNow=True).start().awaitTermination()

        def show(rows: Any, epoch: int) -> None:
            cities = {row.city: row["count"] for row in rows.groupBy("city").count().orderBy("city").collect()}
            print(f"  micro-batch {epoch}: {cities}", flush=True)

        put("1.csv", "Oslo", 3.5, 4.0, modified=1_000)
        put("2.csv", "Rome", 17.0, modified=2_000)
        put("3.csv", "Lima", 21.5, 22.0, 21.0, modified=3_000)
        run("Three files, at most two in a micro-batch:")
        put("late.csv", "Bern", 9.0, modified=500)
        put("4.csv.part", "Cairo", 31.0, modified=4_000)
        run("A file that came late and is older than all others, and one that is still being written:")
        (inbox / "4.csv.part").rename(inbox / "4.csv")
        run("The other file is whole, and has its name:")
    spark.stop()


if __name__ == "__main__":
    main()
