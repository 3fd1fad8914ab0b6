"""How ranges with open ends are closed when their task starts."""

from __future__ import annotations

import pickle

import pytest

from kit.texts import said
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._connector.planning.open_ends import NO_END, OpenEnds, PlannedRange
from pyspark_kafka.errors import OptionError

TP = TopicPartition("t", 0)
BOTH = OpenEnds(0, NO_END)


def closed(open_ends: OpenEnds, planned: tuple[int, int], log: tuple[int, int]) -> tuple[int, int]:
    found = open_ends.close(OffsetRange(TP, *planned), *log)
    return found.start_offset, found.end_offset


@pytest.mark.parametrize(
    ("open_ends", "log", "expected"),
    [
        # Planned as [5, 10).
        (BOTH, (5, 10), (5, 10)),
        (BOTH, (7, 30), (7, 30)),
        (BOTH, (40, 50), (40, 50)),
        # The topic was recreated.
        (BOTH, (0, 3), (0, 3)),
        (OpenEnds(start_from=0), (7, 30), (7, 10)),
        (OpenEnds(start_from=0), (10, 30), (10, 10)),
        (OpenEnds(end_by=NO_END), (7, 30), (5, 30)),
        (OpenEnds(end_by=NO_END), (0, 5), (5, 5)),
        # As filters leave them.
        (OpenEnds(5, 20), (7, 30), (7, 20)),
        (OpenEnds(5, 20), (25, 30), (25, 25)),
        (OpenEnds(5, 20), (0, 3), (5, 5)),
        # As a split leaves them.
        (OpenEnds(start_from=0, strict=False), (12, 30), (12, 12)),
        (OpenEnds(end_by=NO_END, strict=False), (0, 3), (5, 5)),
    ],
)
def test_open_ends_are_where_the_log_has_them_now(
    open_ends: OpenEnds, log: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert closed(open_ends, (5, 10), log) == expected


@pytest.mark.parametrize(
    ("open_ends", "log", "crossed"),
    [
        (OpenEnds(start_from=0), (11, 30), "t-0 [11, 10)"),
        (OpenEnds(end_by=NO_END), (0, 4), "t-0 [5, 4)"),
        # A filter on top does not hide it.
        (OpenEnds(end_by=2), (0, 4), "t-0 [5, 4)"),
    ],
)
def test_an_end_of_an_option_that_the_log_has_passed_is_an_error(
    open_ends: OpenEnds, log: tuple[int, int], crossed: str
) -> None:
    with pytest.raises(OptionError) as caught:
        closed(open_ends, (5, 10), log)
    assert said(caught.value) == (
        f"[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] The start is after the end of {crossed}. Nothing was "
        "read. Hint: Check the starting and ending options, and whether the topic was recreated."
    )


def test_the_first_offset_is_asked_for_only_where_it_can_lie_below_the_planned_one() -> None:
    assert not BOTH.asks_first_offset(OffsetRange(TP, 0, 10))
    assert BOTH.asks_first_offset(OffsetRange(TP, 1, 10))
    assert not OpenEnds(5, NO_END).asks_first_offset(OffsetRange(TP, 5, 10))
    assert not OpenEnds(end_by=NO_END).asks_first_offset(OffsetRange(TP, 1, 10))
    # Or where it can lie behind an end that an option fixed.
    assert OpenEnds(start_from=0).asks_first_offset(OffsetRange(TP, 0, 10))
    assert not OpenEnds(start_from=0, strict=False).asks_first_offset(OffsetRange(TP, 0, 10))
    assert BOTH.close(OffsetRange(TP, 0, 10), None, 30) == OffsetRange(TP, 0, 30)


def test_a_range_travels_as_plain_data() -> None:
    planned = PlannedRange(OffsetRange(TP, 0, 10), OpenEnds(5, 20, strict=False))
    assert pickle.loads(pickle.dumps(planned)) == planned  # noqa: S301 - our own bytes
