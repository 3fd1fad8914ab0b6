"""Numbers and time spans as texts for people. Pure."""

from __future__ import annotations

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def span_text(ms: float) -> str:
    """Return a time span: below a minute in one unit, above it in the two largest, rounded down.

    Example:
        >>> span_text(7_384_000), span_text(60_000), span_text(2_350), span_text(250)
        ('2 h 3 m', '1 m', '2.3 s', '250 ms')
    """
    whole = int(ms)
    if not whole:
        return "0 s"
    if whole < 1_000:
        return f"{whole} ms"
    if whole < 60_000:
        return f"{whole // 100 / 10:g} s"
    first = next(index for index, (_, size) in enumerate(_UNITS) if whole >= size)
    parts = []
    for unit, size in _UNITS[first : first + 2]:
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    Example:
        >>> counted(1, "batch", "batches"), counted(1_200, "partition")
        ('1 batch', '1,200 partitions')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
