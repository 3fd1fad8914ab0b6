"""The waits of a continuous query's run, in the log and as the status of the query."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka.continuous.epochs.pace import EpochPace

_LOG = logging.getLogger(__name__)

_MAX_NAMED = 10


def numbered(what: str, numbers: Sequence[int]) -> str:
    """Return the first numbers after the word for them, such as "lanes 3, 4"."""
    return f"{what}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:_MAX_NAMED]))}"


class RunLog:
    """The warnings of one run, each at most once, and the status of its query.

    Runs on: driver, on the thread of the query; does not block.

    Args:
        query_id: of the query.
        set_status: takes what the query does now, as a sentence.
    """

    def __init__(self, query_id: str, set_status: Callable[[str], None]) -> None:
        self._query_id, self.set_status = query_id, set_status
        self._logged: set[str] = set()

    def wait_for_source(self) -> None:
        """Report that the source has not completed a request of the previous run."""
        self.set_status("Waiting for the source to answer whether its input partitions have changed")
        _LOG.warning(
            "Continuous query %s cannot plan again: its source does not answer whether its input partitions have "
            "changed (needsReconfiguration), or where rows end (latestOffset).",
            self._query_id,
        )

    def wait_for_executor(self, *, is_late: bool) -> None:
        """Report that Spark has no executor; in the log only if `is_late`."""
        self.set_status("Waiting for Spark to have an executor")
        if is_late and self._is_first("executor"):
            _LOG.warning(
                "Continuous query %s waits: its Spark application has no executor. It starts when there is one.",
                self._query_id,
            )

    def have_fewer_slots(self, tasks: int, slots: int) -> None:
        """Report that Spark has fewer slots than option tasks requires."""
        _LOG.warning(
            "Continuous query %s has option tasks=%d, and Spark has slots for %d tasks: the query starts with %d "
            "tasks. Raise the cores of the application for more.",
            self._query_id,
            tasks,
            slots,
            slots,
        )

    def have_fewer_files(self, tasks: int, slots: int, limit: int | None) -> None:
        """Report that the driver may have fewer connections open than there are slots."""
        _LOG.warning(
            "Continuous query %s has %d tasks, not %d: its driver may have %s files open at the same time, and each "
            "task is a connection. Raise the limit (ulimit -n).",
            self._query_id,
            tasks,
            slots,
            limit,
        )

    def take_all_slots(self, tasks: int) -> None:
        """Report that no slot is left for other jobs."""
        _LOG.warning(
            "Continuous query %s takes all %d slots of its Spark application: other jobs, such as a batch read of the "
            "topic that it writes, wait until it ends. %s",
            self._query_id,
            tasks,
            f"Set .option('tasks', {tasks - 1}) to leave a slot free."
            if tasks > 1
            else "Start the application with more cores, such as master local[2].",
        )

    def wait_for_tasks(self, late: Sequence[int], tasks: int) -> None:
        """Report tasks that Spark has started, and that have not loaded the functions or opened the state."""
        named = numbered("task", late)
        self.set_status(f"Waiting for {named} to load the functions and open the state")
        if self._is_first("tasks"):
            _LOG.warning(
                "Continuous query %s waits for %d of its %d tasks, %s, which Spark has started: their Python "
                "processes start, load the functions of the query, or open the state. Nothing is read before.",
                self._query_id,
                len(late),
                tasks,
                named,
            )

    def wait_for_slots(self, tasks: int, free: int | None) -> None:
        """Report that Spark has not started the tasks.

        Args:
            tasks: how many.
            free: the number of slots that no task runs in; None if it is not known.
        """
        self.set_status(f"Waiting for Spark to run {tasks} tasks at the same time")
        if self._is_first("slots"):
            _LOG.warning(
                "Continuous query %s waits for Spark to start its tasks (%d), which must run at the same time%s. "
                "Raise the cores of the application, stop other jobs, or set option tasks.",
                self._query_id,
                tasks,
                "" if free is None else f" (free slots: {free})",
            )

    def wait_for_lanes(self, lanes: Sequence[int], epoch: int, waited: float) -> None:
        """Name the lanes that have not reported an epoch long after it has ended: a function or a sink waits there."""
        named = numbered("lane", lanes)
        self.set_status(f"Waiting for {named} to end epoch {epoch}")
        _LOG.warning(
            "Continuous query %s: %d of its lanes, %s, should have ended epoch %d %.0f s ago. No epoch is "
            "committed until then. A function may wait there, or the sink accepts no more rows.",
            self._query_id,
            len(lanes),
            named,
            epoch,
            waited,
        )

    def change_interval(self, pace: EpochPace) -> None:
        """Report that epochs last longer, or as long as the trigger says again."""
        if pace.reason:
            _LOG.warning(
                "Epochs of continuous query %s last %d ms from now on, not %d ms, because %s",
                self._query_id,
                pace.interval_ms,
                pace.asked_ms,
                pace.explained(),
            )
        else:
            _LOG.warning("Epochs of continuous query %s last %d ms again.", self._query_id, pace.asked_ms)

    def _is_first(self, what: str) -> bool:
        is_first = what not in self._logged
        self._logged.add(what)
        return is_first
