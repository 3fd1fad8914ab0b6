"""What tasks of an exactly-once write hand to the driver: everything, in order, in messages or in files."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.options import ConnectionOptions, ExactlyOnceOptions, ProducerOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor import partition_lookup
from pyspark_kafka._connector.sink.executor.outbox import Chunk, KafkaOutboxWriter, PreparedBatch, PreparedMessage
from pyspark_kafka._connector.sink.spool import SpoolFiles
from pyspark_kafka.errors import CheckpointError, OptionError, RecordError
from pyspark_kafka.records import decode

MIB = 1 << 20
COLUMNS = SinkColumns(value=0, partition=1)


class TwoPartitions:
    """Stands for the partition counts of the cluster: a writer that sends nothing asks for nothing else."""

    def partition_count(self, topic: str, *, beyond: int) -> int:  # noqa: ARG002 - it does not grow
        assert topic == "t"
        return 2

    def available_partitions(self, topic: str) -> tuple[int, ...]:
        assert topic == "t"
        return (0, 1)


@pytest.fixture(autouse=True)
def _no_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def borrow(_: Any, **__: Any) -> Iterator[TwoPartitions]:
        yield TwoPartitions()

    monkeypatch.setattr(partition_lookup, "borrow_partition_counts", borrow)


def writer_of(place: Path | None, threshold: int = 8 * MIB) -> KafkaOutboxWriter:
    options = WriteOptions(ConnectionOptions((("not-asked", 9092),)), topic="t", producer=ProducerOptions())
    settings = ExactlyOnceOptions(spool_threshold_bytes=threshold)
    return KafkaOutboxWriter(options, settings, COLUMNS, None if place is None else spool_of(place), 7, "0-1")


def spool_of(place: Path) -> SpoolFiles:
    return SpoolFiles(str(place), "query")


def files_in(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def rows(first: int, last: int, size: int = 0) -> pa.RecordBatch:
    values = [b"%06d" % number + b"." * size for number in range(first, last)]
    partitions = pa.array([number % 2 for number in range(first, last)], pa.int32())
    return pa.RecordBatch.from_arrays([pa.array(values, pa.binary()), partitions], ["value", "partition"])


def written(message: PreparedMessage, spool: SpoolFiles | None = None) -> dict[int, list[int]]:
    """Read the numbers of all rows back, by partition."""
    found: dict[int, list[int]] = {0: [], 1: []}
    for chunk in message.chunks:
        data, position = memoryview(chunk.load(spool)), 0
        for batch in chunk.batches:
            values = decode(data[position : position + batch.size], start_offset=0).batch.column("value").to_pylist()
            assert len(values) == batch.records
            found[batch.topic_partition.partition] += [int(value[:6]) for value in values]
            position += batch.size
        assert position == len(data)
    return found


EVERYTHING = {0: list(range(0, 1000, 2)), 1: list(range(1, 1000, 2))}


def test_a_small_task_returns_everything_in_its_message(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    writer.write(rows(0, 400))
    writer.write(rows(400, 1000))
    message = pickle.loads(pickle.dumps(writer.commit()))  # noqa: S301 - our own bytes
    writer.close()
    assert written(message) == EVERYTHING
    assert (message.records, list(message.spool_files())) == (1000, [])
    assert message.encoded_bytes == sum(len(chunk.data) for chunk in message.chunks)
    assert list(tmp_path.iterdir()) == []


def test_a_task_without_rows_returns_nothing() -> None:
    assert writer_of(None).commit() == PreparedMessage(())


def test_task_above_the_threshold_puts_everything_into_spool_files(tmp_path: Path) -> None:
    writer = writer_of(tmp_path, threshold=1000)
    writer.write(rows(0, 1000))
    message = writer.commit()
    spool = spool_of(tmp_path)
    assert sorted(message.spool_files()) == files_in(tmp_path)
    assert all(name.startswith("pyspark-kafka-query/7/0-1-") for name in message.spool_files())
    assert all(not chunk.data for chunk in message.chunks)
    assert written(message, spool) == EVERYTHING


def test_large_task_writes_spool_files_of_a_size_that_a_driver_can_hold(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    for first in range(0, 1000, 20):
        writer.write(rows(first, first + 20, size=50_000))
    message = writer.commit()
    # Also what is left at the end: hundreds of tasks would return too much for one driver.
    assert all(chunk.file and not chunk.data for chunk in message.chunks)
    sizes = [chunk.size for chunk in message.chunks]
    assert len(sizes) >= 2
    assert max(sizes) <= 16 * MIB
    assert message.encoded_bytes > 47 * MIB
    assert written(message, spool_of(tmp_path)) == EVERYTHING


def test_large_task_without_a_spool_is_refused() -> None:
    writer = writer_of(None)
    # 66 MB held, and one more batch that is too much.
    for _ in range(65):
        writer.write(rows(0, 20, size=50_000))
    with pytest.raises(OptionError, match=r"SPOOL_LOCATION_MISSING\] A task .* 67108864 .* Hint: Set option 'spoolLoc"):
        writer.write(rows(0, 100, size=50_000))


def test_abort_removes_the_spool_files(tmp_path: Path) -> None:
    writer = writer_of(tmp_path, threshold=1)
    for first in range(0, 1000, 20):
        writer.write(rows(first, first + 20, size=50_000))
    assert files_in(tmp_path)
    writer.abort()
    writer.close()
    assert files_in(tmp_path) == []


def test_a_row_that_cannot_be_sent_is_refused_as_by_the_other_writer() -> None:
    bad = pa.RecordBatch.from_arrays([pa.array([b"v"]), pa.array([9], pa.int32())], ["value", "partition"])
    writer = writer_of(None)
    writer.write(bad)
    with pytest.raises(RecordError, match="Writing to topic 't'"):
        writer.commit()


def test_spool_file_that_is_gone_or_cut_is_named(tmp_path: Path) -> None:
    spool = spool_of(tmp_path)
    chunk = Chunk((PreparedBatch(TopicPartition("t", 0), 10, 1),), file="7-x")
    with pytest.raises(CheckpointError, match=r"SPOOL_FILE_MISSING\].*spool file 7-x in .* is not there.*share"):
        chunk.load(spool)
    for found, said in ((b"short", "5"), (b"much longer", "more than 10")):
        (tmp_path / "7-x").write_bytes(found)
        with pytest.raises(CheckpointError, match=rf"SPOOL_FILE_DAMAGED\].*has {said} bytes instead of 10"):
            chunk.load(spool)


def test_a_record_batch_above_what_a_checkpoint_file_may_have_is_read_back(tmp_path: Path) -> None:
    spool, size = spool_of(tmp_path), (64 << 20) + 1
    name = spool.write(7, "0-1", [bytes(size)])
    chunk = Chunk((PreparedBatch(TopicPartition("t", 0), size, 1),), file=name)
    assert len(chunk.load(spool)) == size
