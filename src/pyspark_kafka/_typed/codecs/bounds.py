"""The maximum size of decoded values of a batch: one bound for all formats, checked before memory is allocated.

A few bytes may have many items, of many columns each. Each value has a share by its bytes; only its excess
is taken from a common allowance of the batch. So other values do not affect a value within its share.
"""

from __future__ import annotations

# Cells of items in lists and maps; the columns of a value itself are not counted, because every row has them.
CELLS_PER_BYTE = 16
FREE_CELLS = 4_000_000
TOO_MANY_CELLS = (
    f"its items have more cells than {CELLS_PER_BYTE} for each of its bytes, and the {FREE_CELLS:,} more that all "
    "values of a batch may have together"
)
# The decompressed bytes of values.
INFLATED_PER_BYTE = 16
FREE_INFLATED = 64 << 20


class SizeBudget:
    """The allowance of one batch's values, in addition to the share of their own bytes.

    Attributes:
        per_byte: the share for each byte.
        free: the rest of the common allowance.
    """

    def __init__(self, per_byte: int, free: int) -> None:
        """Begin a batch."""
        self.per_byte = per_byte
        self.free = free

    def take_excess(self, count: int, size: int) -> bool:
        """Return whether a value of some bytes may have this size, and take its excess from the allowance."""
        surplus = max(0, count - self.per_byte * size)
        if surplus > self.free:
            return False
        self.free -= surplus
        return True


def cell_budget() -> SizeBudget:
    """Return the cells of one batch."""
    return SizeBudget(CELLS_PER_BYTE, FREE_CELLS)
