"""Tasks of an exactly-once write prepare record batches, which the driver sends (`exactlyOnceCommit=driver`)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._connector.sink.executor.partition_lookup import PartitionLookup
from pyspark_kafka._connector.sink.executor.record_batch_encoder import RecordBatchEncoder
from pyspark_kafka.connector import DataWriter, WriterCommitMessage
from pyspark_kafka.errors import CheckpointError, ConnectorError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.options import ExactlyOnceOptions, WriteOptions
    from pyspark_kafka._connector.sink.columns import SinkColumns
    from pyspark_kafka._connector.sink.executor.identity_headers import TaskOrigin
    from pyspark_kafka._connector.sink.executor.record_batch_encoder import EncodedBatch
    from pyspark_kafka._connector.sink.spool import SpoolFiles

# A spool file is read by the driver whole, so this much memory at a time; a single record batch may be larger.
_SPOOL_FILE_BYTES = 16 << 20
# What a task may return without a spool. Spark bounds the sum over all tasks (spark.driver.maxResultSize).
_MAX_WITHOUT_SPOOL = 64 << 20


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """One record batch in a chunk.

    Attributes:
        size: its bytes.
        records: its records.
    """

    topic_partition: TopicPartition
    size: int
    records: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Record batches of one task, in the order in which they were made, end to end.

    Attributes:
        batches: its record batches.
        data: their bytes, if they travel in the commit message.
        file: otherwise, the name of the spool file that has them.
    """

    batches: tuple[PreparedBatch, ...]
    data: bytes = b""
    file: str = ""

    @property
    def size(self) -> int:
        """The bytes of the batches."""
        return sum(batch.size for batch in self.batches)

    def load(self, spool: SpoolFiles | None) -> bytes:
        """Return the bytes.

        Raises:
            CheckpointError: the spool file is not there, or not whole.
        """
        if not self.file:
            return self.data
        size = self.size
        data = None if spool is None else spool.read(self.file, size)
        if data is None or len(data) != size:
            found = "is not there" if data is None else f"has {_bytes_found(data, size)} bytes instead of {size}"
            shown = "an unknown place" if spool is None else spool.shown
            raise CheckpointError(
                f"The driver cannot read what a task prepared: spool file {self.file} in {shown} {found}. Nothing was "
                "written.",
                condition="SPOOL_FILE_MISSING" if data is None else "SPOOL_FILE_DAMAGED",
                hint="Option 'spoolLocation' must name a place that driver and executors share, and that nothing else "
                "cleans up.",
                parameters={"file": self.file, "location": shown},
            )
        return data


def _bytes_found(data: bytes, size: int) -> str:
    return f"more than {size}" if len(data) > size else str(len(data))


@dataclass(frozen=True, slots=True)
class PreparedMessage(WriterCommitMessage):
    """The commit message of one task in an exactly-once write.

    Attributes:
        chunks: its record batches, in order.
    """

    chunks: tuple[Chunk, ...]

    @property
    def records(self) -> int:
        """The number of records in the chunks."""
        return sum(batch.records for chunk in self.chunks for batch in chunk.batches)

    @property
    def encoded_bytes(self) -> int:
        """The bytes of the chunks."""
        return sum(chunk.size for chunk in self.chunks)

    def spool_files(self) -> Iterator[str]:
        """Return the names of the spool files that hold them."""
        return (chunk.file for chunk in self.chunks if chunk.file)


