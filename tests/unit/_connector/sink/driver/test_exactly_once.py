"""What the driver of an exactly-once write leaves on disk."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark_kafka._client.options import ConnectionOptions, ExactlyOnceOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.driver.exactly_once import KafkaExactlyOnceStreamingWrite
from pyspark_kafka._connector.sink.executor.outbox import Chunk, PreparedMessage
from pyspark_kafka._connector.sink.spool import SpoolFiles


def test_spool_files_of_an_aborted_micro_batch_are_removed_and_those_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": "query"}))
    spool = SpoolFiles(str(tmp_path / "spool"), "query")
    # The last one is of another driver, which is at work on the same micro-batch.
    *ours, other = (spool.write(3, task, [b"data"]) for task in ("0-1", "1-2", "1-9"))
    settings = ExactlyOnceOptions(checkpoint_location=str(tmp_path), spool_location=str(tmp_path / "spool"))
    options = WriteOptions(ConnectionOptions((("b", 9092),)), "t")
    write = KafkaExactlyOnceStreamingWrite(options, settings, SinkColumns(value=0))
    # A task that has failed has no message.
    write.abort(3, [*(PreparedMessage((Chunk((), file=name),)) for name in ours), None])
    assert [spool.read(name, 4) for name in ours] == [None, None]
    assert spool.read(other, 4) == b"data"
