"""The same source and sink twice, for bench/connector.py: as a `Table`, and written by hand against PySpark's own API.

Both variants of a case yield the same Arrow batches, or make their batches of the same rows. Workers cannot import this
folder: `register` pickles the module by value.
"""

# ruff: noqa: D102, N802, N803 - names and duties are those of the contracts
from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
)
from pyspark.sql.datasource import InputPartition as SparkPartition
from pyspark.sql.datasource import WriterCommitMessage as SparkMessage
from pyspark.sql.streaming.datasource import ReadAllAvailable as SparkReadAll
from pyspark.sql.streaming.datasource import ReadLimit as SparkLimit
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as SparkAvailableNow

from pyspark_kafka import as_data_source
from pyspark_kafka.connector import (
    Batch,
    BatchWrite,
    DataWriter,
    DataWriterFactory,
    InputPartition,
    LogicalWriteInfo,
    MicroBatchStream,
    Offset,
    PartitionReader,
    PartitionReaderFactory,
    PhysicalWriteInfo,
    ReadAllAvailable,
    ReadLimit,
    RowPartitionReader,
    Scan,
    ScanBuilder,
    SupportsRead,
    SupportsTriggerAvailableNow,
    SupportsWrite,
    TableCapability,
    Write,
    WriteBuilder,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

PARTITIONS = 2
_ROWS = 10_000
_ROWS_OF_ROWS = 1_000
_SQL = "id bigint, name string, price double"
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield Arrow batches that are there already: what a reader adds shows best where it does nothing else."""
    names = pa.array([f"name-{number:09d}" for number in range(_ROWS)])
    batch = pa.record_batch([pa.array(range(_ROWS)), names, pa.array([1.5] * _ROWS)], schema=SCHEMA)
    for _ in range(rows // _ROWS):
        yield batch


def tuples(rows: int) -> Iterator[tuple[int, str, float]]:
    """Yield rows."""
    for number in range(rows):
        yield number, f"name-{number:09d}", 1.5


def dictionaries(rows: int) -> Iterator[dict[str, Any]]:
    """Yield rows by column name."""
    for number in range(rows):
        yield {"id": number, "name": f"name-{number:09d}", "price": 1.5}


def columns_of_tuples(rows: int) -> Iterator[pa.RecordBatch]:
    """Make Arrow batches of tuples, as one would by hand."""
    source = tuples(rows)
    while taken := list(islice(source, _ROWS_OF_ROWS)):
        columns = zip(*taken, strict=True)
        yield pa.record_batch(
            [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
        )


def columns_of_dictionaries(rows: int) -> Iterator[pa.RecordBatch]:
    """Make Arrow batches of dictionaries, as Arrow does."""
    source = dictionaries(rows)
    while taken := list(islice(source, _ROWS_OF_ROWS)):
        yield pa.RecordBatch.from_pylist(taken, schema=SCHEMA)


# By hand: what each kind yields.
_BY_HAND = {"batches": batches, "tuples": columns_of_tuples, "dictionaries": columns_of_dictionaries}


class Share(SparkPartition):
    """What one task reads."""

    def __init__(self, rows: int) -> None:
        self.rows = rows


class HandReader(DataSourceReader):
    """A batch reader as PySpark has it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._rows, self._kind = int(options["rows"]), options["kind"]

    def partitions(self) -> list[SparkPartition]:
        return [Share(self._rows // PARTITIONS) for _ in range(PARTITIONS)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return _BY_HAND[self._kind](partition.rows)


class HandStreamReader(DataSourceStreamReader, SparkAvailableNow):
    """A stream reader as PySpark has it: `rows` in each of `batches` micro-batches."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._rows, self._kind = int(options["rows"]), options["kind"]
        self._end = self._rows * int(options["batches"])

    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def latestOffset(self, start: dict[str, int], limit: SparkLimit) -> dict[str, int]:  # noqa: ARG002
        return {"at": min(start["at"] + self._rows, self._end)}

    def getDefaultReadLimit(self) -> SparkLimit:
        return SparkReadAll()

    def reportLatestOffset(self) -> None:
        return None

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[SparkPartition]:
        return [Share((end["at"] - start["at"]) // PARTITIONS) for _ in range(PARTITIONS)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return _BY_HAND[self._kind](partition.rows)

    def commit(self, end: dict[str, int]) -> None:
        pass


class CountMessage(SparkMessage):
    """The number of rows of a task."""

    def __init__(self, rows: int) -> None:
        self.rows = rows


class HandWriter(DataSourceArrowWriter):
    """A writer as PySpark has it, which counts its rows and drops them."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SparkMessage:
        return CountMessage(sum(batch.num_rows for batch in iterator))

    def commit(self, messages: Sequence[Any]) -> None:
        if not sum(message.rows for message in messages):
            raise RuntimeError("no row was written")


class ByHand(DataSource):
    """All of it as a PySpark data source."""

    @classmethod
    def name(cls) -> str:
        return "by_hand"

    def schema(self) -> str:
        return _SQL

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002 - Spark's contract
        return HandReader(self.options)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002
        return HandStreamReader(self.options)

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        return HandWriter()


@dataclass(frozen=True)
class At(Offset):
    """A number of rows."""

    at: int

    def json(self) -> str:
        return f'{{"at": {self.at}}}'


class Part(InputPartition):
    """What one task reads."""

    def __init__(self, rows: int) -> None:
        self.rows = rows


class ArrowReader(PartitionReader):
    """Reads batches that are there."""

    def __init__(self, rows: int) -> None:
        self._batches = batches(rows)

    def next(self) -> bool:
        self._batch = next(self._batches, None)
        return self._batch is not None

    def get(self) -> pa.RecordBatch:
        return self._batch

    def close(self) -> None:
        pass


class TupleReader(RowPartitionReader):
    """Reads tuples."""

    def __init__(self, rows: int) -> None:
        super().__init__(SCHEMA, _ROWS_OF_ROWS)
        self._count = rows

    def rows(self) -> Iterator[Any]:
        return tuples(self._count)


class DictionaryReader(TupleReader):
    """Reads dictionaries."""

    def rows(self) -> Iterator[Any]:
        return dictionaries(self._count)


_READERS: dict[str, Callable[[int], PartitionReader]] = {
    "batches": ArrowReader,
    "tuples": TupleReader,
    "dictionaries": DictionaryReader,
}


class Readers(PartitionReaderFactory):
    """Makes the reader of a kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def createReader(self, partition: InputPartition) -> PartitionReader:
        return _READERS[self._kind](partition.rows)  # type: ignore[attr-defined]


class OwnRead(ScanBuilder, Scan, Batch, MicroBatchStream, SupportsTriggerAvailableNow):
    """Each step of a read in one object."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._rows, self._kind = int(options["rows"]), options["kind"]
        self._end = self._rows * int(options["batches"])

    def build(self) -> Scan:
        return self

    def readSchema(self) -> pa.Schema:
        return SCHEMA

    def toBatch(self) -> Batch:
        return self

    def toMicroBatchStream(self, checkpointLocation: str | None) -> MicroBatchStream:  # noqa: ARG002
        return self

    def planInputPartitions(self, start: Any = None, end: Any = None) -> Sequence[InputPartition]:
        rows = self._rows if end is None else end.at - start.at
        return [Part(rows // PARTITIONS) for _ in range(PARTITIONS)]

    def createReaderFactory(self) -> PartitionReaderFactory:
        return Readers(self._kind)

    def initialOffset(self) -> Offset:
        return At(0)

    def latestOffset(self, start: Any, limit: ReadLimit) -> Offset:  # noqa: ARG002
        return At(min(start.at + self._rows, self._end))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def deserializeOffset(self, json: str) -> Offset:
        from json import loads  # noqa: PLC0415

        return At(loads(json)["at"])

    def commit(self, end: Offset) -> None:
        pass

    def stop(self) -> None:
        pass


class Rows(WriterCommitMessage):
    """The number of rows of a task."""

    def __init__(self, rows: int) -> None:
        self.rows = rows


class CountingWriter(DataWriter):
    """Counts rows and drops them."""

    def __init__(self) -> None:
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows

    def commit(self) -> WriterCommitMessage:
        return Rows(self._rows)

    def abort(self) -> None:
        pass

    def close(self) -> None:
        pass


class Writers(DataWriterFactory):
    """Makes them."""

    def createWriter(self, partition_id: int, task_id: int) -> DataWriter:  # noqa: ARG002 - the contract
        return CountingWriter()


class OwnWrite(WriteBuilder, Write, BatchWrite):
    """Each step of a write in one object."""

    def build(self) -> Write:
        return self

    def toBatch(self) -> BatchWrite:
        return self

    def createBatchWriterFactory(self, info: PhysicalWriteInfo) -> DataWriterFactory:  # noqa: ARG002
        return Writers()

    def commit(self, messages: Sequence[Any]) -> None:
        if not sum(message.rows for message in messages):
            raise RuntimeError("no row was written")

    def abort(self, messages: Sequence[Any]) -> None:
        pass


class OwnTable(SupportsRead, SupportsWrite):
    """All of it as a table of the connector API."""

    def name(self) -> str:
        return "own_table"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:  # noqa: ARG002
        return SCHEMA

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset({TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ, TableCapability.BATCH_WRITE})

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        return OwnRead(options)

    def newWriteBuilder(self, info: LogicalWriteInfo) -> WriteBuilder:  # noqa: ARG002
        return OwnWrite()


def register(spark: SparkSession) -> dict[str, str]:
    """Register both; return their names by what they are."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    spark.dataSource.register(ByHand)
    spark.dataSource.register(as_data_source(OwnTable()))
    return {"adapter": OwnTable().name(), "by hand": ByHand.name()}
