"""Figures for people: bytes in binary units, bars. Pure. Layer: cli."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_EIGHTHS = " ▏▎▍▌▋▊▉"


def bytes_text(count: int) -> str:
    """Return a number of bytes in the largest unit of which there is one, with three digits or more.

    Example:
        >>> bytes_text(512), bytes_text(1536), bytes_text(5_000_000_000)
        ('512 B', '1.50 KiB', '4.66 GiB')
    """
    if count < 1024:
        return f"{count} B"
    amount = float(count)
    unit = "B"
    for unit in _UNITS:  # noqa: B007 - the last one is used
        amount /= 1024
        # What would be rounded to 1024 belongs to the next unit.
        if amount < 1023.5:
            break
    digits = 2 if amount < 9.995 else 1 if amount < 99.95 else 0
    return f"{amount:.{digits}f} {unit}"


def bar_text(part: int, whole: int, width: int, *, ascii_only: bool = False) -> str:
    """Return a bar of at most `width` characters, as long as `part` is of `whole`; empty for nothing.

    Example:
        >>> bar_text(3, 4, 8, ascii_only=True)
        '######'
    """
    if part <= 0 or whole <= 0:
        return ""
    eighths = max(1, min(8 * width, round(8 * width * part / whole)))
    if ascii_only:
        return "#" * max(1, round(eighths / 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
