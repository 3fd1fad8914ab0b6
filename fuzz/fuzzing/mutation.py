"""Mutations that know nothing of the format: bits, bytes, integers at their borders, pieces moved about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

BORDERS = (0, 1, 2, 6, 7, 63, 64, 127, 128, 255, 256, 8191, 8192, 32767, 32768, 65535, 2**31 - 1, 2**31, 2**32 - 1)
LONG_BORDERS = (*BORDERS, 2**53, 9_223_372_036_854_775, 2**62, 2**63 - 1)


def border(random: Random, *, long: bool = True) -> int:
    """Return an integer near a border, of either sign."""
    value = random.choice(LONG_BORDERS if long else BORDERS) + random.choice((-1, 0, 0, 0, 1))
    return -value if random.random() < 0.3 else value


def fitted(value: int, size: int) -> bytes:
    """Return the low `size` bytes of an integer, big-endian."""
    return (value & (1 << 8 * size) - 1).to_bytes(size, "big")


def mutate_bytes(data: bytes, other: bytes, random: Random) -> bytes:
    """Make one to four changes; `other` is what pieces are taken from."""
    for _ in range(random.choice((1, 1, 2, 4))):
        data = _change(data, other, random)
    return data


def _change(data: bytes, other: bytes, random: Random) -> bytes:
    size = len(data)
    at = random.randrange(size + 1)
    length = min(random.choice((1, 1, 2, 4, 8, 16, 64)), size - at)
    match random.randrange(8):
        case 0 if at < size:
            return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
        case 1 if at < size:
            return data[:at] + bytes([random.choice((0, 1, 127, 128, 255, random.randrange(256)))]) + data[at + 1 :]
        case 2:
            width = random.choice((1, 2, 4, 8))
            written = fitted(border(random), width)
            return data[:at] + (written if random.random() < 0.5 else written[::-1]) + data[at + width :]
        case 3:
            return data[:at] + data[at + length :]
        case 4:
            return data[:at] + random.randbytes(max(length, 1)) + data[at:]
        case 5:
            return data[: at + length] + data[at : at + length] * random.choice((1, 1, 2, 50)) + data[at + length :]
        case 6 if other:
            begin = random.randrange(len(other))
            return data[:at] + other[begin : begin + random.choice((4, 16, 64, len(other)))] + data[at + length :]
        case _:
            return data[:at]
