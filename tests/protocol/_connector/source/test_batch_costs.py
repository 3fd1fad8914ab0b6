"""What one micro-batch costs in calls: whole numbers, the same on each machine."""

from __future__ import annotations

import pytest

from kit.batch_costs import LATEST, PLAN, READ, WRITE, count_batch
from pyspark_kafka.records import codec_info

# Python calls of each step by the number of partitions. A change that costs less puts its lower numbers here.
# A write waits once for its responses; it costs 22 calls less if the broker was quicker, as it is on a busy machine.
MAX_COUNTS = {
    1: {LATEST: 496, PLAN: 66, READ: 275, WRITE: 313},
    4: {LATEST: 559, PLAN: 93, READ: 275, WRITE: 316},
    20: {LATEST: 895, PLAN: 237, READ: 275, WRITE: 332},
}
# System calls of each step, whatever the number of partitions: one request to each broker for one question.
SENDS = {LATEST: 2, PLAN: 0, READ: 1, WRITE: 1}
# Releases of Python and of kafka-python differ by a few calls.
_ROOM = 1.06


@pytest.mark.parametrize("partitions", MAX_COUNTS)
def test_micro_batch_costs_no_more_calls_than_before(partitions: int) -> None:
    if not codec_info().compiled:
        pytest.skip("the calls inside of an uncompiled codec would count")

    counted = count_batch(partitions, batches=5)

    for step, calls in MAX_COUNTS[partitions].items():
        assert counted[step].sends == SENDS[step]
        assert counted[step].python_calls <= calls * _ROOM, (step, counted[step].by_module.most_common(12))
