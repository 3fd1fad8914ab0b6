"""The parts that everything about the delivery of one task's batches shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.produce.batches.size_limits import TopicLimits
    from pyspark_kafka._client.client.produce.batches.state import ProducerState
    from pyspark_kafka._client.client.produce.identity import WriteMode
    from pyspark_kafka._client.client.produce.leaders import PartitionLeaders
    from pyspark_kafka._client.client.waiting.stalls import Stall
    from pyspark_kafka._client.options import ProducerOptions


@dataclass(frozen=True, slots=True)
class DeliveryParts:
    """The parts of a producer for the time of one task.

    Attributes:
        client: the cluster of the task; not used by anyone else meanwhile.
        options: acknowledgements, sizes, times.
        mode: idempotent or not, of a transaction or not.
        state: the batches; it decides which may be sent, and what a response means.
        limits: how large batches of each topic may be.
        leaders: who leads the partitions; forgotten when a write to a leader fails.
        waiting: reports long waits.
        clock: of the producer.
        bulk: whether small batches wait for company also if nothing is in flight.
        unknown_topic_ms: how long a partition that was never there is looked up.
        outage_timeout_ms: 0 if failures that are final at first contact are final here.
    """

    client: KafkaClient
    options: ProducerOptions
    mode: WriteMode
    state: ProducerState
    limits: TopicLimits
    leaders: PartitionLeaders
    waiting: Stall
    clock: DeliveryClock
    bulk: bool
    unknown_topic_ms: int
    outage_timeout_ms: int


class DeliveryClock:
    """Seconds that pass only inside of the producer's calls.

    A producer without a thread of its own can neither send nor receive between calls. The caller may take minutes
    between them (a sort, a model), which says nothing about the brokers: batches expire by this clock.

    Args:
        wall: monotonic seconds on the wall.
        sleep: waits seconds on the wall.

    Attributes:
        wall: returns the seconds on the wall; requests, throttles and pauses end by it.
        sleep: waits seconds on the wall.
        outside_s: how much later it is on the wall, if a call does not end before.
        left_at: when the last call ended, on the wall.
    """

    def __init__(self, wall: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self.wall = wall
        self.sleep = sleep
        self.outside_s = 0.0
        self.left_at = wall()

    def now(self) -> float:
        """Return the seconds, inside of a call."""
        return self.wall() - self.outside_s
