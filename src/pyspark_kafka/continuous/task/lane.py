"""A lane: one input partition from its reader through the functions of the query to its writer, epoch by epoch."""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka.connector import SourceOffsetsWriter
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.messages import LaneCommitted, LaneEnded, Moved, Started
from pyspark_kafka.continuous.task.meter import LaneMeter
from pyspark_kafka.continuous.task.stages import TICK, ended_early

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from pyspark_kafka.connector import ContinuousPartitionReader, DataWriter, WriterCommitMessage
    from pyspark_kafka.continuous.channel.task_side import DriverConnection
    from pyspark_kafka.continuous.epochs.step_metrics import StepMetrics
    from pyspark_kafka.continuous.state.lane_state import LaneState
    from pyspark_kafka.continuous.state.version_files import PendingVersions
    from pyspark_kafka.continuous.task.deferred_reports import DeferredReports

    Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_LOG = logging.getLogger(__name__)

# The driver ends an epoch after its time. A lane whose epoch lasts for twice that time knows that others hold it up.
_HELD_UP = 2
# For shorter epochs: the driver's message takes some milliseconds.
_MIN_SECONDS = 0.1
# The maximum wait of written rows while slow functions work on arrived rows.
_MAX_GATHER_S = 0.005


class Lane:
    """Reads one input partition, mostly without an end, and writes what the functions make of it.

    The functions are called once for each epoch, with an iterator that ends with it. So what a function holds back at
    the end of its input belongs to the epoch, and nothing of an epoch is left when it is committed.

    Rows of a writer that keeps positions are visible when the lane commits them. Such a lane waits for no other one: if
    the driver does not end an epoch in time, as another lane is slow or the checkpoint is, the lane commits what it
    has by its own clock, and calls the functions again within the epoch. How often, the driver may change when it ends
    an epoch. The state of functions is written before such a commit, and belongs to it; with other writers the lane
    reads on while it is written.

    Runs on: executor, on a thread of its own; blocks.

    Args:
        number: of the lane; the `partition_id` of its writers.
        reader: of its input partition; the lane closes it.
        stage: the functions of the query, as one.
        new_writer: makes the writer of an epoch.
        driver: the connection to the driver.
        state: of the functions; None if they have none. The caller closes it.
        has_timer_due: whether a timer of the functions is due.
        has_timer_left: whether the functions of timers took so long that some timers are left, which come before rows.
        poll: called with the time when the reader has no rows, before the functions are asked for due timers; None if
            the functions need it not.
        end_epoch: returns the metrics of the functions with state at the end of an epoch.
        epoch_s: the length of the first epoch, for writers that keep positions.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        number: int,
        reader: ContinuousPartitionReader,
        stage: Stage,
        new_writer: Callable[[int], DataWriter],
        driver: DriverConnection,
        state: LaneState | None = None,
        *,
        has_timer_due: Callable[[], bool] = lambda: False,
        has_timer_left: Callable[[], bool] = lambda: False,
        poll: Callable[[float], None] | None = None,
        end_epoch: Callable[[], Sequence[StepMetrics]] = tuple,
        epoch_s: float = float("inf"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._number = number
        self._reader = reader
        self._stage = stage
        self._new_writer = new_writer
        self._driver = driver
        self._meter = LaneMeter(reader)
        self._state, self._has_timer_due, self._has_timer_left = state, has_timer_due, has_timer_left
        self._poll, self._end_epoch = poll, end_epoch
        # Made for the first report that waits for its state.
        self._late: DeferredReports | None = None
        self._versions: PendingVersions | None = None
        self._rows_read = self._rows_written = 0
        # Whether the functions have read their input to the epoch's end, and the reader was polled in it and had no
        # rows; which thread the writers belong to.
        self._input_ended = self._polled = False
        self._thread = self._reading_thread = 0
        # When rows that wait for others at hand are sent.
        self._flush_by = float("inf")
        # A writer that keeps positions is the lane's for the whole run; others are made for each epoch.
        self._lasting_writer: SourceOffsetsWriter | None = None
        # Whether the driver knows that nothing more will come.
        self._ended = False
        self._first_epoch_s, self._clock = epoch_s, clock
        # The greatest ones among an epoch's commits.
        self._commit_s, self._state_s, self._cost = 0.0, 0.0, 0
        # Of a writer that keeps positions: when the rows are to be committed though the epoch runs on, and whether they
        # are.
        self._due = float("inf")
        self._is_due = False

    def run(self, first_epoch: int) -> None:
        """Run epochs until the driver has named the last one, says stop, or is gone.

        Raises:
            Exception: whatever reader, functions or writer raised; the epoch is aborted.
        """
        self._thread = threading.get_ident()
        try:
            self._driver.send_message(Started(self._number))
            # An epoch cannot end before the slowest lane has started.
            self._driver.wait_for_go()
            epoch = first_epoch
            while not self._driver.stopped and self._driver.last_epoch != epoch - 1:
                self._run_epoch(epoch)
                epoch += 1
            if self._late is not None:
                self._late.wait()
        except BaseException:
            _logged(self._reader.close)
            raise
        finally:
            if self._late is not None:
                self._late.close()
        self._reader.close()
        if self._lasting_writer is not None:
            self._lasting_writer.close()

    @property
    def epoch_s(self) -> float:
        """Return the length of an epoch, as the driver has told it last."""
        told = self._driver.epoch_s
        return max(self._first_epoch_s if told is None else told, _MIN_SECONDS)

    def rows(self) -> str:
        """Return the origin of the last batch's rows, for errors."""
        return self._reader.describeRows()

    def position(self) -> str:
        """Return the JSON of the position, for errors."""
        return self._reader.getOffset().json()

    def _run_epoch(self, epoch: int) -> None:
        self._rows_read = self._rows_written = 0
        self._polled = False
        self._commit_s, self._state_s, self._cost = 0.0, 0.0, 0
        if self._state is not None:
            self._state.begin_epoch(epoch)
        patience = self.epoch_s * _HELD_UP
        while (message := self._commit_rows(epoch, patience)) is not None and self._is_due:
            self._driver.send_message(LaneCommitted(self._number, epoch))
            # The epoch is late already: nothing is gained by a longer wait.
            patience = self.epoch_s
        if message is None:
            return
        offset = self._reader.getOffset().json()
        report = LaneReport(
            self._number,
            epoch,
            offset,
            message.json(),
            self._rows_read,
            self._rows_written,
            self._meter.end_epoch(self._end_epoch()),
            polled=int(self._polled),
            commit_ms=math.ceil(self._commit_s * 1000),
            cost=self._cost,
            state_ms=math.ceil(self._state_s * 1000),
        )
        if self._versions is None:
            self._driver.send_message(report)
        elif self._lasting_writer is not None:
            # The state was written before the rows were committed.
            self._driver.send_message(replace(report, state=self._versions.text))
        else:
            self._send_late(report, self._versions)

    def _send_late(self, report: LaneReport, versions: PendingVersions) -> None:
        if self._late is None:
            # Other queries need no thread for it.
            from pyspark_kafka.continuous.task.deferred_reports import DeferredReports  # noqa: PLC0415 - see above

            self._late = DeferredReports(self._driver)
        self._late.send_report(report, versions)

    def _commit_rows(self, epoch: int, patience: float) -> WriterCommitMessage | None:
        """Write and commit rows until the epoch ends, or their time is over; return None if the run ends before."""
        self._input_ended = self._is_due = False
        self._due = float("inf")
        writer = self._lasting_writer or self._new_writer(epoch)
        if isinstance(writer, SourceOffsetsWriter):
            self._lasting_writer = writer
        else:
            patience = float("inf")
        try:
            message = self._write_epoch(epoch, writer, patience)
        except BaseException:
            # Their errors must not hide the error that the user has to know.
            _logged(writer.abort)
            _logged(writer.close)
            raise
        if message is None:
            _logged(writer.abort)
            _logged(writer.close)
        elif writer is not self._lasting_writer:
            writer.close()
        return message

    def _write_epoch(self, epoch: int, writer: DataWriter, patience: float) -> WriterCommitMessage | None:
        """Write the rows of an epoch, and return the writer's message; None if the run ends before the epoch does."""
        for batch in self._stage(self._batches_of(epoch, writer, patience)):
            if self._is_given_up(epoch):
                # What a function makes of half an epoch is read again: a sink that shows rows at once would have both.
                # The end of the epoch may arrive just now; it comes too late for the rows that are left out here.
                return None
            self._rows_written += batch.num_rows
            writer.write(batch)
            # Rows that have arrived join these in one request; rows that come later must not hold them up.
            if not self._may_wait():
                writer.flushNow()
        if self._is_given_up(epoch):
            return None
        if not self._input_ended:
            raise ended_early("A function of the query")
        if self._state is not None:
            self._versions = self._state.end_epoch()
        began = self._clock()
        if isinstance(writer, SourceOffsetsWriter):
            message = self._commit_with_position(epoch, writer)
            self._cost = max(self._cost, writer.commitCost())
        else:
            message = writer.commit()
        self._commit_s = max(self._commit_s, self._clock() - began)
        return message

    def _commit_with_position(self, epoch: int, writer: SourceOffsetsWriter) -> WriterCommitMessage:
        position = self._reader.getOffset()
        if self._state is None or self._versions is None:
            return writer.commitEpoch(epoch, position)
        # The sink takes the rows in the meantime.
        writer.flushNow()
        # First the state, then the name of its version with the position: no position names a missing state.
        began = self._clock()
        self._versions.write()
        self._state_s = max(self._state_s, self._clock() - began)
        writer.setStates(self._state.committed)
        return writer.commitEpoch(epoch, position)

    def _may_wait(self) -> bool:
        """Return whether written rows may wait for those at hand: these come at once, and they have not waited long."""
        # A reader on a function's thread is not polled, and its rows may wait in the function.
        if self._reading_thread != self._thread or not self._reader.hasMore():
            self._flush_by = float("inf")
            return False
        now = self._clock()
        if self._flush_by == float("inf"):
            self._flush_by = now + _MAX_GATHER_S
        if now < self._flush_by:
            return True
        self._flush_by = float("inf")
        return False

    def _is_given_up(self, epoch: int) -> bool:
        return self._driver.stopped and self._driver.ended_epoch < epoch

    def _batches_of(self, epoch: int, writer: DataWriter, patience: float) -> Iterator[pa.RecordBatch]:
        driver, reader, meter = self._driver, self._reader, self._meter
        moved, begin = False, reader.getOffset()
        while driver.ended_epoch < epoch and not driver.stopped:
            if self._clock() >= self._due:
                self._is_due = True
                break
            if self._has_timer_left():
                if not moved:
                    moved = True
                    self._say_moved(epoch, patience)
                yield TICK
                continue
            has_ended = reader.hasEnded()
            if not has_ended and reader.next():
                batch = reader.get()
                self._reading_thread = threading.get_ident()
                self._rows_read += batch.num_rows
                if self._state is not None:
                    self._state.point_at(reader.keyGroup())
                if not moved:
                    moved = True
                    self._say_moved(epoch, patience)
                meter.read(batch.num_rows)
                yield batch
                meter.handed_over()
                if self._has_timer_due():
                    yield TICK
                continue
            self._polled = True
            if self._poll is not None and not has_ended:
                self._poll(self._clock())
            if self._has_timer_due():
                if not moved:
                    # The state moves, and what functions make of it is to be committed.
                    moved = True
                    self._say_moved(epoch, patience)
                yield TICK
            if threading.get_ident() == self._thread:
                # A function may read ahead on a thread of its own, and a writer has one thread.
                writer.flushNow()
            if not moved and reader.getOffset() != begin:
                # Without rows a position can move too: past a transaction marker, past deleted records.
                moved = True
                self._say_moved(epoch, patience)
            if has_ended and not self._has_timer_left():
                self._wait_at_end(epoch)
        self._input_ended = True

    def _say_moved(self, epoch: int, patience: float) -> None:
        self._due = self._clock() + patience
        self._driver.send_message(Moved(self._number, epoch))

    def _wait_at_end(self, epoch: int) -> None:
        if not self._ended:
            self._ended = True
            self._driver.send_message(LaneEnded(self._number))
        left = self._due - self._clock()
        self._driver.wait_for_end_of(epoch, None if left == float("inf") else max(0.0, left))


def _logged(call: Callable[[], None]) -> None:
    try:
        call()
    except Exception:  # noqa: BLE001 - logged
        _LOG.exception("Cleanup after the failure also failed.")
