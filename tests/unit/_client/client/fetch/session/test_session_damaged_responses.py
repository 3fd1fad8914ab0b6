"""One damaged bit of a Fetch response that no checksum covers: right rows or an error, never fewer rows silently."""

from __future__ import annotations

import pytest

from kit.fakes.damaged_cluster import DamagedCluster
from kit.fakes.logs import batches_of
from pyspark_kafka.errors import ConnectorError

EXPECTED = [*range(60)]


@pytest.mark.parametrize("version", [4, 11, 12, 18])
@pytest.mark.parametrize("part", range(4))
def test_bit_that_flips_outside_of_checksums_loses_no_row_silently(version: int, part: int) -> None:
    whole = DamagedCluster(version, batches_of(6), 3)
    assert whole.values(0, 60) == EXPECTED
    assert whole.bits > 800
    wrong = {}
    for bit in range(part, whole.bits, 4):
        cluster = DamagedCluster(version, batches_of(6), 3)
        cluster.bit = bit
        try:
            found = cluster.values(0, 60)
        except ConnectorError:
            continue
        if found != EXPECTED:
            wrong[bit] = found
    assert wrong == {}
