"""What was written to the source topics and what was deleted from them: the truth that queries are compared with."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field

from kit.log_checker import Extent, Log

# The end of a value that is not UTF-8; in Python's text with `surrogateescape` it is the second one.
_POISON, _POISON_TEXT = b"\xff", "\udcff"


@dataclass(frozen=True)
class Stamp:
    """What a record says of itself.

    Attributes:
        log: where it was written to.
        number: its number among the records of its topic.
        is_poison: whether it cannot be read as text.
    """

    log: Log
    number: int
    is_poison: bool = False

    def to_value(self) -> bytes:
        """Return the value of the record."""
        text = f"{self.log.topic}/{self.log.incarnation}/{self.log.partition}/{self.number}"
        return text.encode() + _POISON * self.is_poison

    @classmethod
    def from_value(cls, value: str) -> Stamp:
        """Read a value that `to_value` has made, decoded with `surrogateescape`."""
        text = value.removesuffix(_POISON_TEXT)
        topic, incarnation, partition, number = text.split("/")
        return cls(Log(topic, int(partition), int(incarnation)), int(number), text != value)


@dataclass
class Ledger:
    """Filled by the writer of the source topics and by the faults; read at the end. Safe to use from threads."""

    acknowledged: dict[Log, int] = field(default_factory=lambda: defaultdict(int))
    acknowledged_end: dict[Log, int] = field(default_factory=lambda: defaultdict(int))
    deleted_before: dict[Log, int] = field(default_factory=dict)
    incarnations: dict[str, int] = field(default_factory=dict)
    deletions: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failed_writes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledge(self, log: Log, offset: int) -> None:
        """Note that the brokers have a record."""
        with self.lock:
            self.acknowledged[log] += 1
            self.acknowledged_end[log] = max(self.acknowledged_end[log], offset + 1)

    def fail(self) -> None:
        """Note a record of which nobody knows whether the brokers have it."""
        with self.lock:
            self.failed_writes += 1

    def note_deletion(self, topic: str, now: float) -> None:
        """Note that records of a topic are about to go that a query may not have read."""
        with self.lock:
            self.deletions[topic].append(now)

    def extents(self, ends: dict[tuple[str, int], int]) -> dict[Log, Extent]:
        """Return what is to be found in the outputs.

        Args:
            ends: of each partition of the topics that are there at the end.
        """
        with self.lock:
            logs = {Log(*where, self.incarnations[where[0]]): end for where, end in ends.items()}
            return {log: Extent(self.deleted_before.get(log, 0), end) for log, end in logs.items()}

    def is_gone(self, log: Log) -> bool:
        """Return whether the topic of a log was deleted: nobody can know what queries left unread."""
        with self.lock:
            return log.incarnation < self.incarnations.get(log.topic, 0)

    def vanished(self, ends: dict[tuple[str, int], int]) -> int:
        """Count acknowledged records that are behind the end of their log: the cluster itself has lost them."""
        return sum(
            max(0, end - ends.get((log.topic, log.partition), 0))
            for log, end in self.acknowledged_end.items()
            if log.incarnation == self.incarnations[log.topic]
        )
