"""What a continuous query does, as its builder hands it to the thread that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_kafka.connector import ContinuousStream, StreamingWrite
    from pyspark_kafka.continuous.task.stages import Stages


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What a query does.

    Attributes:
        stream: what is read.
        write: what is written.
        stages: the functions between.
        tasks: how many tasks at most; None for as many as there are slots.
        interval_ms: the length of an epoch.
        host: the address that tasks connect to.
        most_failures: failures in a row, without an epoch committed in between, that end the query.
        port: that the driver listens on; 0 for any.
        available_now: whether the query ends at what was there when it started.
    """

    stream: ContinuousStream
    write: StreamingWrite
    stages: Stages
    tasks: int | None
    interval_ms: int
    host: str
    most_failures: int
    port: int = 0
    available_now: bool = False
