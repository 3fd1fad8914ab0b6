"""Any `Table` as a PySpark data source: `spark.dataSource.register(as_data_source(table))`.

Each method imports what it needs. Spark starts a Python process for each step of a query, one after the other: to find
the source, to create it, to plan a read, to create a writer. The first needs the class only, and to import the rest
takes longer than the step itself.
"""
# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import logging
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from pyspark_kafka._connector.spark.readers import BatchReaderAdapter
    from pyspark_kafka.connector import Scan, ScanBuilder, Table, TableCapability, Write, WriteBuilder

_LOG = logging.getLogger(__name__)

_CHECKPOINT = "checkpointLocation"
_LOGGED_NOTES: set[str] = set()


def as_data_source(table: Table) -> type[DataSource]:
    """Return a table as a class that `spark.dataSource.register` takes, on classic Spark and on Spark Connect.

    The name of the format is the table's. Every capability that the table names is available: `spark.read`,
    `spark.readStream`, `df.write`, `df.writeStream`. Options reach the table with names that compare without regard to
    case. A schema given by `.schema(...)` prunes columns if the scan builder supports that, and must be the table's
    otherwise.

    Args:
        table: must pickle; a class of `__main__` or of a notebook does.

    Raises:
        ContractError: it is not a `Table`, or its name or capabilities are of another type than the contract says.
    """
    from pyspark_kafka.connector import Table, TableCapability
    from pyspark_kafka.connector.engine.checks import check_instance
    from pyspark_kafka.errors import ContractError

    if isinstance(table, type) and issubclass(table, Table):
        raise ContractError.violated(
            table,
            "__init__",
            "was not called: as_data_source() takes a table, and was given its class.",
            hint=f"Write as_data_source({table.__qualname__}()).",
        )
    if not isinstance(table, Table):
        raise TypeError(f"as_data_source() takes a Table, not a {type(table).__name__}")
    name = check_instance(table.name(), str, table, "name")
    # Where no classic session runs, the processes may belong to a server elsewhere.
    from pyspark.sql import SparkSession

    if (session := SparkSession.getActiveSession()) is not None:
        from pyspark_kafka._connector.spark.processes.python_choice import warn_without_package

        warn_without_package(session, table=name)
    for each in check_instance(table.capabilities(), frozenset, table, "capabilities"):
        check_instance(each, TableCapability, table, "capabilities")
    return type(f"{type(table).__name__}DataSource", (TableDataSource,), {"given": table})


