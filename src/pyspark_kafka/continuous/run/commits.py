"""The path of epochs to checkpoint and sink: the order of writes, commits, repeated commits and aborts."""

from __future__ import annotations

import logging
import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._base.interrupt import interrupted_by
from pyspark_kafka._base.traces.steps import current_span
from pyspark_kafka.connector import SupportsSourceOffsets, WriterCommitMessage
from pyspark_kafka.connector.engine.checks import check_instance, check_not_backwards, named
from pyspark_kafka.continuous.epochs.recovery import recover
from pyspark_kafka.continuous.run.states import QueryStates
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark_kafka.checkpoint import CheckpointFiles
    from pyspark_kafka.connector import Offset
    from pyspark_kafka.continuous.epochs.coordinator import CommitEpoch, LaneReport
    from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
    from pyspark_kafka.continuous.reports.progress import ProgressLog
    from pyspark_kafka.continuous.run.plan import QueryPlan
    from pyspark_kafka.continuous.traces.query_spans import QuerySpans

_LOG = logging.getLogger(__name__)

# For a last look at the brokers; what they do not abort then ends with `kafka.transaction.timeout.ms`.
_LAST_SECONDS = 5.0


class EpochCommits:
    """Commits the epochs of a query. It alone talks to the checkpoint and to the sink's commit.

    Runs on: driver, on the thread of the query; `commit_epoch` on the thread of `EpochCommitter` while a run lasts.
    Every method blocks.

    Attributes:
        start: the JSON of the offset after the last committed epoch: where the next run begins. Set by `resume`.
        states: of the functions.

    Args:
        plan: what the query does.
        query_id: of the query.
        files: its checkpoint, as the logs of Spark.
        epochs: its checkpoint, as this engine writes it.
        progress: takes an entry for each epoch.
    """

    def __init__(
        self, plan: QueryPlan, query_id: str, files: CheckpointFiles, epochs: EpochFiles, progress: ProgressLog
    ) -> None:
        self.start = ""
        # The same as an offset, once an epoch of this start was committed.
        self._end: Offset | None = None
        self._plan, self._query_id = plan, query_id
        self._files, self._epochs, self._progress = files, epochs, progress
        self.states = QueryStates(plan.stages.with_state, files, epochs)
        # The epoch that is in the checkpoint and perhaps in the sink: the next run commits it again, as it is.
        self._prepared: int | None = None
        # Whether lanes of this start may have transactions of their own.
        self._has_transactions = False

    def take_over(self, run_id: str) -> None:
        """Make this start of the query the owner of its checkpoint; called once, before anything else.

        Raises:
            CheckpointError: it cannot be written.
        """
        self._epochs.take_over(run_id)

    def check_owner(self) -> None:
        """Raise if another start of the query has taken its checkpoint over; a look that fails says nothing.

        Raises:
            CheckpointError: one has.
        """
        try:
            self._epochs.check_owner()
        except CheckpointError as error:
            if error.condition == "CHECKPOINT_CHANGED":
                raise

    def resume(self) -> int:
        """Return the next epoch, and set `start`; commit first what a driver that died left.

        Raises:
            CheckpointError: the logs contradict one another, or cannot be read or written.
            StateError: the checkpoint has no state for the functions.
        """
        # Before the sink is taken over: a restart of this one must not take it from the next one.
        self._epochs.check_owner()
        write = self._plan.write
        if isinstance(write, SupportsSourceOffsets):
            # First of all: a driver that another has replaced must not touch the checkpoint.
            write.takeOver()
            # Another start may have begun in the meantime: it takes over again from a restart that goes no further.
            self._epochs.check_owner()
            self._has_transactions = True
        found = recover(self._files, self._epochs)
        if found.unfinished is not None:
            unfinished = found.unfinished
            _LOG.info("Continuous query %s commits epoch %d again", self._query_id, unfinished.epoch)
            self._commit_sink(unfinished.epoch, unfinished.messages)
            self._epochs.write_commit(unfinished.epoch, self._epochs.prepared_state(unfinished.epoch))
        self.states.open(found.next_epoch)
        stream = self._plan.stream
        if found.start is not None:
            self.start = found.start
        else:
            self.start = stream.initialOffset().json()
        self._end = None
        if isinstance(write, SupportsSourceOffsets):
            # What is visible already may be ahead of the checkpoint.
            self.start = write.committedOffset(stream.deserializeOffset(self.start))
            if self._plan.stages.with_state:
                self.states.take_committed(write.committedStates(found.next_epoch - 1))
        return found.next_epoch

    def end_transactions(self) -> None:
        """Abort what the lanes of a query that has failed for good have left open; errors are logged.

        Until then readers of committed records see nothing after it, of no producer. A query that another start has
        replaced leaves the transactions to that one.
        """
        write = self._plan.write
        if not isinstance(write, SupportsSourceOffsets) or not self._has_transactions:
            return
        over = threading.Event()
        timer = threading.Timer(_LAST_SECONDS, over.set)
        timer.daemon = True
        timer.start()
        try:
            with interrupted_by(over):
                self._epochs.check_owner()
                write.takeOver()
        except Exception as error:  # noqa: BLE001 - logged: the failure of the query matters more
            if isinstance(error, CheckpointError) and error.condition == "CHECKPOINT_CHANGED":
                # The start that has replaced this one has fenced its lanes.
                return
            _LOG.warning(
                "The open transactions of continuous query %s could not be aborted; brokers abort them after "
                "kafka.transaction.timeout.ms: %s",
                self._query_id,
                str(error).partition("\n")[0],
            )
        finally:
            timer.cancel()

    def commit_epoch(self, action: CommitEpoch) -> Offset:
        """Commit an epoch, and return the offset after it.

        Raises:
            CheckpointError: another query writes this checkpoint, or it cannot be written.
        """
        stream, steps = self._plan.stream, _Steps()
        parts = [stream.deserializePartitionOffset(report.offset) for report in action.reports]
        end = stream.mergeOffsets(parts)
        outcome = "The epoch was not committed, and its rows will be read again."
        before = self._end or stream.deserializeOffset(self.start)
        check_not_backwards(end, before, stream, "mergeOffsets", outcome)
        metrics = self._progress.read_metrics(action.reports)
        state = self.states.after(action.reports, self._progress.waiting(metrics))
        self._prepared = action.epoch
        self._epochs.prepare(
            action.epoch, end.json(), [each.message for each in action.reports], int(time.time() * 1000), state
        )
        steps.ended("walCommit")
        self._commit_sink(action.epoch, [each.message for each in action.reports])
        steps.ended("commitSink")
        self._epochs.write_commit(action.epoch, state)
        self.states.committed(action.epoch, state)
        stream.commit(end)
        steps.ended("commitOffsets")
        self._progress.add_progress(
            action.epoch, action.reports, metrics, (self.start, end), steps.durations_ms,
            (time.time(), time.monotonic()),
        )  # fmt: skip
        self.start, self._end = end.json(), end
        return end

    def _commit_sink(self, epoch: int, texts: Sequence[str]) -> None:
        write = self._plan.write
        messages = [
            check_instance(write.deserializeMessage(text), WriterCommitMessage, write, "deserializeMessage")
            for text in texts
        ]
        with named(write, "commit", f"Epoch {epoch} is not committed; a restart runs it again."):
            write.commit(epoch, messages)

    def abort(self, open_reports: Mapping[int, Sequence[LaneReport]]) -> None:
        """Abort the reported uncommitted epochs; errors are logged.

        Args:
            open_reports: the reports by epoch.
        """
        write = self._plan.write
        for epoch, reports in open_reports.items():
            if epoch == self._prepared:
                # What an abort removes would be missing when it is committed again.
                continue
            try:
                write.abort(epoch, [write.deserializeMessage(report.message) for report in reports])
            except Exception:  # noqa: BLE001 - logged
                # The reason of the failure matters more than the reason of the abort.
                _LOG.exception("The abort of epoch %d failed; its rows are read again.", epoch)


