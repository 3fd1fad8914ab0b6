"""Records that say where they come from, and whether they arrived whole. Pure."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

_HASH_CHARACTERS = 16


@dataclass(frozen=True, order=True)
class Stamp:
    """Which record it is.

    Attributes:
        run: of which generator; records of another run are none of ours.
        partition: the source partition.
        sequence: its number there, which is also its offset: nothing else is written to the topic.
    """

    run: str
    partition: int
    sequence: int


def to_value(stamp: Stamp, rng: random.Random, max_padding: int = 64) -> bytes:
    """Return the value of a record: its stamp, some padding, and a hash of both."""
    padding = rng.randbytes(rng.randrange(max_padding)).hex()
    text = f"{stamp.run}|{stamp.partition}|{stamp.sequence}|{padding}"
    return f"{text}|{_hash(text)}".encode()


def from_value(value: bytes) -> Stamp | None:
    """Read a value; None if it is not one that `to_value` gave."""
    try:
        text, _, found = value.decode("ascii").rpartition("|")
        run, partition, sequence, _ = text.split("|")
        return Stamp(run, int(partition), int(sequence)) if found == _hash(text) else None
    except ValueError:
        return None


def generate(run: str, counts: dict[int, range], seed: int) -> dict[int, list[tuple[bytes, bytes]]]:
    """Return keys and values of a source: of each partition, those of a range of sequences.

    A key belongs to one source partition, so that records of one output partition have an order to keep.
    """
    made: dict[int, list[tuple[bytes, bytes]]] = {}
    for partition, sequences in counts.items():
        rng = random.Random(f"{seed}-{partition}-{sequences.start}")
        made[partition] = [
            (f"{partition}-{rng.randrange(8)}".encode(), to_value(Stamp(run, partition, sequence), rng))
            for sequence in sequences
        ]
    return made


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARACTERS]
