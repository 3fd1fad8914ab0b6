"""Reads of a whole range with one damaged bit that no checksum covers: the right rows, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuzzing.draw import Draw
from fuzzing.oracles import outcome_of, require
from kit.fakes.damaged_cluster import DamagedCluster
from kit.fakes.logs import Batch, record_batch
from pyspark_kafka._client.client.fetch.response import NEWEST_VERSION, OLDEST_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.records._variant import Kernel

_BATCHES, _MOST_RECORDS = 6, 12


def damaged_fetch(data: bytes, variants: Sequence[Kernel]) -> None:  # noqa: ARG001 - every target is called alike
    """A version, a log with gaps, a range, and the place of the bit in one of the responses."""
    draw = Draw(data)
    version = OLDEST_VERSION + draw.number(1) % (NEWEST_VERSION - OLDEST_VERSION + 1)
    base = draw.number(4)
    batches: list[Batch] = []
    for _ in range(_BATCHES):
        count = 1 + draw.number(1) % _MOST_RECORDS
        batches.append((base, base + count, record_batch(base, [b"%d" % (base + each) for each in range(count)])))
        # Mostly the next batch follows.
        base += count + max(0, draw.number(1) - 200)
    first, last = batches[0][0], batches[-1][1]
    start = first + draw.number(2) % (last - first)
    end = start + 1 + draw.number(2) % (last - start)
    cluster = DamagedCluster(version, batches, 1 + draw.number(1) % 4, draw.number(1))
    cluster.response, cluster.bit = draw.number(1) % 8, draw.number(2)
    found = outcome_of(lambda: cluster.values(start, end)).value
    # Of a range inside of one batch no other batch is read that its base offset could be compared with.
    inside = any(low < start < stop for low, stop, _ in batches) and end - start <= _MOST_RECORDS
    if found is not None and not inside:
        written = [each for low, stop, _ in batches for each in range(low, stop) if start <= each < end]
        require(found == written, f"{len(found)} rows of {len(written)}: {found[:20]}, expected {written[:20]}")
