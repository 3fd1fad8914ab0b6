"""Bugs of continuous queries, to show that the check notices them. Used by drivers and workers only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from chaos.continuous.flowing import FlowCopy
from pyspark_kafka.continuous.run.commits import EpochCommits

WAITS, SWAPS, KEEPS_POISON, BEGINS_AGAIN, GIVES_UP = "waits", "swaps", "keeps poison", "begins again", "gives up"
BUGS = {
    WAITS: "a lane of an exactly-once query commits only when all lanes have ended the epoch",
    SWAPS: "the rows of every tenth batch come in the opposite order",
    KEEPS_POISON: "records that cannot be read are written as if they were good",
    BEGINS_AGAIN: "each run begins 3 offsets before the end of the one before it",
    GIVES_UP: "the first failure ends the query",
}
_EVERY = 10
_BEHIND = 3


class PlantedCopy(FlowCopy):
    """The function of a query, with bugs; also those of the engine in its worker, which is used by others as well."""

    def __init__(self, copy: FlowCopy, plants: Sequence[str]) -> None:
        super().__init__(copy.place, copy.out, copy.dead, copy.apart)
        self.plants = tuple(plants)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Patch the worker."""
        super().__setstate__(state)
        if WAITS in self.plants:
            from pyspark_kafka.continuous.task import lane  # noqa: PLC0415 - in the worker

            lane._HELD_UP = 1_000_000

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copy one epoch of a lane."""
        for number, batch in enumerate(super().__call__(batches)):
            turned = SWAPS in self.plants and number % _EVERY == 0
            yield batch.take(pa.array(range(batch.num_rows))[::-1]) if turned else batch

    def _row(self, attempt: int, row: dict[str, Any]) -> dict[str, Any]:
        made = super()._row(attempt, row)
        return {**made, "topic": self.out} if KEEPS_POISON in self.plants else made


def patch_driver() -> None:
    """Let the runs of queries with `BEGINS_AGAIN` begin too early."""
    real = EpochCommits.resume

    def going_on(commits: EpochCommits) -> int:
        epoch = real(commits)
        if commits._files.location in _BEGINNING_AGAIN:
            topics = json.loads(commits.start)
            for ends in topics.values():
                ends.update({partition: max(0, end - _BEHIND) for partition, end in ends.items()})
            commits.start = json.dumps(topics)
        return epoch

    EpochCommits.resume = going_on  # type: ignore[assignment,method-assign]


# Checkpoints.
_BEGINNING_AGAIN: set[str] = set()


def plant(copy: FlowCopy, query: dict[str, Any]) -> tuple[FlowCopy, dict[str, str]]:
    """Return the function of a query with its bugs, and options of its writer."""
    if not query["plants"]:
        return copy, {}
    if BEGINS_AGAIN in query["plants"]:
        _BEGINNING_AGAIN.add(query["checkpoint"])
    return PlantedCopy(copy, query["plants"]), {"maxFailures": "0"} if GIVES_UP in query["plants"] else {}
