"""What the values of a batch may become: one bound for all formats, kept before anything is allocated.

Few bytes may have many items, of many columns each. Each value has a share by its bytes; only what it needs beyond that
is taken from what all values of a batch have together. So a value within its share is spoiled by none beside it.
"""

from __future__ import annotations

# Cells of the items of lists and maps; the columns of a value itself are not counted, as they are those of every row.
CELLS_PER_BYTE = 16
FREE_CELLS = 4_000_000
TOO_MANY_CELLS = (
    f"its items have more cells than {CELLS_PER_BYTE} for each of its bytes, and the {FREE_CELLS:,} more that all "
    "values of a batch may have together"
)
# Bytes that compressed values become.
INFLATED_PER_BYTE = 16
FREE_INFLATED = 64 << 20


class SizeBudget:
    """What the values of one batch may become beyond the share of their own bytes.

    Attributes:
        per_byte: the share of each byte of a value.
        free: what is left beyond the shares.
    """

    def __init__(self, per_byte: int, free: int) -> None:
        """Begin a batch."""
        self.per_byte = per_byte
        self.free = free

    def take(self, count: int, size: int) -> bool:
        """Return whether a value of some bytes may become this much, and take that from what is left."""
        surplus = max(0, count - self.per_byte * size)
        if surplus > self.free:
            return False
        self.free -= surplus
        return True


def cell_budget() -> SizeBudget:
    """Return the cells of one batch."""
    return SizeBudget(CELLS_PER_BYTE, FREE_CELLS)
