"""The contracts between an engine and a connector, with Spark's names. Data crosses as Arrow batches.

Entry points: `MicroBatchStream`, `Batch` for sources; `StreamingWrite`, `BatchWrite` for sinks. `pyspark_kafka.source`
and `pyspark_kafka.sink` implement them, `pyspark_kafka.spark` adapts them to PySpark.
Invariant: no Kafka, no PySpark; imports no other package of pyspark-kafka. Layer: connector.
"""

from pyspark_kafka.connector.continuous import (
    ContinuousPartitionReader,
    ContinuousPartitionReaderFactory,
    ContinuousStream,
)
from pyspark_kafka.connector.limits import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.connector.metrics import ReportsSourceMetrics
from pyspark_kafka.connector.offsets import Offset, PartitionOffset
from pyspark_kafka.connector.read import (
    Batch,
    InputPartition,
    MicroBatchStream,
    PartitionReader,
    PartitionReaderFactory,
    SupportsAdmissionControl,
    SupportsTriggerAvailableNow,
)
from pyspark_kafka.connector.rows import RowDataWriter, RowPartitionReader
from pyspark_kafka.connector.simple import SimpleSource
from pyspark_kafka.connector.table import (
    LogicalWriteInfo,
    PhysicalWriteInfo,
    Scan,
    ScanBuilder,
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
    StreamingDataWriterFactory,
    StreamingWrite,
    WriterCommitMessage,
)

__all__ = [
    "Batch",
    "BatchWrite",
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
    "StreamingDataWriterFactory",
    "StreamingWrite",
    "SupportsAdmissionControl",
    "SupportsPushDownRequiredColumns",
    "SupportsRead",
    "SupportsTriggerAvailableNow",
    "SupportsTruncate",
    "SupportsWrite",
    "Table",
    "TableCapability",
    "Write",
    "WriteBuilder",
    "WriterCommitMessage",
]
