"""The task that a process runs, for the attributes of its spans; who knows it registers here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyspark_kafka._base.traces.batch_ids import batch_trace_id


class TaskPlace(NamedTuple):
    """One attempt of a task.

    Attributes:
        query_id: of its streaming query; None in a batch query.
        run_id: of this start of the query.
        batch_id: the number of the micro-batch; None in other queries.
        stage: of Spark.
        task: its number in the stage.
        attempt: of this attempt alone.
    """

    query_id: str | None
    run_id: str | None
    batch_id: str | None
    stage: int
    task: int
    attempt: int

    @property
    def trace_id(self) -> int:
        """The trace id of its micro-batch; 0 in other queries, whose tasks begin no trace of their own."""
        if self.batch_id is None:
            return 0
        return batch_trace_id(self.run_id or self.query_id or "", self.batch_id)

    @property
    def attributes(self) -> dict[str, str | int]:
        """The attributes of a span of this task."""
        named = {
            "query.id": self.query_id,
            "run.id": self.run_id,
            "batch.id": self.batch_id,
            "stage": self.stage,
            "task": self.task,
            "attempt": self.attempt,
        }
        return {f"pyspark_kafka.{name}": value for name, value in named.items() if value is not None}


_find: Callable[[], TaskPlace | None] = lambda: None  # noqa: E731 - replaced where there are tasks


def find_places_with(find: Callable[[], TaskPlace | None]) -> None:
    """Have a function return the task of this process; None outside of tasks."""
    global _find  # noqa: PLW0603 - of this process
    _find = find


def current_place() -> TaskPlace | None:
    """Return the task of this process; None outside of tasks."""
    return _find()
