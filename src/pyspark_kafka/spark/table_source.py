"""Any `Table` as a PySpark data source: `spark.dataSource.register(as_data_source(table))`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.cloudpickle import dumps
from pyspark.sql.datasource import DataSource

from pyspark_kafka.connector import (
    Batch,
    BatchWrite,
    LogicalWriteInfo,
    MicroBatchStream,
    Scan,
    ScanBuilder,
    StreamingWrite,
    SupportsPushDownRequiredColumns,
    SupportsRead,
    SupportsTruncate,
    SupportsWrite,
    Table,
    TableCapability,
    Write,
    WriteBuilder,
)
from pyspark_kafka.connector.engine.checked_read import CheckedBatch, CheckedMicroBatchStream
from pyspark_kafka.connector.engine.checked_write import CheckedBatchWrite, CheckedStreamingWrite
from pyspark_kafka.connector.engine.checks import check_instance, difference
from pyspark_kafka.errors import CapabilityError, ContractError, SchemaError
from pyspark_kafka.spark.compat import arrow_schema, spark_schema
from pyspark_kafka.spark.readers import BatchReaderAdapter, RefusedStreamReader, StreamReaderAdapter
from pyspark_kafka.spark.writers import BatchWriterAdapter, StreamWriterAdapter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


def as_data_source(table: Table) -> type[DataSource]:
    """Return a table as a class that `spark.dataSource.register` takes, on classic Spark and on Spark Connect.

    The name of the format is the table's. Every capability that the table names is available: `spark.read`,
    `spark.readStream`, `df.write`, `df.writeStream`. Options reach the table with names that compare without regard to
    case. A schema given by `.schema(...)` prunes columns if the scan builder supports that, and must be the table's
    otherwise.

    Args:
        table: must pickle; a class of `__main__` or of a notebook does.

    Raises:
        ContractError: it is no `Table`, or its name or capabilities are of another type than the contract says.
    """
    if isinstance(table, type) and issubclass(table, Table):
        raise ContractError.violated(
            table,
            "__init__",
            "was not called: as_data_source() takes a table, and was given its class.",
            hint=f"Write as_data_source({table.__qualname__}()).",
        )
    if not isinstance(table, Table):
        raise TypeError(f"as_data_source() takes a Table, not a {type(table).__name__}")
    check_instance(table.name(), str, table, "name")
    for each in check_instance(table.capabilities(), frozenset, table, "capabilities"):
        check_instance(each, TableCapability, table, "capabilities")
    return type(f"{type(table).__name__}DataSource", (TableDataSource,), {"table": table})


class TableDataSource(DataSource):
    """What `as_data_source` returns a subclass of.

    Runs on: driver, in Python processes that Spark starts for each step of a query; pickled with its table.

    Attributes:
        table: set by `as_data_source`.
    """

    table: ClassVar[Table]

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return cls.table.name()

    def schema(self) -> StructType:
        """Return the columns of the table for these options."""
        return spark_schema(self._schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        scan = self._scan(schema, TableCapability.BATCH_READ, "spark.read")
        batch = check_instance(scan.toBatch(), Batch, scan, "toBatch")
        return BatchReaderAdapter(CheckedBatch(batch, scan.readSchema()))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query; if it cannot be built, one whose first call raises the reason."""
        try:
            scan = self._scan(schema, TableCapability.MICRO_BATCH_READ, "spark.readStream")
            stream = scan.toMicroBatchStream(self.options.get("checkpointLocation"))
            check_instance(stream, MicroBatchStream, scan, "toMicroBatchStream")
            return StreamReaderAdapter(CheckedMicroBatchStream(stream, scan.readSchema()))
        except Exception as error:  # noqa: BLE001 - raised by the reader that is returned
            return RefusedStreamReader(error.with_traceback(None))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query."""
        write = self._write(schema, TableCapability.BATCH_WRITE, "df.write", overwrite=overwrite)
        return BatchWriterAdapter(
            CheckedBatchWrite(check_instance(write.toBatch(), BatchWrite, write, "toBatch"), dumps)
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of one micro-batch; complete mode empties the table first."""
        write = self._write(schema, TableCapability.STREAMING_WRITE, "df.writeStream", overwrite=overwrite)
        job = check_instance(write.toStreaming(), StreamingWrite, write, "toStreaming")
        return StreamWriterAdapter(CheckedStreamingWrite(job, dumps))

    def _schema(self) -> pa.Schema:
        import pyarrow as pa  # noqa: PLC0415 - not every process needs it

        return check_instance(self.table.schema(self.options), pa.Schema, self.table, "schema")

    def _scan(self, schema: StructType, capability: TableCapability, call: str) -> Scan:
        table = self._capable(SupportsRead, capability, call)
        builder = check_instance(table.newScanBuilder(self.options), ScanBuilder, table, "newScanBuilder")
        asked, own = arrow_schema(schema), arrow_schema(spark_schema(self._schema()))
        if isinstance(builder, SupportsPushDownRequiredColumns):
            builder.pruneColumns(asked)
        elif not asked.equals(own):
            raise SchemaError(
                f"The schema given by .schema() is not the one of {self.table.name()!r}: {difference(own, asked)}.",
                condition="SCHEMA_NOT_SUPPORTED",
                hint="Leave .schema() out, and select columns after load().",
            )
        scan: Scan = check_instance(builder.build(), Scan, builder, "build")
        wrong = difference(asked, scan.readSchema())
        if not scan.readSchema().equals(asked):
            raise ContractError.violated(scan, "readSchema", f"returned other columns than the query reads: {wrong}.")
        return scan

    def _write(self, schema: StructType, capability: TableCapability, call: str, *, overwrite: bool) -> Write:
        table = self._capable(SupportsWrite, capability, call)
        info = LogicalWriteInfo(self.options, arrow_schema(schema))
        builder = check_instance(table.newWriteBuilder(info), WriteBuilder, table, "newWriteBuilder")
        if overwrite:
            if TableCapability.TRUNCATE not in self.table.capabilities():
                raise CapabilityError(
                    f"Table {self.table.name()!r} cannot be emptied before a write, as mode 'overwrite' and complete "
                    "mode ask for. Nothing was written.",
                    condition="CAPABILITY_MISSING",
                    hint='Use .mode("append"), or .outputMode("append").',
                    facts={"table": self.table.name(), "capability": TableCapability.TRUNCATE.name},
                )
            if not isinstance(builder, SupportsTruncate):
                raise CapabilityError.missing_method(builder, "truncate", TableCapability.TRUNCATE.name)
            builder = check_instance(builder.truncate(), WriteBuilder, builder, "truncate")
        write: Write = check_instance(builder.build(), Write, builder, "build")
        return write

    def _capable(self, kind: Any, capability: TableCapability, call: str) -> Any:
        named = self.table.capabilities()
        if capability not in named:
            able = ", ".join(sorted(each.name for each in named)) or "none"
            raise CapabilityError(
                f"Table {self.table.name()!r} cannot be {capability.value} ({call}): it lacks the capability "
                f"{capability.name}; it has: {able}.",
                condition="CAPABILITY_MISSING",
                hint=f"Use the table as its capabilities say, or name {capability.name} in "
                f"{type(self.table).__qualname__}.capabilities() and implement it.",
                facts={"table": self.table.name(), "capability": capability.name},
            )
        if not isinstance(self.table, kind):
            raise ContractError.violated(
                self.table, "capabilities", f"names {capability.name}, and the class is no {kind.__name__}."
            )
        return self.table
