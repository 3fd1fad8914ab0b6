"""Contracts of a table: its name, schema and capabilities, and the builders of its reads and writes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import Enum, unique
from typing import TYPE_CHECKING

from pyspark_kafka.connector.contract import ConnectorContract
from pyspark_kafka.errors import CapabilityError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.connector.continuous import ContinuousStream
    from pyspark_kafka.connector.filters import Filter
    from pyspark_kafka.connector.read import Batch, MicroBatchStream
    from pyspark_kafka.connector.write import BatchWrite, StreamingWrite


@unique
class TableCapability(Enum):
    """A capability of a table. An engine uses only the capabilities that a table names.

    Source: Spark `org.apache.spark.sql.connector.catalog.TableCapability`.
    """

    BATCH_READ = "read in a batch query"
    MICRO_BATCH_READ = "read in a streaming query, micro-batch by micro-batch"
    CONTINUOUS_READ = "read in a continuous query"
    BATCH_WRITE = "written by a batch query"
    STREAMING_WRITE = "written by a streaming query"
    TRUNCATE = "emptied before a write"


class Table(ConnectorContract):
    """A table with columns that an engine reads, writes, or both.

    A table holds neither connections nor positions: it is the target of `format(…)`, with its name, columns and
    capabilities. `SupportsRead` and `SupportsWrite` add the read and the write.

    Runs on: driver; created once and called often. Must pickle: Spark sends the data source to other Python processes.
    No method blocks, except that `schema` may, with a deadline.

    Source: Spark `org.apache.spark.sql.connector.catalog.Table`, `TableProvider`.
    """

    @abstractmethod
    def name(self) -> str:
        """Return the name that users write in `format(…)`; plans and errors show it too."""

    @abstractmethod
    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        """Return the columns of a read with these options, in order, with their nullability.

        Args:
            options: the user's options; names compare without regard to case.

        Raises:
            OptionError: the options are missing, malformed or in conflict.
        """

    @abstractmethod
    def capabilities(self) -> frozenset[TableCapability]:
        """Return the capabilities of this table. Every call returns the same ones."""


class SupportsRead(Table):
    """A table that can be read.

    Source: Spark `org.apache.spark.sql.connector.catalog.SupportsRead`.
    """

    @abstractmethod
    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        """Return the builder of one read. Called on the driver, once for each `load()` that runs.

        Raises:
            OptionError: the options are missing, malformed or in conflict.
        """


class SupportsWrite(Table):
    """A table that can be written.

    Source: Spark `org.apache.spark.sql.connector.catalog.SupportsWrite`.
    """

    @abstractmethod
    def newWriteBuilder(self, info: LogicalWriteInfo) -> WriteBuilder:
        """Return the builder of one write. Called on the driver: once for a batch, once for each micro-batch.

        Raises:
            OptionError: the options are missing, malformed or in conflict.
            SchemaError: the columns to write do not fit.
        """


class ScanBuilder(ConnectorContract):
    """Plans one read; pruning and filters arrive here, before `build`.

    Runs on: driver; used once.

    Source: Spark `org.apache.spark.sql.connector.read.ScanBuilder`.
    """

    @abstractmethod
    def build(self) -> Scan:
        """Return the read."""


class SupportsPushDownRequiredColumns(ScanBuilder):
    """A read that can leave columns out.

    Source: Spark `org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns`.
    """

    @abstractmethod
    def pruneColumns(self, requiredSchema: pa.Schema) -> None:
        """Take the columns that the query needs, in its order: `Scan.readSchema` returns these from now on.

        An engine that knows them before the read calls it, as PySpark does with a schema given by `.schema(…)`.

        Raises:
            SchemaError: the table does not have these columns, or not with these types.
        """


class SupportsPushDownFilters(ScanBuilder):
    """A read that can leave rows out.

    PySpark refuses such a read unless the setting `spark.sql.python.filterPushdown.enabled` is on, and keeps the plan
    of the last filtered query for all queries of one `load()` (4.2, 4.3). So return a builder of this class from
    `newScanBuilder` only if the user has requested it, by an option of the table, and any other builder otherwise.

    Source: Spark `org.apache.spark.sql.connector.read.SupportsPushDownFilters`.
    """

    @abstractmethod
    def pushFilters(self, wanted: Sequence[Filter]) -> Sequence[Filter]:
        """Take the filters of the query, all of which a row must pass, and return the filters not applied in full.

        The read may leave out rows that fail a filter. It must not leave out a row that passes all filters. It must
        leave out all rows that fail a filter which is not returned: the engine evaluates only returned filters.
        Filters of an unknown kind are returned.

        Runs on: driver; at most once, before `build`, after `pruneColumns`. Does not block.
        """


class Scan(ConnectorContract):
    """One read, as a plan: which columns, and how to run it in each kind of query.

    Runs on: driver. A scan implements the methods of the capabilities that its table names; the other methods raise.

    Source: Spark `org.apache.spark.sql.connector.read.Scan`.
    """

    @abstractmethod
    def readSchema(self) -> pa.Schema:
        """Return the columns of every Arrow batch that the readers of this scan return, nullability included."""

    def description(self) -> str:
        """Return a description of the read, for plans and errors."""
        return type(self).__name__

    def notes(self) -> Sequence[str]:
        """Return notes for the user about this read, such as options without effect.

        An engine logs each text once in a process. Called after `toBatch`, `toMicroBatchStream` or
        `toContinuousStream`.
        """
        return ()

    def toBatch(self) -> Batch:
        """Return this read for a batch query.

        Raises:
            CapabilityError: the table cannot be read in a batch query.
        """
        raise CapabilityError.missing_method(self, "toBatch", TableCapability.BATCH_READ.name)

    def toMicroBatchStream(self, checkpointLocation: str | None) -> MicroBatchStream:  # noqa: ARG002 - for overrides
        """Return this read for a streaming query, micro-batch by micro-batch.

        Args:
            checkpointLocation: a directory of this source alone, for data that it must keep from one run to the next;
                None if the engine does not name one: PySpark does not name one to a Python source.

        Raises:
            CapabilityError: the table cannot be read in a streaming query.
        """
        raise CapabilityError.missing_method(self, "toMicroBatchStream", TableCapability.MICRO_BATCH_READ.name)

    def toContinuousStream(self, checkpointLocation: str | None) -> ContinuousStream:  # noqa: ARG002 - for overrides
        """Return this read for a continuous query.

        Args:
            checkpointLocation: as in `toMicroBatchStream`.

        Raises:
            CapabilityError: the table cannot be read in a continuous query.
        """
        raise CapabilityError.missing_method(self, "toContinuousStream", TableCapability.CONTINUOUS_READ.name)


@dataclass(frozen=True, slots=True)
class LogicalWriteInfo:
    """The description of a write when it is planned.

    Attributes:
        options: the user's options; names compare without regard to case.
        schema: the columns of the rows. A column whose type has no Arrow form in the engine has the type null here, so
            that a sink which does not need the column can still be written; `columns.type_name` returns the engine's
            name of the type of a column.
        queryId: the id of the query; None if the engine does not know it at this point, as PySpark.

    Source: Spark `org.apache.spark.sql.connector.write.LogicalWriteInfo`.
    """

    options: Mapping[str, str]
    schema: pa.Schema
    queryId: str | None = None


class WriteBuilder(ConnectorContract):
    """Plans one write.

    Runs on: driver; used once.

    Source: Spark `org.apache.spark.sql.connector.write.WriteBuilder`.
    """

    @abstractmethod
    def build(self) -> Write:
        """Return the write."""


class SupportsTruncate(WriteBuilder):
    """A write that can replace existing rows: `mode("overwrite")` in a batch, complete mode in a stream.

    A batch write uses it only if the table names `TRUNCATE`. An append-only table does not name it, and may still
    support complete mode: its `truncate` does nothing, and the whole result is appended at each trigger.

    Source: Spark `org.apache.spark.sql.connector.write.SupportsTruncate`.
    """

    @abstractmethod
    def truncate(self) -> WriteBuilder:
        """Make the write empty the table first. Returns the builder."""


class Write:
    """One write, as a plan: how to run it in each kind of query.

    Runs on: driver. A write implements the methods of the capabilities that its table names; the other methods raise.

    Source: Spark `org.apache.spark.sql.connector.write.Write`.
    """

    def description(self) -> str:
        """Return a description of the write and its target, for plans and errors."""
        return type(self).__name__

    def notes(self) -> Sequence[str]:
        """Return notes for the user about this write; as `Scan.notes`.

        Called after `toBatch` or `toStreaming`.
        """
        return ()

    def toBatch(self) -> BatchWrite:
        """Return this write for a batch query.

        Raises:
            CapabilityError: the table cannot be written by a batch query.
        """
        raise CapabilityError.missing_method(self, "toBatch", TableCapability.BATCH_WRITE.name)

    def toStreaming(self) -> StreamingWrite:
        """Return this write for a streaming query.

        Raises:
            CapabilityError: the table cannot be written by a streaming query.
        """
        raise CapabilityError.missing_method(self, "toStreaming", TableCapability.STREAMING_WRITE.name)

    def toContinuous(self, stream: ContinuousStream, epoch_ms: int) -> StreamingWrite:  # noqa: ARG002 - for overrides
        """Return this write for a continuous query; `toStreaming()` unless overridden.

        Args:
            stream: the source of the query: a write that keeps its positions needs it.
            epoch_ms: the length of an epoch.

        Raises:
            CapabilityError: a continuous query cannot write the table, or not from this source.
            OptionError: the options do not go with the source, or with the length of an epoch.
        """
        return self.toStreaming()