class TableDataSource(DataSource):
    """Runs a table as a PySpark data source. `as_data_source` returns subclasses of it.

    Runs on: driver, in Python processes that Spark starts for each step of a query; pickled with its table.

    Attributes:
        given: the table that `as_data_source` was called with.
        has_checks: whether the results of readers are checked, as for a table that is not this package's.
    """

    given: ClassVar[Table]
    has_checks: ClassVar[bool] = True

    @classmethod
    def table(cls) -> Table:
        """Return the table; a subclass that overrides it can import the table's module where it is needed."""
        return cls.given

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return cls.table().name()

    def schema(self) -> StructType:
        """Return the columns of the table for these options."""
        from pyspark_kafka._connector.spark.compat import spark_schema
        from pyspark_kafka._connector.spark.processes.process_log import log_as_spark

        log_as_spark("load()")
        return spark_schema(self._schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query; one that takes Spark's filters if the table's builder takes them."""
        from pyspark_kafka._connector.spark.compat import arrow_schema
        from pyspark_kafka._connector.spark.processes.process_log import log_as_spark
        from pyspark_kafka._connector.spark.readers import FilteringBatchReaderAdapter
        from pyspark_kafka.connector import SupportsPushDownFilters, TableCapability

        log_as_spark("planning a batch read")
        asked = arrow_schema(schema)
        builder = self._scan_builder(asked, TableCapability.BATCH_READ, "spark.read")
        if isinstance(builder, SupportsPushDownFilters):
            return FilteringBatchReaderAdapter(builder, partial(self._batch_reader, builder, asked))
        return self._batch_reader(builder, asked)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query; if it cannot be built, one whose first call raises the reason."""
        from pyspark_kafka._connector.spark.compat import arrow_schema
        from pyspark_kafka._connector.spark.processes.process_log import log_as_spark
        from pyspark_kafka._connector.spark.stream_readers import RefusedStreamReader, stream_reader
        from pyspark_kafka.connector import MicroBatchStream, TableCapability
        from pyspark_kafka.connector.engine.checks import check_instance

        log_as_spark("starting a streaming read")
        try:
            asked = arrow_schema(schema)
            scan = _scan(self._scan_builder(asked, TableCapability.MICRO_BATCH_READ, "spark.readStream"), asked)
            stream = scan.toMicroBatchStream(self._located.get(_CHECKPOINT))
            check_instance(stream, MicroBatchStream, scan, "toMicroBatchStream")
            log_as_spark(f"planning a streaming read of {scan.description()}")
            # Spark builds a second reader, only to pickle it.
            log_notes = partial(_log_once, scan.notes())
            return stream_reader(stream, self._schema_to_check(scan), log_notes)
        except Exception as error:  # noqa: BLE001 - raised by the reader that is returned
            return RefusedStreamReader(error.with_traceback(None))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query."""
        from pyspark_kafka._connector.spark.processes.process_log import log_as_spark
        from pyspark_kafka._connector.spark.writers import BatchWriterAdapter
        from pyspark_kafka.connector import BatchWrite, TableCapability
        from pyspark_kafka.connector.engine.checks import check_instance

        log_as_spark("planning a batch write")
        write = self._write(schema, TableCapability.BATCH_WRITE, "df.write", overwrite=overwrite)
        job = check_instance(write.toBatch(), BatchWrite, write, "toBatch")
        _log_once(write.notes())
        return BatchWriterAdapter(job)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of one micro-batch; complete mode has the table truncated first."""
        from pyspark_kafka._connector.spark.processes.process_log import log_as_spark
        from pyspark_kafka._connector.spark.writers import StreamWriterAdapter
        from pyspark_kafka.connector import StreamingWrite, TableCapability
        from pyspark_kafka.connector.engine.checks import check_instance

        log_as_spark("planning a streaming write")
        write = self._write(schema, TableCapability.STREAMING_WRITE, "df.writeStream", overwrite=overwrite)
        job = check_instance(write.toStreaming(), StreamingWrite, write, "toStreaming")
        _log_once(write.notes())
        return StreamWriterAdapter(job)

    def _batch_reader(self, builder: ScanBuilder, asked: pa.Schema) -> BatchReaderAdapter:
        from pyspark_kafka._connector.spark.processes.process_log import log_as_spark
        from pyspark_kafka._connector.spark.readers import BatchReaderAdapter
        from pyspark_kafka.connector import Batch
        from pyspark_kafka.connector.engine.checks import check_instance

        scan = _scan(builder, asked)
        batch = check_instance(scan.toBatch(), Batch, scan, "toBatch")
        log_as_spark(f"planning a batch read of {scan.description()}")
        _log_once(scan.notes())
        return BatchReaderAdapter(batch, self._schema_to_check(scan))

    def _schema_to_check(self, scan: Scan) -> pa.Schema | None:
        return scan.readSchema() if self.has_checks else None

    def _schema(self) -> pa.Schema:
        import pyarrow as pa

        from pyspark_kafka.connector.engine.checks import check_instance

        table = self.table()
        return check_instance(table.schema(self._located), pa.Schema, table, "schema")

    @cached_property
    def _located(self) -> Mapping[str, str]:
        """The options, with the location of the checkpoint as Spark reads it."""
        if _CHECKPOINT not in self.options:
            return self.options
        from pyspark.sql.datasource import CaseInsensitiveDict

        from pyspark_kafka.checkpoint.default_file_system import on_default_file_system

        return CaseInsensitiveDict({**self.options, _CHECKPOINT: on_default_file_system(self.options[_CHECKPOINT])})

    def _scan_builder(self, asked: pa.Schema, capability: TableCapability, call: str) -> ScanBuilder:
        from pyspark_kafka._connector.spark.compat import arrow_schema, spark_schema
        from pyspark_kafka.connector import ScanBuilder, SupportsPushDownRequiredColumns, SupportsRead
        from pyspark_kafka.connector.engine.checks import check_instance, difference
        from pyspark_kafka.errors import SchemaError

        table = self._capable(SupportsRead, capability, call)
        builder: ScanBuilder = check_instance(table.newScanBuilder(self._located), ScanBuilder, table, "newScanBuilder")
        if isinstance(builder, SupportsPushDownRequiredColumns):
            builder.pruneColumns(asked)
        elif not asked.equals(own := arrow_schema(spark_schema(self._schema()))):
            raise SchemaError(
                f"The schema given by .schema() is not the schema of {table.name()!r}: {difference(own, asked)}.",
                condition="SCHEMA_NOT_SUPPORTED",
                hint="Leave .schema() out, and select columns after load().",
            )
        return builder

    def _write(self, schema: StructType, capability: TableCapability, call: str, *, overwrite: bool) -> Write:
        from pyspark_kafka._connector.spark.compat import schema_to_write
        from pyspark_kafka.connector import LogicalWriteInfo, SupportsWrite, Write, WriteBuilder
        from pyspark_kafka.connector.engine.checks import check_instance

        table = self._capable(SupportsWrite, capability, call)
        info = LogicalWriteInfo(self._located, schema_to_write(schema))
        builder = check_instance(table.newWriteBuilder(info), WriteBuilder, table, "newWriteBuilder")
        if overwrite:
            builder = self._truncated(builder, capability)
        write: Write = check_instance(builder.build(), Write, builder, "build")
        return write

    def _truncated(self, builder: WriteBuilder, capability: TableCapability) -> WriteBuilder:
        from pyspark_kafka.connector import SupportsTruncate, TableCapability, WriteBuilder
        from pyspark_kafka.connector.engine.checks import check_instance
        from pyspark_kafka.errors import CapabilityError

        table = self.table()
        is_named, is_able = TableCapability.TRUNCATE in table.capabilities(), isinstance(builder, SupportsTruncate)
        # As Spark: a stream asks the builder alone, since complete mode may append to a table that only grows.
        if not is_named and not (is_able and capability is TableCapability.STREAMING_WRITE):
            raise CapabilityError(
                f"Table {table.name()!r} cannot be emptied before a write, as mode 'overwrite' and complete "
                "mode ask for. Nothing was written.",
                condition="CAPABILITY_MISSING",
                hint='Use .mode("append"), or .outputMode("append").',
                parameters={"table": table.name(), "capability": TableCapability.TRUNCATE.name},
            )
        if not isinstance(builder, SupportsTruncate):
            raise CapabilityError.missing_method(builder, "truncate", TableCapability.TRUNCATE.name)
        return check_instance(builder.truncate(), WriteBuilder, builder, "truncate")

    def _capable(self, kind: Any, capability: TableCapability, call: str) -> Any:
        from pyspark_kafka.errors import CapabilityError, ContractError

        table = self.table()
        named = table.capabilities()
        if capability not in named:
            able = ", ".join(sorted(each.name for each in named)) or "none"
            raise CapabilityError(
                f"Table {table.name()!r} cannot be {capability.value} ({call}): it lacks the capability "
                f"{capability.name}; it has: {able}.",
                condition="CAPABILITY_MISSING",
                hint=f"Use the table as its capabilities say, or name {capability.name} in "
                f"{type(table).__qualname__}.capabilities() and implement it.",
                parameters={"table": table.name(), "capability": capability.name},
            )
        if not isinstance(table, kind):
            raise ContractError.violated(
                table, "capabilities", f"names {capability.name}, and the class is not a subclass of {kind.__name__}."
            )
        return table


def _scan(builder: ScanBuilder, asked: pa.Schema) -> Scan:
    """Return the read that has the columns that Spark requests."""
    from pyspark_kafka.connector import Scan
    from pyspark_kafka.connector.engine.checks import check_instance, difference
    from pyspark_kafka.errors import ContractError

    scan: Scan = check_instance(builder.build(), Scan, builder, "build")
    if not scan.readSchema().equals(asked):
        wrong = difference(asked, scan.readSchema())
        raise ContractError.violated(scan, "readSchema", f"returned other columns than the query reads: {wrong}.")
    return scan


def _log_once(notes: Sequence[str]) -> None:
    """Log what a table has to say, each text once for a process: a stream writer is built for every micro-batch."""
    for note in notes:
        if note not in _LOGGED_NOTES:
            _LOGGED_NOTES.add(note)
            _LOG.warning(note)
