"""How many cells values may become: few bytes can have many, and memory is bounded for any bytes. Pure. Layer: formats.

A cell is one column of one item of a list or map. The columns of a value itself are none: their number is the schema's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Of each byte, and of an array of values besides.
CELLS_PER_BYTE = 16
FREE_CELLS = 4_000_000


def find_too_many(cells: Any, sizes: Any) -> list[int]:
    """Return the rows that have too many cells, in order.

    Together the others have at most 16 cells for each byte, and 4 million. A value that has more alone is always among
    them; if several have more together, those with the highest surplus are.

    Args:
        cells: of the items of each value, 64-bit.
        sizes: the bytes of each value, 64-bit; 0 where there is none.
    """
    surplus = np.maximum(cells - CELLS_PER_BYTE * sizes, 0)
    if surplus.sum() <= FREE_CELLS:
        return []
    # Of equal ones the first remain.
    order = np.argsort(surplus, kind="stable")
    kept = int(np.searchsorted(np.cumsum(surplus[order]), FREE_CELLS, side="right"))
    return sorted(order[kept:].tolist())
