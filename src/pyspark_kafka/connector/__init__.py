"""The contracts between an engine and a connector, with Spark's names. Data crosses as Arrow batches.

Entry points: `Table`; `MicroBatchStream`, `Batch` for sources; `StreamingWrite`, `BatchWrite` for sinks; `filters` for
the filters that an engine pushes down. `pyspark_kafka._connector` implements them for Kafka, and adapts any
implementation to PySpark.

The modules: `table`; `read`, `continuous`, `simple` for sources, with their `offsets` and `limits`; `write` for sinks;
`rows` for both, with dictionaries in place of Arrow; `columns`; `contract`, the base of all. `engine/` has the checks
of every engine.

Invariant: no Kafka, no PySpark; imports no other package of pyspark-kafka.

What only some sources need is loaded when it is first used: PySpark starts a process for each step of a query, and each
of them waits for its imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_kafka.connector.limits import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.connector.offsets import Offset, PartitionOffset
from pyspark_kafka.connector.read import (
    Batch,
    InputPartition,
    MicroBatchStream,
    PartitionReader,
    PartitionReaderFactory,
    ReportsSourceMetrics,
    SupportsAdmissionControl,
    SupportsTriggerAvailableNow,
)
from pyspark_kafka.connector.table import (
    LogicalWriteInfo,
    Scan,
    ScanBuilder,
    SupportsPushDownFilters,
    SupportsPushDownRequiredColumns,
    SupportsRead,
    SupportsTruncate,
    SupportsWrite,
    Table,
    TableCapability,
    Write,
    WriteBuilder,
)
from pyspark_kafka.connector.write import (
    BatchWrite,
    DataWriter,
    DataWriterFactory,
    PhysicalWriteInfo,
    StreamingDataWriterFactory,
    StreamingWrite,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    from pyspark_kafka.connector.continuous import (
        CommitLimit,
        ContinuousPartitionReader,
        ContinuousPartitionReaderFactory,
        ContinuousStream,
        SourceOffsetsWriter,
        SupportsSourceOffsets,
    )
    from pyspark_kafka.connector.rows import RowDataWriter, RowPartitionReader
    from pyspark_kafka.connector.simple import SimpleSource

__all__ = [
    "Batch",
    "BatchWrite",
    "CommitLimit",
    "CompositeReadLimit",
    "ContinuousPartitionReader",
    "ContinuousPartitionReaderFactory",
    "ContinuousStream",
    "DataWriter",
    "DataWriterFactory",
    "InputPartition",
    "LogicalWriteInfo",
    "MicroBatchStream",
    "Offset",
    "PartitionOffset",
    "PartitionReader",
    "PartitionReaderFactory",
    "PhysicalWriteInfo",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxFiles",
    "ReadMaxRows",
    "ReadMinRows",
    "ReportsSourceMetrics",
    "RowDataWriter",
    "RowPartitionReader",
    "Scan",
    "ScanBuilder",
    "SimpleSource",
    "SourceOffsetsWriter",
    "StreamingDataWriterFactory",
    "StreamingWrite",
    "SupportsAdmissionControl",
    "SupportsPushDownFilters",
    "SupportsPushDownRequiredColumns",
    "SupportsRead",
    "SupportsSourceOffsets",
    "SupportsTriggerAvailableNow",
    "SupportsTruncate",
    "SupportsWrite",
    "Table",
    "TableCapability",
    "Write",
    "WriteBuilder",
    "WriterCommitMessage",
]
__dir__ = __all__.copy

_PLACES = {
    "CommitLimit": "continuous",
    "ContinuousPartitionReader": "continuous",
    "ContinuousPartitionReaderFactory": "continuous",
    "ContinuousStream": "continuous",
    "RowDataWriter": "rows",
    "RowPartitionReader": "rows",
    "SimpleSource": "simple",
    "SourceOffsetsWriter": "continuous",
    "SupportsSourceOffsets": "continuous",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
