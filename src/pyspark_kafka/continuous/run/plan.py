"""The plan of a continuous query, from its builder to the thread that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.continuous.channel.driver_side import LOST_SECONDS

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafka.connector import ContinuousStream, StreamingWrite
    from pyspark_kafka.continuous.task.stages import Stages


@dataclass(frozen=True, slots=True)
class RestartPauses:
    """The pauses between a query's restarts after failures in a row: each is five times the previous one.

    Attributes:
        first_ms: after the first one.
        longest_ms: at most.
    """

    first_ms: int = 200
    longest_ms: int = 10_000

    def after(self, failures: int) -> float:
        """Return the pause in seconds after a number of failures in a row, from 1."""
        # The exponent is bounded: no number grows without end.
        factor: int = 5 ** min(failures - 1, 20)
        return min(self.first_ms * factor, self.longest_ms) / 1000


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The plan of a query.

    Attributes:
        stream: the source.
        write: the sink.
        stages: the functions between.
        tasks: the maximum of tasks; None for the number of slots.
        interval_ms: the length of an epoch.
        host: the address that tasks connect to.
        max_failures: the maximum of failures in a row after which the query restarts.
        port: the driver's port; 0 for any.
        available_now: whether the query ends at the rows that were available when it started.
        pauses: the pauses between a failure and the next start.
        lost_s: after how many seconds of silence a task, or the driver, is lost.
        schema: the schema to which rows are compared; None: they are not compared.
    """

    stream: ContinuousStream
    write: StreamingWrite
    stages: Stages
    tasks: int | None
    interval_ms: int
    host: str
    max_failures: int
    port: int = 0
    available_now: bool = False
    pauses: RestartPauses = RestartPauses()
    lost_s: float = LOST_SECONDS
    schema: pa.Schema | None = None
