"""Zig-zag varints, as Avro writes all its numbers and Confluent the indexes of messages. Pure.

For single numbers: the kernel of Avro has its own loop.
"""

from __future__ import annotations


def put_zigzag(value: int, out: bytearray) -> None:
    """Append a number of at most 64 bits with a sign.

    Example:
        >>> out = bytearray()
        >>> put_zigzag(-65, out)
        >>> out.hex()
        '8101'
    """
    raw = ((value << 1) ^ (value >> 63)) & ((1 << 64) - 1)
    while raw >= 0x80:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)


def read_zigzag(data: bytes, at: int, max_bytes: int = 10) -> tuple[int, int] | None:
    r"""Return a number and where it ends; None if it ends too early, or has more bytes than `max_bytes`.

    Example:
        >>> read_zigzag(b"\x81\x01", 0), read_zigzag(b"\x81", 0)
        ((-65, 2), None)
    """
    raw = 0
    for count, byte in enumerate(data[at : at + max_bytes]):
        raw |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at + count + 1
    return None
