"""Public: the files that a streaming query keeps in its checkpoint, read and written as Spark does.

Entry points:

- `CheckpointFiles`: the files of one checkpoint; everything else here reads through it.
- `OffsetSeqLog`, `CommitLog`: which batches a query has begun, and which it has finished; `OffsetSeq`, `Commit` are
  their entries.
- `InitialOffsetLog`: where a query began.
- `KafkaSourceOffset`: a source offset as a value, with the JSON that Spark's connector reads and writes.

`pyspark_kafka.checkpoint` is the only import path. The names in `__all__`, with their arguments and attributes, change
only in a release that says so in its changelog; the modules of this package may change in any release. The formats of
the files are Spark's; a file of a format that this version does not know is an error.

The modules: `files` on a `file_location` (`default_file_system`: a path without a scheme; `conditional_stores`: object
stores and HDFS, where one of several writers creates a file), `offset_log`, `initial_offset_log`. Files of our own:
`topic_ids`, `reader_schemas`; of continuous queries: `continuous_files`, `state_files`, `state_names`.

Invariant: Spark's own connector can continue from every file that is written here. Needs no Spark and no broker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_kafka._base.offsets import KafkaSourceOffset
    from pyspark_kafka.checkpoint.files import CheckpointFiles
    from pyspark_kafka.checkpoint.initial_offset_log import InitialOffsetLog
    from pyspark_kafka.checkpoint.offset_log import Commit, CommitLog, OffsetSeq, OffsetSeqLog

__all__ = [
    "CheckpointFiles",
    "Commit",
    "CommitLog",
    "InitialOffsetLog",
    "KafkaSourceOffset",
    "OffsetSeq",
    "OffsetSeqLog",
]
__dir__ = __all__.copy

# Loaded at first use: tasks of a write need the module `file_location` only, and are waited for.
_PLACES = {
    "CheckpointFiles": "pyspark_kafka.checkpoint.files",
    "Commit": "pyspark_kafka.checkpoint.offset_log",
    "CommitLog": "pyspark_kafka.checkpoint.offset_log",
    "InitialOffsetLog": "pyspark_kafka.checkpoint.initial_offset_log",
    "KafkaSourceOffset": "pyspark_kafka._base.offsets",
    "OffsetSeq": "pyspark_kafka.checkpoint.offset_log",
    "OffsetSeqLog": "pyspark_kafka.checkpoint.offset_log",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
