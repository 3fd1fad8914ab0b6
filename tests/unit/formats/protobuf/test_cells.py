"""How many cells values may become."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyspark_kafka.formats.protobuf.cells import CELLS_PER_BYTE, FREE_CELLS, find_too_many


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([(FREE_CELLS, 0)], []),
        ([(FREE_CELLS + 1, 0)], [0]),
        # Each byte allows some.
        ([(FREE_CELLS + 1, 1), (CELLS_PER_BYTE * 10**9, 10**9)], []),
        # Bytes of one value allow no cells of another.
        ([(0, 10**9), (FREE_CELLS + 1, 0)], [1]),
        # The one with the highest surplus is out, wherever it stands.
        ([(FREE_CELLS, 0), (3, 0), (4, 0)], [0]),
        ([(3, 0), (4, 0), (FREE_CELLS, 0)], [2]),
        ([(FREE_CELLS // 2, 0)] * 4, [2, 3]),
    ],
)
def test_values_with_the_most_cells_are_too_many(given: Any, expected: list[int]) -> None:
    cells, sizes = np.array(given, np.int64).reshape(-1, 2).T
    assert find_too_many(cells, sizes) == expected
