"""What happens to a run of a continuous query, and what a run asks for, besides messages of tasks and epochs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark_kafka.continuous.epochs.coordinator import EpochCommand
from pyspark_kafka.continuous.epochs.messages import Message
from pyspark_kafka.continuous.run.commits import CommitEnded

if TYPE_CHECKING:
    from pyspark_kafka.connector import Offset


@dataclass(frozen=True, slots=True)
class TaskLost:
    """A task does not respond any more."""

    task: int
    reason: str


@dataclass(frozen=True, slots=True)
class JobEnded:
    """The Spark job of the tasks has ended, with the error of Spark if there is one."""

    error: BaseException | None


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """The input partitions of the source have changed, or the slots of Spark: the query is to be planned again."""


@dataclass(frozen=True, slots=True)
class SourceFailed:
    """The source could not answer whether its input partitions have changed, or the checkpoint has another owner."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class EndFound:
    """Where readable rows end: None if the source does not know; or the error of the source."""

    target: Offset | None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class FindEnd:
    """Ask the source where readable rows end."""


@dataclass(frozen=True, slots=True)
class CheckSlots:
    """Check whether Spark has other slots than the run was planned for."""


@dataclass(frozen=True, slots=True)
class WarnOfSlots:
    """Report that Spark has not started the tasks, unless slots are free."""


@dataclass(frozen=True, slots=True)
class ChangeInterval:
    """Report that epochs have another length from now on."""


# None only wakes the thread of the query.
RunEvent: TypeAlias = Message | TaskLost | JobEnded | CommitEnded | PartitionsChanged | SourceFailed | EndFound | None
RunCommand: TypeAlias = EpochCommand | FindEnd | CheckSlots | WarnOfSlots | ChangeInterval
