"""The message index of a value, which serializers of Confluent, Apicurio and AWS Glue put before it.

Pure.
"""

from __future__ import annotations

import re

from pyspark_kafka._typed.codecs.zigzag import put_zigzag, read_zigzag

_MAX_LEVELS = 16
_REFERENCE = re.compile(rb"[\x03-\x7f]\x0a[\x01-\x7d][A-Za-z_][A-Za-z0-9_]{0,124}")
# Of a 32-bit number.
_MAX_BYTES = 5
_UNSIGNED = (
    "varints without zig-zag, as confluent-kafka for Python writes them up to version 1.7, and later with its setting "
    "use.deprecated.format; indexes are read with zig-zag, as all other serializers write them"
)


class MessageIndexError(ValueError):
    """The indexes before a value are not valid; its text is the end of a sentence."""


class UnsignedIndexError(MessageIndexError):
    """They are in a form that former serializers wrote."""


def read_message_index(value: bytes, start: int) -> tuple[tuple[int, ...], int]:
    r"""Return the path to the message, and where the value begins.

    A path has the index of a message in its file, then of a message nested in it, and so on. The usual `(0,)` is
    written as one zero.

    Raises:
        UnsignedIndexError: they are negative, as those without zig-zag are.
        MessageIndexError: they end early, or have more than 16 levels.

    Source: Confluent's wire format, "Protobuf message indexes": a count and indexes as zig-zag varints.

    Example:
        >>> read_message_index(b"\x00\x08\x01", 0)
        ((0,), 1)
        >>> read_message_index(b"\x04\x02\x00\x08", 0)
        ((1, 0), 3)
    """
    count, at = _read_index(value, start)
    if count == 0:
        return (0,), at
    if -_MAX_LEVELS <= 2 * count < 0 and not _begins_a_name(value, start):
        # An odd number of levels, which zig-zag has for negative ones.
        raise UnsignedIndexError(f"the indexes of its message are {_UNSIGNED}")
    if not 0 < count <= _MAX_LEVELS:
        raise MessageIndexError(f"it names a message of {count} levels")
    path = []
    for _ in range(count):
        index, at = _read_index(value, at)
        if index < 0:
            if count == 1:
                # Two levels, of which the first is odd.
                raise UnsignedIndexError(f"the indexes of its message are {_UNSIGNED}")
            raise MessageIndexError("it names a message by a negative index")
        path.append(index)
    return tuple(path), at


def write_message_index(path: tuple[int, ...]) -> bytes:
    r"""Return the indexes of a path.

    Example:
        >>> write_message_index((0,)), write_message_index((1, 0))
        (b'\x00', b'\x04\x02\x00')
    """
    if path == (0,):
        return b"\x00"
    out = bytearray()
    for number in (len(path), *path):
        put_zigzag(number, out)
    return bytes(out)


def read_message_name(value: bytes, start: int) -> tuple[str, int] | None:
    r"""Return the name of the message, without its package, and where the value begins; None if there is no name.

    Read as indexes, such bytes are not valid, or name a nested message.

    Source: Apicurio's `ProtobufSerializer`: a message `Ref` with the name as field 1, after its length as a varint.

    Example:
        >>> read_message_name(b"\x07\x0a\x05Order\x08\x01", 0)
        ('Order', 8)
    """
    # Names of 126 bytes and more are left to the indexes, which they are not.
    found = _REFERENCE.match(value, start)
    if found is None:
        return None
    size, length = value[start], value[start + 2]
    end = start + 3 + length
    if size != length + 2 or end > found.end():
        return None
    return value[start + 3 : end].decode("ascii"), end


def read_glue_index(value: bytes, start: int) -> tuple[int, int]:
    """Return the place of the message, as `descriptors.sorted_messages` has them, and where the value begins.

    Raises:
        MessageIndexError: it ends early, or has more than 5 bytes.

    Source: the AWS Glue Schema Registry library, `ProtobufWireFormatEncoder`: a varint without a sign.
    """
    raw = 0
    for count, byte in enumerate(value[start : start + _MAX_BYTES]):
        raw |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return raw, start + count + 1
    raise MessageIndexError("it ends before its message, or the index of its message is too long")


def write_glue_index(place: int) -> bytes:
    """Return the place of a message, as `read_glue_index` reads it."""
    out = bytearray()
    while place >= 0x80:
        out.append((place & 0x7F) | 0x80)
        place >>= 7
    out.append(place)
    return bytes(out)


def _begins_a_name(value: bytes, start: int) -> bool:
    """Return whether bytes begin as a name does, which may be cut short."""
    return value[start + 1 : start + 3] == bytes((0x0A, value[start] - 2 & 0x7F))


def _read_index(value: bytes, at: int) -> tuple[int, int]:
    found = read_zigzag(value, at, _MAX_BYTES)
    if found is None:
        short = len(value) - at < _MAX_BYTES
        raise MessageIndexError(
            "it ends before its message" if short else f"the index of its message has more than {_MAX_BYTES} bytes"
        )
    return found
