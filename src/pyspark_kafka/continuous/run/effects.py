"""The effects of a continuous query's run, as data: `RunMachine` returns them, `QueryRun` performs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark_kafka.continuous.epochs.coordinator import EpochCommand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.connector import Offset
    from pyspark_kafka.continuous.epochs.pace import EpochLoad
    from pyspark_kafka.continuous.run.events import EndFound


@dataclass(frozen=True, slots=True)
class FindEnd:
    """Request the end of readable rows from the source, for the calls that wait now."""


@dataclass(frozen=True, slots=True)
class TakeEnd:
    """Pass the response of the source to these calls."""

    found: EndFound


@dataclass(frozen=True, slots=True)
class TakeCommit:
    """End the calls whose rows are committed, and adjust the length of epochs.

    Attributes:
        reached: the committed offset.
        idle_since: when the epoch began, if no lane had a row in it; None otherwise.
        load: what the epoch has taken.
        was_slow: whether the status named lanes that delayed it.
    """

    reached: Offset
    idle_since: float | None
    load: EpochLoad
    was_slow: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End a commit that waits out an outage: it ends with the query."""


@dataclass(frozen=True, slots=True)
class CheckSlots:
    """Check whether Spark has other slots than the run was planned for."""


@dataclass(frozen=True, slots=True)
class WarnOfSlots:
    """Report that Spark has not started the tasks, unless slots are free."""


@dataclass(frozen=True, slots=True)
class WarnOfTasks:
    """Report tasks that Spark has started, and that are late to load the functions and open the state."""

    late: Sequence[int]


@dataclass(frozen=True, slots=True)
class WarnOfLanes:
    """Report lanes that have not ended an epoch for a time in seconds."""

    epoch: int
    lanes: Sequence[int]
    waited: float


_Warning: TypeAlias = WarnOfSlots | WarnOfTasks | WarnOfLanes
RunCommand: TypeAlias = EpochCommand | FindEnd | TakeEnd | TakeCommit | GiveUp | CheckSlots | _Warning
