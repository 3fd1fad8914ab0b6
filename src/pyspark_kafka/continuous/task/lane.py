"""A lane: one input partition from its reader through the functions of the query to its writer, epoch by epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.messages import Moved, Started
from pyspark_kafka.errors import ContinuousQueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from pyspark_kafka.connector import ContinuousPartitionReader, DataWriter
    from pyspark_kafka.continuous.channel.task_side import DriverConnection

    Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Lane:
    """Reads one input partition without an end, and writes what the functions make of it.

    The functions are called once for each epoch, with an iterator that ends with it. So what a function holds back at
    the end of its input belongs to the epoch, and nothing of an epoch is left when it is committed.

    Runs on: executor, on a thread of its own; blocks.

    Args:
        number: of the lane; the `partition_id` of its writers.
        reader: of its input partition; the lane closes it.
        stage: the functions of the query, as one.
        new_writer: makes the writer of an epoch.
        driver: the connection to the driver.
    """

    def __init__(
        self,
        number: int,
        reader: ContinuousPartitionReader,
        stage: Stage,
        new_writer: Callable[[int], DataWriter],
        driver: DriverConnection,
    ) -> None:
        self._number = number
        self._reader = reader
        self._stage = stage
        self._new_writer = new_writer
        self._driver = driver
        self._rows_read = self._rows_written = 0

    def run(self, first_epoch: int) -> None:
        """Run epochs until the driver has named the last one, says stop, or is gone.

        Raises:
            Exception: whatever reader, functions or writer raised; the epoch is aborted.
        """
        try:
            self._driver.send(Started(self._number))
            epoch = first_epoch
            while not self._driver.stopped and self._driver.last_epoch != epoch - 1:
                self._run_epoch(epoch)
                epoch += 1
        finally:
            self._reader.close()

    def position(self) -> str:
        """Return the JSON of the position, for errors."""
        return self._reader.getOffset().json()

    def _run_epoch(self, epoch: int) -> None:
        self._rows_read = self._rows_written = 0
        writer = self._new_writer(epoch)
        try:
            try:
                for batch in self._stage(self._batches_of(epoch, writer)):
                    self._rows_written += batch.num_rows
                    writer.write(batch)
                    # A source returns what it has: rows that come later must not hold up these.
                    writer.flushNow()
                if self._driver.ended_epoch < epoch:
                    if self._driver.stopped:
                        writer.abort()
                        return
                    raise _ended_early(epoch)  # noqa: TRY301 - the epoch is aborted as for any other error
                message = writer.commit()
            except BaseException:
                writer.abort()
                raise
        finally:
            writer.close()
        offset = self._reader.getOffset().json()
        self._driver.send(LaneReport(self._number, epoch, offset, message.json(), self._rows_read, self._rows_written))

    def _batches_of(self, epoch: int, writer: DataWriter) -> Iterator[pa.RecordBatch]:
        driver, reader = self._driver, self._reader
        moved, begin = False, None
        while driver.ended_epoch < epoch and not driver.stopped:
            if reader.next():
                batch = reader.get()
                self._rows_read += batch.num_rows
                if not moved:
                    moved = True
                    driver.send(Moved(self._number, epoch))
                yield batch
                continue
            writer.flushNow()
            if not moved:
                # Without rows a position can move too: past the marker of a transaction, past records that are gone.
                now = reader.getOffset()
                moved = begin is not None and now != begin
                begin = now
                if moved:
                    driver.send(Moved(self._number, epoch))


def _ended_early(epoch: int) -> ContinuousQueryError:
    return ContinuousQueryError(
        f"A function of the query returned in epoch {epoch} before its input ended: the rows that it left would be "
        "lost. Nothing of this epoch was committed.",
        condition="FUNCTION_ENDED_EARLY",
        hint="Let the function of map_in_arrow loop over its whole iterator: for batch in batches: yield ….",
        facts={"epoch": epoch},
    )