class KafkaOutboxWriter(DataWriter):
    """Encodes the rows of one task, and sends nothing.

    Its record batches travel to the driver in its commit message, up to `spoolThresholdBytes`; above that, they are
    written into spool files beside the checkpoint. So an attempt that is killed, loses against another, or still
    runs after the query has died, leaves nothing that any reader could see; the driver of a later batch removes its
    files.

    Runs on: executor; blocks on the look-up of partition counts and on the file system. Memory: rows being gathered,
    the threshold, and one spool file of 16 MiB.

    Args:
        options: topic, compression, sizes.
        settings: thresholds and places of the exactly-once write.
        columns: the positions of the sink's columns.
        spool: the place of spool files; None: there is none.
        batch_id: the micro-batch; 0 in a batch write.
        task: Spark partition and task attempt, as `<partition>-<attempt>`; for names of files.
        origin: the task, for identity headers; None without them.

    Raises:
        RecordError: a row cannot be sent: null topic, null header key, too large, a partition that does not exist.
        OptionError: there is more than the driver is to be handed, and no place to put it.
        CheckpointError: the spool cannot be written.
    """

    def __init__(
        self,
        options: WriteOptions,
        settings: ExactlyOnceOptions,
        columns: SinkColumns,
        spool: SpoolFiles | None,
        batch_id: int,
        task: str,
        origin: TaskOrigin | None = None,
    ) -> None:
        self._settings = settings
        self._topics = PartitionLookup(options)
        self._encoder = RecordBatchEncoder(options, columns, self._topics, origin)
        self._spool = spool
        self._batch_id = batch_id
        self._task = task
        self._chunks: list[Chunk] = []
        self._held: list[EncodedBatch] = []
        self._held_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows; they are encoded when enough are gathered."""
        self._keep(self._encoder.gather_rows(batch))

    def commit(self) -> PreparedMessage:
        """Encode what is left, and return everything for the driver."""
        self._keep(self._encoder.finish())
        # A task that has spooled returns nothing else: the driver's bound counts what all tasks return.
        if self._held_bytes > self._max_returned() or self._chunks:
            self._spill()
        if self._held:
            self._chunks.append(Chunk(_described(self._held), data=_joined(self._held)))
            self._held, self._held_bytes = [], 0
        return PreparedMessage(tuple(self._chunks))

    def abort(self) -> None:
        """Drop everything; spool files are removed if that is possible."""
        self._encoder.drop()
        self._held, self._held_bytes = [], 0
        if self._spool is not None:
            # A leftover is removed by the driver of a later batch.
            with suppress(ConnectorError):
                self._spool.remove(chunk.file for chunk in self._chunks if chunk.file)
        self._chunks = []

    def close(self) -> None:
        """Return the connection. Safe to call again."""
        self._topics.close()

    def _keep(self, batches: Iterable[EncodedBatch]) -> None:
        for batch in batches:
            self._held.append(batch)
            self._held_bytes += len(batch.data)
            if self._held_bytes > max(self._max_returned(), _SPOOL_FILE_BYTES):
                self._spill()

    def _max_returned(self) -> int:
        threshold = self._settings.spool_threshold_bytes
        return max(threshold, _MAX_WITHOUT_SPOOL) if self._spool is None else threshold

    def _spill(self) -> None:
        """Write the held record batches into spool files, and forget them."""
        spool = self._spool
        if spool is None:
            raise OptionError(
                f"A task of an exactly-once write has encoded {self._held_bytes} bytes, more than the "
                f"{self._max_returned()} that it may return to the driver, and there is no place to put them. "
                "Nothing was written.",
                condition="SPOOL_LOCATION_MISSING",
                hint="Set option 'spoolLocation' to a place that driver and executors share; or write with more, "
                "smaller tasks; or raise 'spoolThresholdBytes' (the results of all tasks must stay below "
                "spark.driver.maxResultSize).",
                parameters={"bytes": self._held_bytes, "limit": self._max_returned()},
            )
        while self._held:
            count, size = 0, 0
            while count < len(self._held) and (not count or size + len(self._held[count].data) <= _SPOOL_FILE_BYTES):
                size += len(self._held[count].data)
                count += 1
            batches, self._held = self._held[:count], self._held[count:]
            name = spool.write(self._batch_id, self._task, [batch.data for batch in batches])
            self._chunks.append(Chunk(_described(batches), file=name))
        self._held_bytes = 0


def _described(batches: Iterable[EncodedBatch]) -> tuple[PreparedBatch, ...]:
    return tuple(PreparedBatch(batch.topic_partition, len(batch.data), batch.record_count) for batch in batches)


def _joined(batches: Iterable[EncodedBatch]) -> bytes:
    return b"".join(batch.data for batch in batches)
