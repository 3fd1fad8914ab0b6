"""Contracts of a table: what an engine asks before it reads or writes, and what a table says that it can do."""

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
    """What a table can do. An engine asks for nothing that a table does not name.

    Source: Spark `org.apache.spark.sql.connector.catalog.TableCapability`.
    """

    BATCH_READ = "read in a batch query"
    MICRO_BATCH_READ = "read in a streaming query, micro-batch by micro-batch"
    CONTINUOUS_READ = "read in a continuous query"
    BATCH_WRITE = "written by a batch query"
    STREAMING_WRITE = "written by a streaming query"
    TRUNCATE = "emptied before a write"


class Table(ConnectorContract):
    """Something with columns that an engine reads, writes, or both.

    A table holds no connection and no position: it is what a user names in `format(…)`, and it says what is possible.
    `SupportsRead` and `SupportsWrite` add how.

    Runs on: driver; made once and asked often. Must pickle: Spark sends the data source to Python processes of its own.
    No method blocks, but `schema` may, with a deadline.

    Source: Spark `org.apache.spark.sql.connector.catalog.Table`, `TableProvider`.
    """

    @abstractmethod
    def name(self) -> str:
        """Return the name that users write in `format(…)`; plans and errors show it too."""

    @abstractmethod
    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        """Return the columns that a read has with these options, in order, with their nullability.

        Args:
            options: what the user set; their names compare without regard to case.

        Raises:
            OptionError: the options are missing, malformed or in conflict.
        """

    @abstractmethod
    def capabilities(self) -> frozenset[TableCapability]:
        """Return what this table can do. The same for every call."""


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
            SchemaError: the columns to be written do not fit.
        """


class ScanBuilder(ConnectorContract):
    """Decides what one read reads; pruning and filters arrive here, before `build`.

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
    `newScanBuilder` only if the user has asked for it, by an option of the table, and any other builder otherwise.

    Source: Spark `org.apache.spark.sql.connector.read.SupportsPushDownFilters`.
    """

    @abstractmethod
    def pushFilters(self, wanted: Sequence[Filter]) -> Sequence[Filter]:
        """Take the filters of the query, all of which a row must pass, and return those that are not kept in full.

        The read may leave out rows that fail a filter. It must not leave out a row that passes all of them. Rows that
        fail a filter which is not returned must be left out: the engine evaluates only those that are returned. Kinds
        that the table does not know are returned.

        Runs on: driver; at most once, before `build`, after `pruneColumns`. Does not block.
        """


class Scan(ConnectorContract):
    """One read, as a plan: which columns, and how to run it in each kind of query.

    Runs on: driver. A scan implements the methods of the capabilities that its table names; the others raise.

    Source: Spark `org.apache.spark.sql.connector.read.Scan`.
    """

    @abstractmethod
    def readSchema(self) -> pa.Schema:
        """Return the columns of every Arrow batch that the readers of this scan return, nullability included."""

    def description(self) -> str:
        """Return what is read, for plans and errors."""
        return type(self).__name__

    def notes(self) -> Sequence[str]:
        """Return what the user should know of this read although it works, such as options without effect.

        An engine logs each text once for a process. Called after `toBatch`, `toMicroBatchStream` or
        `toContinuousStream`.
        """
        return ()

    def toBatch(self) -> Batch:
        """Return this read for a batch query.

        Raises:
            CapabilityError: the table cannot be read in a batch query.
        """
        raise CapabilityError.missing_method(self, "toBatch", TableCapability.BATCH_READ.name)

    def toMicroBatchStream(self, checkpointLocation: str | None) -> MicroBatchStream:  # noqa: ARG002 - for those that can
        """Return this read for a streaming query, micro-batch by micro-batch.

        Args:
            checkpointLocation: a directory of this source alone, for what it must keep from one run to the next;
                None where the engine names none: PySpark tells a Python source no checkpoint location.

        Raises:
            CapabilityError: the table cannot be read in a streaming query.
        """
        raise CapabilityError.missing_method(self, "toMicroBatchStream", TableCapability.MICRO_BATCH_READ.name)

    def toContinuousStream(self, checkpointLocation: str | None) -> ContinuousStream:  # noqa: ARG002 - for those that can
        """Return this read for a continuous query.

        Args:
            checkpointLocation: as in `toMicroBatchStream`.

        Raises:
            CapabilityError: the table cannot be read in a continuous query.
        """
        raise CapabilityError.missing_method(self, "toContinuousStream", TableCapability.CONTINUOUS_READ.name)


@dataclass(frozen=True, slots=True)
class LogicalWriteInfo:
    """What an engine knows of a write when it plans it.

    Attributes:
        options: what the user set; names compare without regard to case.
        schema: the columns of the rows. A column whose type has no Arrow form in the engine has the type null here, so
            that a sink which needs no such column can still be written; `columns.type_name` returns what the engine
            calls the type of a column.
        queryId: the id of the query; None where the engine knows none at this point, as PySpark.

    Source: Spark `org.apache.spark.sql.connector.write.LogicalWriteInfo`.
    """

    options: Mapping[str, str]
    schema: pa.Schema
    queryId: str | None = None


class WriteBuilder(ConnectorContract):
    """Decides how one write writes.

    Runs on: driver; used once.

    Source: Spark `org.apache.spark.sql.connector.write.WriteBuilder`.
    """

    @abstractmethod
    def build(self) -> Write:
        """Return the write."""


class SupportsTruncate(WriteBuilder):
    """A write that can replace what is there: `mode("overwrite")` in a batch, complete mode in a stream.

    A batch write asks for it only if the table names `TRUNCATE`. A table that only grows leaves that out, and may still
    take complete mode: its `truncate` does nothing, and the whole result is appended at each trigger.

    Source: Spark `org.apache.spark.sql.connector.write.SupportsTruncate`.
    """

    @abstractmethod
    def truncate(self) -> WriteBuilder:
        """Have the write empty the table first. Returns the builder."""


class Write:
    """One write, as a plan: how to run it in each kind of query.

    Runs on: driver. A write implements the methods of the capabilities that its table names; the others raise.

    Source: Spark `org.apache.spark.sql.connector.write.Write`.
    """

    def description(self) -> str:
        """Return what is written where, for plans and errors."""
        return type(self).__name__

    def notes(self) -> Sequence[str]:
        """Return what the user should know of this write although it works; as `Scan.notes`.

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

    def toContinuous(self, stream: ContinuousStream, epoch_ms: int) -> StreamingWrite:  # noqa: ARG002 - for those that need it
        """Return this write for a continuous query; `toStreaming()` unless overridden.

        Args:
            stream: what the query reads: a write that keeps its positions must know them.
            epoch_ms: the length of an epoch.

        Raises:
            CapabilityError: the table cannot be written by a continuous query, or not by one of this source.
            OptionError: the options do not go with the source, or with the length of an epoch.
        """
        return self.toStreaming()
