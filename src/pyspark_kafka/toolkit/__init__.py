"""Ready-made parts for sources and sinks of your own; each is usable alone.

| Part | What a connector gets |
| --- | --- |
| `IdempotentStreamingWrite`, `EpochLog`, `FileEpochLog` | epochs that are committed once |
| `CheckpointedMicroBatchStream`, `OffsetStore` | durable offsets, and never a restart from the beginning |
| `retry`, `RetryPolicy` | attempts with delays, a deadline, and the story of the attempts in the error |
| `BatchingDataWriter` | rows that are flushed by number, bytes or time |
| `process_partitions` | many partitions at a time, bounded, with the first error kept |
| `KeyedState` | state of aggregations by key, per epoch, larger than memory |
| `WatermarkTracker` | event time, and late rows apart |

Experimental: may change or be removed in any release before 1.0. The modules (`idempotent_write`, `epoch_log`,
`offset_store`, `retry`, `batching`, `parallel`, `keyed_state`, `watermark`) may move.
Invariant: nothing here knows Kafka or PySpark.
"""

from pyspark_kafka.toolkit.batching import BatchingDataWriter
from pyspark_kafka.toolkit.epoch_log import CommitState, EpochLog, EpochRecord, FileEpochLog
from pyspark_kafka.toolkit.idempotent_write import IdempotentStreamingWrite
from pyspark_kafka.toolkit.keyed_state import KeyedState
from pyspark_kafka.toolkit.offset_store import CheckpointedMicroBatchStream, OffsetStore
from pyspark_kafka.toolkit.parallel import Cancelled, CancelSignal, process_partitions
from pyspark_kafka.toolkit.retry import RetryPolicy, is_transient, retry
from pyspark_kafka.toolkit.watermark import SplitRows, WatermarkTracker

__all__ = [
    "BatchingDataWriter",
    "CancelSignal",
    "Cancelled",
    "CheckpointedMicroBatchStream",
    "CommitState",
    "EpochLog",
    "EpochRecord",
    "FileEpochLog",
    "IdempotentStreamingWrite",
    "KeyedState",
    "OffsetStore",
    "RetryPolicy",
    "SplitRows",
    "WatermarkTracker",
    "is_transient",
    "process_partitions",
    "retry",
]
__dir__ = __all__.copy
