"""What one turn of a continuous read and write costs, in calls: whole numbers, the same on each machine."""

from __future__ import annotations

import pytest

from kit.cycle import Shape, count_turn
from kit.spans import KeptTracer
from pyspark_kafka._base.traces.steps import inside
from pyspark_kafka.records import codec_info

# Python calls, sends, receives, Produce requests, allocations of Arrow. A change that costs less puts its lower numbers
# here. They do not depend on the number of records and of record batches, as long as these are not compressed.
MAX_COUNTS = {
    Shape(2, 10, 1, "both"): (298, 2, 4, 1, 21),
    Shape(2, 10, 1, "reader"): (188, 1, 2, 0, 14),
    Shape(2, 10, 1, "writer"): (150, 2, 4, 2, 2),
    Shape(1, 1, 1, "both"): (208, 2, 4, 1, 8),
    Shape(1, 1, 1, "reader"): (130, 1, 2, 0, 7),
    Shape(1, 1, 1, "writer"): (76, 1, 2, 1, 1),
    Shape(1, 100, 1, "both"): (208, 2, 4, 1, 8),
    Shape(1, 100, 1, "reader"): (130, 1, 2, 0, 7),
    Shape(1, 100, 1, "writer"): (76, 1, 2, 1, 1),
    Shape(1, 100, 20, "both"): (208, 2, 4, 1, 8),
    Shape(1, 100, 20, "reader"): (130, 1, 2, 0, 7),
    Shape(1, 100, 20, "writer"): (76, 1, 2, 1, 1),
    Shape(2, 1, 1, "both"): (298, 2, 4, 1, 21),
    Shape(2, 1, 1, "reader"): (188, 1, 2, 0, 14),
    Shape(2, 1, 1, "writer"): (150, 2, 4, 2, 2),
    Shape(2, 100, 1, "both"): (298, 2, 4, 1, 21),
    Shape(2, 100, 1, "reader"): (188, 1, 2, 0, 14),
    Shape(2, 100, 1, "writer"): (150, 2, 4, 2, 2),
    Shape(2, 100, 20, "both"): (298, 2, 4, 1, 21),
    Shape(2, 100, 20, "reader"): (188, 1, 2, 0, 14),
    Shape(2, 100, 20, "writer"): (150, 2, 4, 2, 2),
    Shape(20, 1, 1, "both"): (1864, 2, 4, 1, 147),
    Shape(20, 1, 1, "reader"): (1232, 1, 2, 0, 140),
    Shape(20, 1, 1, "writer"): (1500, 20, 40, 20, 20),
    Shape(20, 100, 1, "both"): (1868, 2, 4, 1, 147),
    Shape(20, 100, 1, "reader"): (1233, 1, 2, 0, 140),
    Shape(20, 100, 1, "writer"): (1500, 20, 40, 20, 20),
    Shape(20, 100, 20, "both"): (1868, 2, 4, 1, 147),
    Shape(20, 100, 20, "reader"): (1233, 1, 2, 0, 140),
    Shape(20, 100, 20, "writer"): (1500, 20, 40, 20, 20),
}
# Releases of Python and of kafka-python differ by a few calls.
_ROOM = 1.05


@pytest.mark.parametrize("shape", MAX_COUNTS, ids=str)
def test_turn_costs_no_more_calls_than_before(shape: Shape) -> None:
    if not codec_info().compiled:
        pytest.skip("the calls inside of an uncompiled codec would count")
    calls, sends, receives, writes, allocations = MAX_COUNTS[shape]

    turn = count_turn(shape, turns=3)

    assert turn.python_calls <= calls * _ROOM, turn.by_module.most_common(12)
    assert (turn.sends, turn.receives, turn.requests.get("ProduceRequest", 0)) == (sends, receives, writes)
    assert turn.requests.get("FetchRequest", 0) == (shape.sides != "writer")
    assert turn.arrow_allocations <= allocations * _ROOM


@pytest.mark.parametrize("partitions", [2, 20])
def test_turn_with_spans_costs_at_most_three_percent_more_calls(partitions: int) -> None:
    if not codec_info().compiled:
        pytest.skip("the calls inside of an uncompiled codec would count")
    without = count_turn(Shape(partitions, traces="off"), turns=3)
    with inside(KeptTracer().start("process")):
        found = count_turn(Shape(partitions, traces="link"), turns=3)
    assert found.python_calls <= 1.03 * without.python_calls, found.by_module.most_common(12)
    assert found.arrow_allocations <= without.arrow_allocations
