"""The events of a continuous query's run, except task messages, and the requests to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pyspark_kafka.continuous.epochs.messages import Message
from pyspark_kafka.continuous.run.commits import CommitEnded

if TYPE_CHECKING:
    from pyspark_kafka.connector import Offset


class Asked(NamedTuple):
    """The requests of the handle's holders: the end, also without the last epoch, or a commit of readable rows."""

    stop: bool = False
    give_up: bool = False
    end_epoch: bool = False
    find_end: bool = False


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
    """The source failed to return whether its input partitions have changed, or the checkpoint has another owner."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class EndFound:
    """The end of readable rows: None if the source does not return one; or the source's error."""

    target: Offset | None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class PaceChanged:
    """The new epoch length, perhaps longer than the trigger's because something cannot follow."""

    interval_ms: int
    is_longer: bool


# None only wakes the thread of the query.
RunEvent: TypeAlias = (
    Message | TaskLost | JobEnded | CommitEnded | PartitionsChanged | PaceChanged | SourceFailed | EndFound | None
)
