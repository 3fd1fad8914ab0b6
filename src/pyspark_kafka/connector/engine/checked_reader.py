"""Readers of a source that is not this package's: return values that would lose rows silently are checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from pyspark_kafka.connector.continuous import ContinuousPartitionReader, ContinuousPartitionReaderFactory
from pyspark_kafka.connector.engine.checks import check_instance, difference, found, named
from pyspark_kafka.connector.read import ROWS_DROPPED, PartitionReader, PartitionReaderFactory
from pyspark_kafka.errors import ContractError

if TYPE_CHECKING:
    from pyspark_kafka.connector.read import InputPartition


class CheckedReader:
    """A reader, continuous or not, whose `next()` returns a bool and whose rows have the schema of the read.

    Raises:
        ContractError: `next` or `get` returned something else.
        CallError: `next` or `get` raised an error of another package.
    """

    def __init__(self, reader: PartitionReader, schema: pa.Schema) -> None:
        self._reader = reader
        self._schema = schema

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def next(self) -> bool:
        """Move to the next rows."""
        with named(self._reader, "next", ROWS_DROPPED):
            more = self._reader.next()
        if type(more) is not bool:
            raise ContractError.violated(self._reader, "next", f"must return True or False, and {found(more)}.")
        return more

    def get(self) -> pa.RecordBatch:
        """Return the rows."""
        with named(self._reader, "get", ROWS_DROPPED):
            batch = self._reader.get()
        if not isinstance(batch, pa.RecordBatch):
            raise ContractError.violated(self._reader, "get", f"must return a pyarrow.RecordBatch, and {found(batch)}.")
        if batch.schema is not self._schema and not batch.schema.equals(self._schema):
            wrong = f"returned rows of another schema than readSchema(): {difference(self._schema, batch.schema)}."
            raise ContractError.violated(self._reader, "get", wrong)
        return batch


@dataclass(frozen=True, slots=True)
class CheckedReaderFactory(ContinuousPartitionReaderFactory):
    """Makes the checked readers of a batch or a stream, continuous or not; pickles with the factory that it wraps.

    Attributes:
        factory: of the source.
        schema: of the rows that its readers return.
    """

    factory: PartitionReaderFactory
    schema: pa.Schema

    def createReader(self, partition: InputPartition) -> ContinuousPartitionReader:
        """Return the reader of one input partition."""
        with named(self.factory, "createReader", ROWS_DROPPED):
            reader = self.factory.createReader(partition)
        check_instance(reader, PartitionReader, self.factory, "createReader")
        return cast("ContinuousPartitionReader", CheckedReader(reader, self.schema))
