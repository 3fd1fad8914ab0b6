"""What one turn of a continuous read and write costs, in calls: whole numbers, the same on each machine."""

from __future__ import annotations

import pytest

from kit.cycle import Shape, count_turn
from pyspark_kafka.records import codec_info

# Python calls, sends, Produce requests. A change that costs less puts its lower numbers here.
MAX_COUNTS = {
    Shape(2, 10): (748, 2, 1),
    Shape(20, 10): (4258, 2, 1),
    Shape(2, 100, record_batches=20): (786, 2, 1),
    Shape(2, 10, sides="reader"): (357, 1, 0),
    Shape(2, 10, sides="writer"): (578, 2, 2),
}
# Releases of Python and of kafka-python differ by a few calls.
_ROOM = 1.05


@pytest.mark.parametrize("shape", MAX_COUNTS, ids=str)
def test_turn_costs_no_more_calls_than_before(shape: Shape) -> None:
    if not codec_info().compiled:
        pytest.skip("the calls inside of an uncompiled codec would count")
    calls, sends, writes = MAX_COUNTS[shape]

    turn = count_turn(shape, turns=10)

    assert turn.python_calls <= calls * _ROOM, turn.by_module.most_common(12)
    assert (turn.sends, turn.requests.get("ProduceRequest", 0)) == (sends, writes)
    assert turn.requests.get("FetchRequest", 0) == (shape.sides != "writer")
