"""CRC-32C of record batches, in hardware where the machine has it."""

from __future__ import annotations

from crc32c import crc32c

from pyspark_kafka.records import _variant

__all__ = ["crc32c", "replace_prefix"]


def replace_prefix(crc: int, old_prefix: bytes, new_prefix: bytes, rest_length: int) -> int:
    """Return the CRC-32C of a buffer after its first bytes were replaced, without reading the `rest_length` others.

    A CRC is linear: two messages of one length differ in their CRC by what the difference of their prefixes becomes
    when `rest_length` zero bytes follow it.
    """
    difference = crc32c(old_prefix) ^ crc32c(new_prefix)
    return crc ^ int(_variant.kernel.writing.shift_crc(difference, rest_length))
