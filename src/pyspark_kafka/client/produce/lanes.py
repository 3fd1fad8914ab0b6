"""The conversations of a producer with brokers, and the time that counts for delivery. No I/O. Layer: client."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.client.net.connection import Connection
    from pyspark_kafka.client.produce.batches.producer_batch import ProducerBatch
    from pyspark_kafka.model import TopicPartition


# A broker that has not answered a request for so long may have died: others are asked who leads what it was sent…
_SILENT_S = 2.0
# …and again so long after that.
_LOOK_AGAIN_S = 2.0


@dataclass(slots=True)
class InFlightRequest:
    """A request in flight.

    Attributes:
        batches: what it carries.
        ends_at: when it is given up, in seconds of the clock on the wall.
        sent_at: when it was sent, by the same clock.
    """

    batches: dict[TopicPartition, ProducerBatch]
    ends_at: float
    sent_at: float


@dataclass(slots=True)
class ProduceLane:
    """The conversation with one broker."""

    broker_id: int
    connection: Connection
    requests: deque[InFlightRequest] = field(default_factory=deque)
    throttled_until: float = 0.0
    heard_at: float = 0.0
    looked_at: float = 0.0

    @property
    def look_at(self) -> float:
        """Return when to ask others who leads what was sent here and is not answered; there are requests in flight.

        A broker that throttles may not be called silent before it reads again (KIP-219).
        """
        return max(self._silent_since + _SILENT_S, self.looked_at + _LOOK_AGAIN_S)

    @property
    def _silent_since(self) -> float:
        return max(self.requests[0].sent_at, self.heard_at, self.throttled_until)

    def silent_s(self, now: float) -> float:
        """Return for how many seconds nothing was heard of its requests, of which there are some."""
        return now - self._silent_since

    @property
    def ends_at(self) -> float:
        """When the first of its requests is given up, which need not be the oldest: batches have deadlines too."""
        return min(request.ends_at for request in self.requests)


class DeliveryClock:
    """Seconds that pass only inside of the producer's calls.

    A producer without a thread of its own can neither send nor hear between calls. What the caller does meanwhile may
    take minutes (a sort, a model), and says nothing of the brokers: batches expire by this clock.

    Args:
        clock: monotonic seconds on the wall.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._outside_s = 0.0
        self._left_at = clock()

    def enter(self) -> None:
        """Begin a call."""
        self._outside_s += self._clock() - self._left_at

    def leave(self) -> None:
        """End a call."""
        self._left_at = self._clock()

    def now(self) -> float:
        """Give the seconds, inside of a call."""
        return self._clock() - self._outside_s

    def on_the_wall(self, moment: float) -> float:
        """Give a moment of this clock as one of the clock on the wall, if the call does not end before."""
        return moment + self._outside_s
