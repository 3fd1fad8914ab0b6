"""The engine-neutral contracts between an engine and a connector, with Spark's names.

A source or a sink is written against these classes; `pyspark_kafka.spark` adapts them to PySpark. Nothing here knows
Kafka, and nothing here imports PySpark. Data crosses as Arrow record batches.
"""

from pyspark_kafka.connector.limits import (
    CompositeReadLimit,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)
from pyspark_kafka.connector.metrics import ReportsSourceMetrics
from pyspark_kafka.connector.offsets import Offset
from pyspark_kafka.connector.read import (
    Batch,
    InputPartition,
    MicroBatchStream,
    PartitionReader,
    PartitionReaderFactory,
    SupportsAdmissionControl,
    SupportsTriggerAvailableNow,
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
    "DataWriter",
    "DataWriterFactory",
    "InputPartition",
    "MicroBatchStream",
    "Offset",
    "PartitionReader",
    "PartitionReaderFactory",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxRows",
    "ReadMinRows",
    "ReportsSourceMetrics",
    "StreamingDataWriterFactory",
    "StreamingWrite",
    "SupportsAdmissionControl",
    "SupportsTriggerAvailableNow",
    "WriterCommitMessage",
]
