"""The context that runs of a continuous query share with one another and with the holders of its handle."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from pyspark_kafka.continuous.epochs.pace import EpochPace
    from pyspark_kafka.continuous.placement.slots import TaskSlots
    from pyspark_kafka.continuous.reports.progress import ProgressLog
    from pyspark_kafka.continuous.run.commits import EpochCommits
    from pyspark_kafka.continuous.run.plan import QueryPlan
    from pyspark_kafka.continuous.run.waits import RowWaits
    from pyspark_kafka.continuous.traces.query_spans import QuerySpans


@dataclass(slots=True)
class QueryControl:
    """Shared by the thread of a query and the threads that hold its handle.

    Attributes:
        stop_asked: the query is to end.
        give_up: it is to end now, without the epoch that runs.
        message: what the query does now, in a sentence.
        is_reading: whether every lane reads.
        has_warned_of_all_slots: whether the log has the warning that the query takes every slot.
        open_question: the thread of an unfinished request to the source; it must end before the next run is planned.
        wake: lets the thread of the query check these flags now; without a call it does so within a second.
    """

    stop_asked: threading.Event = field(default_factory=threading.Event)
    give_up: threading.Event = field(default_factory=threading.Event)
    message: str = "Starting"
    is_reading: bool = False
    has_warned_of_all_slots: bool = False
    open_question: threading.Thread | None = None
    wake: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class RunContext:
    """The context that all runs of a query share.

    Attributes:
        spark: the session.
        slots: of the session.
        plan: the plan of the query.
        query_id: of the query.
        run_id: of this start of it, with all its runs.
        control: the requests to the query.
        waits: the calls that wait for rows.
        commits: commits epochs.
        progress: of the query.
        pace: its epoch length.
        spans: its spans; None: it has none.
    """

    spark: SparkSession
    slots: TaskSlots
    plan: QueryPlan
    query_id: str
    run_id: str
    control: QueryControl
    waits: RowWaits
    commits: EpochCommits
    progress: ProgressLog
    pace: EpochPace
    spans: QuerySpans | None = None