@dataclass(frozen=True, slots=True)
class CommitEnded:
    """An epoch is committed, or could not be.

    Attributes:
        action: of the epoch.
        end: the offset after it; None if it is not known to be committed.
        error: why.
        took_s: how long it took.
    """

    action: CommitEpoch
    end: Offset | None
    error: BaseException | None = None
    took_s: float = 0.0


class EpochCommitter:
    """Commits the epochs of one run on a thread of its own: however long that takes, epochs end in the meantime.

    With `SupportsSourceOffsets` rows are visible when their epoch ends, and nobody is to wait for the checkpoint.

    Runs on: driver; used by the thread of the query.

    Args:
        commits: of the query.
        on_end: called after each commit, on the thread of the committer.
        give_up: when it is set, outages are not waited out any longer.
        spans: of the query; None: it has none.
    """

    def __init__(
        self,
        commits: EpochCommits,
        on_end: Callable[[CommitEnded], None],
        give_up: threading.Event,
        spans: QuerySpans | None = None,
    ) -> None:
        self._spans = spans
        self._commits, self._on_end, self._give_up = commits, on_end, give_up
        self._asked: queue.SimpleQueue[CommitEpoch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="continuous-commits", daemon=True)

    def start_commit(self, action: CommitEpoch) -> None:
        """Commit an epoch after the earlier requested epochs; returns immediately."""
        if self._thread.ident is None:
            self._thread.start()
        self._asked.put(action)

    def close(self) -> None:
        """Return when every requested epoch is committed, or could not be."""
        self._asked.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        with interrupted_by(self._give_up):
            self._commit_what_is_asked()

    def _commit_what_is_asked(self) -> None:
        while (action := self._asked.get()) is not None:
            began = time.monotonic()
            try:
                if self._spans is None:
                    end = self._commits.commit_epoch(action)
                else:
                    with self._spans.committing(action.epoch):
                        end = self._commits.commit_epoch(action)
                ended = CommitEnded(action, end, took_s=time.monotonic() - began)
            except BaseException as error:  # noqa: BLE001 - the thread of the query raises it
                ended = CommitEnded(action, None, error)
            self._on_end(ended)


class _Steps:
    """The durations of steps that follow one another."""

    def __init__(self) -> None:
        self.durations_ms: dict[str, int] = {}
        self._begun = self._since = time.monotonic()

    def ended(self, name: str) -> None:
        now = time.monotonic()
        self.durations_ms[name] = round((now - self._since) * 1000)
        self.durations_ms["triggerExecution"] = round((now - self._begun) * 1000)
        if (span := current_span()) is not None:
            ended = time.time_ns()
            span.add_child(name, ended - int((now - self._since) * 1e9), ended, {})
        self._since = now
