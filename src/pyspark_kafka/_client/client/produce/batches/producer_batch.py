"""One record batch that a producer was given to deliver, and the states it goes through. Pure.

States and transitions; each method is one of `state.ProducerState`, which makes all of them:

| from | event | to | method |
| --- | --- | --- | --- |
| | the caller sends it | PENDING | `append` |
| PENDING | it goes to a broker | IN_FLIGHT | `mark_sent` |
| PENDING | its topic takes no batch as large | SPLIT, its parts are PENDING | `split` |
| IN_FLIGHT | response: stored, or a duplicate | ACKNOWLEDGED | `acknowledge` |
| IN_FLIGHT | response: may succeed later; or none: connection lost, time over | PENDING | `fail` |
| IN_FLIGHT | response: too large, and it has several records | PENDING, then SPLIT | `fail`, `split` |
| IN_FLIGHT | response: refused for good | REFUSED, and the producer fails | `refuse` |

ACKNOWLEDGED, SPLIT and REFUSED are final. A PENDING batch whose time is over stays PENDING, and the producer fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_kafka._base.model import TopicPartition

    Bytes = bytes | bytearray | memoryview


class BatchState(Enum):
    """The states of a `ProducerBatch`; the module's docstring has the transitions."""

    PENDING = "pending"
    IN_FLIGHT = "in flight"
    ACKNOWLEDGED = "acknowledged"
    SPLIT = "split"
    REFUSED = "refused"


# Nothing happens to such a batch any more. A tuple: to look up a member in a set takes a call of Python.
FINAL_STATES = (BatchState.ACKNOWLEDGED, BatchState.SPLIT, BatchState.REFUSED)


@dataclass(slots=True, eq=False)
class ProducerBatch:
    """One record batch; mutable, changed by `ProducerState` only.

    Attributes:
        topic_partition: where it goes.
        data: its bytes; empty once it is delivered.
        record_count: how many records it holds.
        base_sequence: the sequence of its first record; -1 without idempotence.
        expires_at: the moment, in seconds of the caller's choice, when delivery is given up.
        size: how many bytes it has.
        number: its place among the batches of its partition, counted from 0.
        attempts: how often it was sent.
        maybe_appended: whether an attempt ended without a response that proves the batch absent from the log.
    """

    topic_partition: TopicPartition
    data: Bytes
    record_count: int
    base_sequence: int
    expires_at: float
    size: int
    number: int = 0
    attempts: int = 0
    maybe_appended: bool = False
    state: BatchState = BatchState.PENDING

    @property
    def in_flight(self) -> bool:
        """Whether it was sent, and there is no response yet."""
        return self.state is BatchState.IN_FLIGHT


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """A partition's or producer's records, by the state of their delivery."""

    delivered: int = 0
    not_delivered: int = 0
    unknown: int = 0

    def __str__(self) -> str:
        return f"delivered {self.delivered}, not delivered {self.not_delivered}, unknown {self.unknown}"
