"""What each filter means, with the three truth values of SQL."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from pyspark_kafka.connector.filters import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

N, S = ("n",), ("s",)
ROW = {"n": 5, "s": "abc", "none": None, "nested": {"inner": 1, "none": None}}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (EqualTo(N, 5), True),
        (EqualTo(N, 6), False),
        (EqualTo(N, None), None),
        (EqualTo(("none",), 5), None),
        (EqualTo(("nested", "inner"), 1), True),
        (EqualTo(("none", "inner"), 1), None),
        (EqualNullSafe(N, 5), True),
        (EqualNullSafe(N, 6), False),
        (EqualNullSafe(N, None), False),
        (EqualNullSafe(("none",), None), True),
        (EqualNullSafe(("none",), 5), False),
        (GreaterThan(N, 5), False),
        (GreaterThan(N, 4), True),
        (GreaterThanOrEqual(N, 5), True),
        (GreaterThanOrEqual(N, 6), False),
        (LessThan(N, 5), False),
        (LessThan(N, 6), True),
        (LessThanOrEqual(N, 5), True),
        (LessThanOrEqual(N, 4), False),
        (LessThanOrEqual(N, None), None),
        (In(N, (4, 5)), True),
        (In(N, (4,)), False),
        (In(N, (4, None)), None),
        (In(N, (5, None)), True),
        (In(("none",), (4,)), None),
        (IsNull(N), False),
        (IsNull(("nested", "none")), True),
        (IsNotNull(N), True),
        (IsNotNull(("none",)), False),
        (StringStartsWith(S, "ab"), True),
        (StringStartsWith(S, "bc"), False),
        (StringEndsWith(S, "bc"), True),
        (StringEndsWith(S, "ab"), False),
        (StringContains(S, "b"), True),
        (StringContains(S, "x"), False),
        (Not(EqualTo(N, 5)), False),
        (Not(EqualTo(N, 6)), True),
        (Not(EqualTo(N, None)), None),
        (Not(Not(EqualTo(N, 5))), True),
    ],
    ids=repr,
)
def test_filter_is_true_false_or_neither_of_a_row(wanted: Filter, expected: Any) -> None:
    assert wanted.evaluate(ROW) is expected


def test_filters_are_values_that_pickle() -> None:
    wanted = Not(In(N, (1, "x", None)))
    again = pickle.loads(pickle.dumps(wanted))  # noqa: S301 - our own bytes
    assert again == wanted
    assert hash(again) == hash(wanted)
    others: list[Filter] = [EqualNullSafe(N, 1), EqualTo(N, 2), EqualTo(S, 1)]
    assert EqualTo(N, 1) not in others
