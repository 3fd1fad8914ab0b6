"""Compares two checkpoints: the newer one by partition, and other differences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.errors import CheckpointError, listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import QueryCheckpoint

_T = TypeVar("_T")

# The number of compared last common batches.
_COMPARED = 100


@dataclass(frozen=True, slots=True)
class PositionDifference:
    """A topic-partition in which two checkpoints differ.

    Attributes:
        source: the source of the query.
        topic_partition: the partition.
        first: the position in the first checkpoint; None if it has none.
        second: the position in the second checkpoint; None if it has none.
    """

    source: str
    topic_partition: TopicPartition
    first: int | None
    second: int | None

    @property
    def ahead(self) -> int | None:
        """Return the second's lead in offsets, negative if it is behind; None without both positions."""
        return None if self.first is None or self.second is None else self.second - self.first


@dataclass(frozen=True, slots=True)
class CheckpointDifference:
    """The differences between two checkpoints.

    Attributes:
        sentences: differences other than positions, one sentence each.
        positions: the partitions whose positions differ, sorted; None if the positions of one could not be read.
        problems: the unreadable parts, one sentence each.
    """

    sentences: tuple[str, ...]
    positions: tuple[PositionDifference, ...] | None
    problems: tuple[str, ...]

    @property
    def are_same(self) -> bool | None:
        """Return whether the two are equal; None if no difference was found, but a part was unreadable."""
        if self.sentences or self.positions:
            return False
        return None if self.problems else True

    @property
    def verdict(self) -> str:
        """Return the leading one, as a sentence."""
        if self.positions is None:
            return "The positions could not be compared."
        ahead = [each.ahead for each in self.positions if each.ahead is not None]
        if not self.positions:
            return "Both are at the same positions."
        forward, back = sum(each > 0 for each in ahead), sum(each < 0 for each in ahead)
        only = len(self.positions) - len(ahead)
        said = []
        if forward:
            said.append(
                f"the second one is ahead in {_partitions(forward)}, by {sum(n for n in ahead if n > 0):,} offsets"
            )
        if back:
            said.append(
                f"the first one is ahead in {_partitions(back)}, by {-sum(n for n in ahead if n < 0):,} offsets"
            )
        if only:
            said.append(f"only one has a position in {_partitions(only)}")
        text = "; ".join(said)
        return f"{text[0].upper()}{text[1:]}."


def compare_checkpoints(first: QueryCheckpoint, second: QueryCheckpoint) -> CheckpointDifference:
    """Compare two checkpoints: of two queries, or a checkpoint and its backup.

    Runs on: any program; reads some files of each; blocks on the file system.

    Args:
        first: one checkpoint.
        second: the other.
    """
    return _Comparison(first, second).run()


class _Comparison:
    def __init__(self, first: QueryCheckpoint, second: QueryCheckpoint) -> None:
        self._both = first, second
        self._sentences: list[str] = []
        self._problems: dict[str, None] = {}

    def run(self) -> CheckpointDifference:
        first, second = self._both
        ids = [self._try(partial(_id_text, each)) for each in self._both]
        if ids[0] != ids[1] and None not in ids:
            self._sentences.append(f"They are of two queries: {ids[0]} and {ids[1]}.")
        kinds = [self._try(each.kind) for each in self._both]
        if kinds[0] is not kinds[1] and None not in kinds:
            self._sentences.append(
                f"They were written in two ways: {', '.join(kind.value for kind in kinds if kind is not None)}."
            )
        self._compare_numbers("begun", first.history.last_begun, second.history.last_begun)
        self._compare_numbers("finished", first.history.last_finished, second.history.last_finished)
        self._compare_batches()
        positions = self._positions()
        self._compare_topic_ids()
        self._compare_states()
        return CheckpointDifference(tuple(self._sentences), positions, tuple(self._problems))

    def _try(self, read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except CheckpointError as error:
            self._problems[error.message] = None
            return None

    def _compare_numbers(self, what: str, first: int | None, second: int | None) -> None:
        if first != second:
            texts = ["none" if number is None else f"batch {number}" for number in (first, second)]
            self._sentences.append(
                f"The last one that has {what} is {texts[0]} in the first, {texts[1]} in the second."
            )

    def _compare_batches(self) -> None:
        first, second = self._both
        common = [each for each in reversed(first.history.begun) if second.history.is_begun(each)][:_COMPARED]
        other = []
        for batch_id in sorted(common):
            batches = [self._try(partial(each.history.get, batch_id)) for each in self._both]
            a, b = batches
            if a is None or b is None:
                continue
            # Not the text: the two connectors write blanks differently.
            if {n: end.offset or end.text for n, end in a.ends.items()} != {
                n: end.offset or end.text for n, end in b.ends.items()
            }:
                other.append(batch_id)
        if other:
            self._sentences.append(
                f"Batches that end at other offsets in the one than in the other: {listed(other, noun='batches')}. The "
                "checkpoints have gone different ways."
            )
        if not common and first.history.begun and second.history.begun:
            self._sentences.append("They have no batch in common.")

    def _positions(self) -> tuple[PositionDifference, ...] | None:
        first, second = [self._try(each.position) for each in self._both]
        if first is None or second is None:
            return None
        found = []
        for source in sorted({*first, *second}):
            a = first[source].partitions if source in first else {}
            b = second[source].partitions if source in second else {}
            found += [
                PositionDifference(source, each, a.get(each), b.get(each))
                for each in sorted({*a, *b})
                if a.get(each) != b.get(each)
            ]
        return tuple(found)

    def _compare_topic_ids(self) -> None:
        ids = []
        for checkpoint in self._both:
            known: dict[str, str] = {}
            for source in self._try(checkpoint.sources) or ():
                found = self._try(partial(checkpoint.topic_ids, source))
                known |= {} if found is None else found.ids
            ids.append(known)
        other = sorted(topic for topic in ids[0] if topic in ids[1] and ids[0][topic] != ids[1][topic])
        if other:
            self._sentences.append(
                f"The ids of {listed(other, noun='topics')} differ: the topics were recreated in between, or they are "
                "of two clusters."
            )

    def _compare_states(self) -> None:
        states = [self._try(each.state_operators) for each in self._both]
        if None not in states and states[0] != states[1]:
            texts = [listed([each.directory for each in found or ()], noun="directories") or "none" for found in states]
            self._sentences.append(f"Their stateful operators differ: {texts[0]} and {texts[1]}.")


def _id_text(checkpoint: QueryCheckpoint) -> str:
    return checkpoint.query_id() or "no id"


def _partitions(count: int) -> str:
    return f"{count:,} partition" if count == 1 else f"{count:,} partitions"
