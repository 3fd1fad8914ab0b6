"""Records that say where they come from, and whether they arrived whole. Pure."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Hashable
from dataclasses import dataclass

from kit.log_checker import Copied, Log

_HASH_CHARACTERS = 16
# For Spark, behind a value: the number of the task that writes it, where tasks publish and keep an order each.
WITH_TASK = "concat(value, CAST('#' || spark_partition_id() AS BINARY)) AS value"


@dataclass(frozen=True)
class Stamped(Copied):
    """A record of an output; the task that has written it, if its value names the task."""

    task: str = ""

    @property
    def writer(self) -> Hashable:
        """The task; None if the records of all tasks keep one order."""
        return self.task or None


def to_value(log: Log, offset: int, rng: random.Random, max_padding: int = 64) -> bytes:
    """Return the value of a record: where it is written to, some padding, and a hash of both.

    The topic of its log is the name of the run, so that records of another run are none of ours.
    """
    padding = rng.randbytes(rng.randrange(max_padding)).hex()
    text = f"{log.topic}|{log.partition}|{offset}|{padding}"
    return f"{text}|{_hash(text)}".encode()


def from_value(value: bytes, out: int = 0) -> Stamped | None:
    """Read a value from a partition of the output; None if it is not one that `to_value` gave."""
    try:
        whole, mark, task = value.decode("ascii").partition("#")
        if mark and not task.isdigit():
            return None
        text, _, found = whole.rpartition("|")
        run, partition, offset, _ = text.split("|")
        return Stamped(Log(run, int(partition)), int(offset), out, task=task) if found == _hash(text) else None
    except ValueError:
        return None


def generate(run: str, ranges: dict[int, range], seed: int) -> dict[int, list[tuple[bytes, bytes]]]:
    """Return keys and values of a source: of each partition, those of a range of offsets.

    A key belongs to one source partition, so that records of one output partition have an order to keep.
    """
    made: dict[int, list[tuple[bytes, bytes]]] = {}
    for partition, offsets in ranges.items():
        rng = random.Random(f"{seed}-{partition}-{offsets.start}")
        made[partition] = [
            (f"{partition}-{rng.randrange(8)}".encode(), to_value(Log(run, partition), offset, rng))
            for offset in offsets
        ]
    return made


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARACTERS]
