"""The ends of epochs and the order of their commits: the state of one run, without clock, thread or socket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

# Uncommitted epochs that lanes have left: while there are more, epochs grow longer instead.
MAX_OPEN = 4


@dataclass(frozen=True, slots=True)
class LaneReport:
    """The report of one lane for one epoch.

    Attributes:
        lane: the number of its input partition.
        epoch: the number of the epoch.
        offset: the JSON of its `PartitionOffset` at the end of the epoch.
        message: the JSON of the writer's commit message.
        rows_read: rows that the reader returned.
        rows_written: rows that went to the writer.
        metrics: the text of its `LaneMetrics`, also of other lanes of its task; empty for none.
        state: the JSON of the epoch's new state versions; empty if it has changed none.
        polled: 1 if its reader was polled within the epoch and had no rows; 0 if it may have left rows where they are.
        commit_ms: the duration of its longest commit.
        cost: the greatest cost of its commits to the sink; see `SourceOffsetsWriter.commitCost`.
        state_ms: the time for writing state, as a part of `commit_ms`.
        late_state_ms: the same after the commit, if the lane has read on in the meantime.
    """

    lane: int
    epoch: int
    offset: str
    message: str
    rows_read: int = 0
    rows_written: int = 0
    metrics: str = field(default="", compare=False)
    state: str = ""
    polled: int = field(default=1, compare=False)
    commit_ms: int = field(default=0, compare=False)
    cost: int = field(default=0, compare=False)
    state_ms: int = field(default=0, compare=False)
    late_state_ms: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class BeginReading:
    """Every lane has started: all of them are to read."""


@dataclass(frozen=True, slots=True)
class EndEpoch:
    """Every lane is to end this epoch and report it.

    Attributes:
        epoch: its number.
        last: whether lanes end with it; if not, they continue with the next one.
    """

    epoch: int
    last: bool = False


@dataclass(frozen=True, slots=True)
class CommitEpoch:
    """Every lane has ended this epoch, and every epoch before it is committed.

    Attributes:
        epoch: its number.
        reports: one of each lane, by lane.
    """

    epoch: int
    reports: tuple[LaneReport, ...]


@dataclass(frozen=True, slots=True)
class RunIsDone:
    """All read rows are committed, and the end was requested, or every lane has reached its end."""


EpochCommand = BeginReading | EndEpoch | CommitEpoch | RunIsDone


@dataclass(slots=True)
class _Epoch:
    reports: dict[int, LaneReport] = field(default_factory=dict)


class EpochOrderError(Exception):
    """A lane reported what it cannot have done; the run must end."""


class EpochCoordinator:
    """The epochs of one run of a continuous query.

    Lanes begin together, when the last one has started: no epoch can end before. Then they read without pause. An epoch
    ends by time, but only if a lane has moved since it began: a query without new rows writes nothing. A lane ends an
    epoch when the driver says so, reports it and continues. An epoch is committed when every lane has reported it, one
    epoch at a time, in order. If commits are slower than epochs, at most `MAX_OPEN` epochs are open; then the current
    epoch gets longer, and no lane waits. Lanes that keep positions together with their rows commit these within it,
    by their own clocks.

    Lanes whose input partitions have an end report it. When all lanes have, the current epoch is the last one.

    Every method takes an event and returns what to do about it, in order. Not safe for threads: one thread owns it.

    Args:
        lanes: the number of input partitions.
        first_epoch: the first epoch of this run: the one after the last committed one.
        interval_ms: the length of an epoch; 0 ends one as often as `ticked` is called.

    Source: Spark `EpochCoordinator`, `ContinuousExecution`.
    """

    def __init__(self, lanes: int, first_epoch: int, interval_ms: int) -> None:
        if lanes < 1:
            raise ValueError("a run has at least one lane")
        self._lanes = lanes
        self._interval_ms = interval_ms
        self._started: set[int] = set()
        self._ended: set[int] = set()
        self._moved = False
        # Lanes with uncommitted rows, by epoch; lanes with committed rows.
        self._moved_in: dict[int, set[int]] = {}
        self._advanced: set[int] = set()
        self._stopping = False
        self._done = False
        # Lanes are in epoch `_current`; those from `_uncommitted` on are not committed.
        self._current = first_epoch
        self._uncommitted = first_epoch
        self._committing = False
        self._current_since_ms: int | None = None
        self._epochs: dict[int, _Epoch] = {}

    @property
    def current_epoch(self) -> int:
        """Return the epoch in which rows are read now."""
        return self._current

    @property
    def is_running(self) -> bool:
        """Return whether every lane has started, so that all of them read."""
        return len(self._started) == self._lanes

    @property
    def starting(self) -> tuple[int, ...]:
        """Return the lanes without a start."""
        return tuple(lane for lane in range(self._lanes) if lane not in self._started)

    @property
    def awaited(self) -> tuple[int, tuple[int, ...]] | None:
        """Return the oldest ended uncommitted epoch, and the lanes without a report for it."""
        epoch = self._epochs.get(self._uncommitted)
        if epoch is None:
            return None
        return self._uncommitted, tuple(lane for lane in range(self._lanes) if lane not in epoch.reports)

    @property
    def is_idle(self) -> bool:
        """Return whether every epoch that has ended is committed, and no lane has moved since."""
        return not self._moved and not self._epochs

    @property
    def is_at_end(self) -> bool:
        """Return whether every lane has read its input partition to its end."""
        return len(self._ended) == self._lanes

    @property
    def open_reports(self) -> Mapping[int, Sequence[LaneReport]]:
        """Return the reports of uncommitted epochs, for an abort."""
        return {number: tuple(epoch.reports.values()) for number, epoch in sorted(self._epochs.items())}

    def started(self, lane: int) -> list[EpochCommand]:
        """Record that a lane has all that it needs to read."""
        self._check_lane(lane)
        if lane in self._started:
            raise EpochOrderError(f"lane {lane} started twice")
        self._started.add(lane)
        return [BeginReading()] if self.is_running and not self._done else []

    def moved(self, lane: int, epoch: int) -> list[EpochCommand]:
        """Record that a lane has moved in an epoch: there is something to commit."""
        self._check_lane(lane)
        if epoch > self._current:
            # Its report comes before what it does next.
            raise EpochOrderError(f"lane {lane} moved in epoch {epoch}, and epoch {self._current} has not ended")
        # A lane that was late to end an epoch still counts for the current epoch: it may have moved in both.
        self._moved = True
        self._moved_in.setdefault(epoch, set()).add(lane)
        return []

    def lane_committed(self, lane: int, epoch: int) -> list[EpochCommand]:
        """Record that a lane has committed its rows of an epoch so far; the epoch has not ended.

        The checkpoint follows when the epoch is committed. Until then the lane's own position counts.
        """
        self._check_lane(lane)
        moved = self._moved_in.get(epoch, set())
        if lane not in moved:
            raise EpochOrderError(f"lane {lane} committed rows of epoch {epoch} before it had read any")
        moved.remove(lane)
        self._advanced.add(lane)
        return []

    def failed(self, lane: int) -> None:
        """Record that a lane has failed in the epoch that runs, whether it has moved in it or not."""
        self._moved_in.setdefault(self._current, set()).add(lane)

    def has_advanced(self, failed: Iterable[int] = (), *, was_steady: bool = False) -> bool:
        """Return whether this run has advanced, so that a failure is the first one in a row.

        It has if an epoch with rows is committed. Rows of other lanes are not enough where a failed lane has rows that
        are not committed: a record that ends its worker would be tried for ever beside partitions that are well.

        Args:
            failed: lanes of which one has caused a failure, as far as is known.
            was_steady: whether the run has lasted long enough to count without rows.
        """
        uncommitted = {lane for lanes in self._moved_in.values() for lane in lanes}
        return (was_steady or bool(self._advanced)) and uncommitted.intersection(failed) <= self._advanced

    def ended(self, lane: int) -> list[EpochCommand]:
        """Record that a lane is at its end; the last lane ends the run."""
        self._check_lane(lane)
        if lane not in self._started or lane in self._ended:
            raise EpochOrderError(f"lane {lane} ended {'twice' if lane in self._ended else 'before it started'}")
        self._ended.add(lane)
        return self.stop() if self.is_at_end else []

    def ticked(self, now_ms: int) -> list[EpochCommand]:
        """Record the time: called when every lane has started, at `due_ms`, and at any other time."""
        if self._stopping or not self.is_running:
            return []
        if self._current_since_ms is None:
            # Before, there was nothing to read: the first epoch is as long as the others.
            self._current_since_ms = now_ms
        is_due = self._moved and now_ms - self._current_since_ms >= self._interval_ms
        if not is_due or self._current - self._uncommitted >= MAX_OPEN:
            return []
        self._current_since_ms = now_ms
        return self._end_current()

    def set_interval(self, interval_ms: int) -> None:
        """Record the length of epochs from now on, also of the epoch that runs."""
        self._interval_ms = interval_ms

    def due_ms(self) -> int | None:
        """Return the time of the next call to `ticked`, by its clock; None if something else must happen first."""
        if self._current_since_ms is None or self._stopping or not self._moved or not self.is_running:
            return None
        if self._current - self._uncommitted >= MAX_OPEN:
            return None
        return self._current_since_ms + self._interval_ms

    def end_now(self) -> list[EpochCommand]:
        """End the epoch that runs, whether a lane has moved or not, if lanes run and commits keep up."""
        if self._stopping or not self.is_running or self._current - self._uncommitted >= MAX_OPEN:
            return []
        return self._end_current()

    def reported(self, report: LaneReport) -> list[EpochCommand]:
        """Record that a lane has ended an epoch."""
        self._check_lane(report.lane)
        epoch = self._epochs.get(report.epoch)
        if epoch is None:
            raise EpochOrderError(f"lane {report.lane} reported epoch {report.epoch}, which it was not told to end")
        if report.lane in epoch.reports:
            raise EpochOrderError(f"lane {report.lane} reported epoch {report.epoch} twice")
        earlier = self._epochs.get(report.epoch - 1)
        if earlier is not None and report.lane not in earlier.reports:
            raise EpochOrderError(f"lane {report.lane} reported epoch {report.epoch} before epoch {report.epoch - 1}")
        epoch.reports[report.lane] = report
        return self._commit_next()

    def committed(self, epoch: int) -> list[EpochCommand]:
        """Record that the epoch of the last `CommitEpoch` is committed."""
        if not self._committing or epoch != self._uncommitted:
            raise EpochOrderError(f"epoch {epoch} was committed, and it was not its turn")
        self._committing = False
        del self._epochs[epoch]
        self._advanced |= self._moved_in.pop(epoch, set())
        self._uncommitted += 1
        return self._commit_next()

    def stop(self) -> list[EpochCommand]:
        """End the epoch that runs, commit what was read, and be done. Again: nothing more.

        The last epoch is ended though no lane may have moved: the word of a lane that has may not have arrived yet.
        Before every lane has started none has read.
        """
        if self._stopping:
            return []
        self._stopping = True
        if self.is_running:
            return self._end_current()
        self._done = True
        return [RunIsDone()]

    def _end_current(self) -> list[EpochCommand]:
        ended = self._current
        self._epochs[ended] = _Epoch()
        self._current += 1
        self._moved = False
        return [EndEpoch(ended, last=self._stopping)]

    def _commit_next(self) -> list[EpochCommand]:
        epoch = self._epochs.get(self._uncommitted)
        if epoch is not None and not self._committing and len(epoch.reports) == self._lanes:
            self._committing = True
            reports = tuple(epoch.reports[lane] for lane in range(self._lanes))
            return [CommitEpoch(self._uncommitted, reports)]
        if self._stopping and not self._epochs and not self._done:
            self._done = True
            return [RunIsDone()]
        return []

    def _check_lane(self, lane: int) -> None:
        if not 0 <= lane < self._lanes:
            raise EpochOrderError(f"there is no lane {lane}; there are {self._lanes}")
