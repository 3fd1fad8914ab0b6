"""Hadoop's checksums of local files, `.name.crc` next to `name`: read and compared. Pure.

Source: Hadoop `ChecksumFileSystem`, `DataChecksum` (CRC32 of each chunk, of 512 bytes by default).
"""

from __future__ import annotations

import struct
import zlib

_MAGIC = b"crc\0"
_SUM = struct.Struct(">I")


def compare_checksum(data: bytes, checksum: bytes) -> str:
    r"""Return the difference between a file and its checksum; empty if they match.

    Args:
        data: the content of the file.
        checksum: the content of the checksum's file.

    Example:
        >>> compare_checksum(b"", b"crc\\0\\0\\0\\2\\0")
        ''
    """
    if len(checksum) < 8 or not checksum.startswith(_MAGIC):
        return "the checksum is not a checksum of Hadoop"
    (size,) = _SUM.unpack_from(checksum, 4)
    if size <= 0:
        return "the checksum is not a checksum of Hadoop"
    chunks = (len(data) + size - 1) // size
    expected = 8 + chunks * _SUM.size
    if len(checksum) != expected:
        return f"the checksum has {len(checksum)} bytes, and this file's would have {expected}"
    view = memoryview(data)
    for chunk in range(chunks):
        (kept,) = _SUM.unpack_from(checksum, 8 + chunk * _SUM.size)
        found = zlib.crc32(view[chunk * size : (chunk + 1) * size])
        if found != kept:
            return f"the checksum of its bytes from {chunk * size} is {found:08x}, and {kept:08x} was noted"
    return ""
