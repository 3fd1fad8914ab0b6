"""Sizes of logs, and their sums by topic, by broker and by partition. Pure. Units: bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka.model import TopicPartition

SizesBy = Literal["topic", "broker", "partition"]


class LedLog(NamedTuple):
    """The log of a partition on the disk of its leader.

    Attributes:
        leader_id: -1 if it has no leader.
        size: in bytes; None if it was not found out.
    """

    leader_id: int
    size: int | None


class SizeRow(NamedTuple):
    """The logs of one topic, of one broker, or of one partition.

    Attributes:
        name: of the topic, of the partition, or `broker (address)`.
        size: the sum of what is known, in bytes.
        partitions: how many there are.
        unknown: of how many of them the size is not known.
        leaders: who leads them, in ascending order.
    """

    name: str
    size: int
    partitions: int
    unknown: int
    leaders: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LogSizes:
    """The sizes of logs as their leaders store them.

    Attributes:
        logs: by topic-partition.
        brokers: addresses by broker id.
        missing: sentences about what was not found out.
    """

    logs: Mapping[TopicPartition, LedLog]
    brokers: Mapping[int, str]
    missing: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The sum of all that is known."""
        return sum(log.size or 0 for log in self.logs.values())

    def rows(self, by: SizesBy) -> list[SizeRow]:
        """Return sums, the largest first; of the same size by name."""
        if by == "topic":
            return self._grouped(lambda where, _: where.topic)
        if by == "partition":
            return self._grouped(lambda where, _: str(where))
        return self._grouped(lambda _, log: self.leader_text(log.leader_id))

    def leader_text(self, leader_id: int) -> str:
        """Return a broker's id and address, for people."""
        if leader_id < 0:
            return "no leader"
        return f"{leader_id} ({self.brokers.get(leader_id, 'not known')})"

    def _grouped(self, name_of: Callable[[TopicPartition, LedLog], str]) -> list[SizeRow]:
        groups: dict[str, list[LedLog]] = {}
        for where, log in self.logs.items():
            groups.setdefault(name_of(where, log), []).append(log)
        rows = [
            SizeRow(
                name,
                sum(log.size or 0 for log in logs),
                len(logs),
                sum(log.size is None for log in logs),
                tuple(sorted({log.leader_id for log in logs})),
            )
            for name, logs in groups.items()
        ]
        return sorted(rows, key=lambda row: (-row.size, row.name))
