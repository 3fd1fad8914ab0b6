"""Frames of the Kafka protocol as bytes: sizes, response headers, tagged fields. Pure: no socket, no clock."""

from __future__ import annotations

import struct

from pyspark_kafka.errors import ProtocolError

# A larger frame is not a response of a Kafka broker: brokers bound requests at 100 MiB, and a response to a fetch
# exceeds the limit of the request by one record batch at most.
FRAME_LIMIT_BYTES = 256 << 20
# Of responses that become objects, which take up to twelve times the memory of their bytes: all without record batches.
# Metadata of 400,000 partitions with three replicas have 30 MiB.
DECODED_LIMIT_BYTES = 64 << 20
# Correlation id.
HEADER_BYTES = 4

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_TLS_ALERT_OR_HANDSHAKE = (b"\x15\x03", b"\x16\x03")


def frame_size_invalid(prefix: bytes, limit: int, address: str) -> ProtocolError:
    """Build the error of four bytes before a frame that are no size; for the classic confusions it has a guess."""
    (size,) = _INT32.unpack(prefix)
    hint = "Check kafka.bootstrap.servers: the server is perhaps not a Kafka broker."
    guess = ""
    if prefix[:2] in _TLS_ALERT_OR_HANDSHAKE:
        guess = " These bytes begin a TLS record: this is probably a TLS listener."
        hint = "Set kafka.security.protocol to SSL or SASL_SSL."
    elif prefix == b"HTTP":
        guess = " These bytes are an HTTP response: this is probably a web server."
    elif size > 0:
        hint = "Lower kafka.fetch.max.bytes, if responses may be so large."
    return ProtocolError(
        f"{address} announced a frame of {size} bytes (first bytes {prefix.hex(' ')}); "
        f"allowed are {HEADER_BYTES} to {limit}.{guess} The connection was closed.",
        condition="FRAME_SIZE_INVALID",
        hint=hint,
        parameters={"broker": address, "size": size},
    )


def read_unsigned_varint(data: memoryview, position: int) -> tuple[int, int]:
    """Read an unsigned variable-length integer of at most 32 bits; return it and the position after it.

    Raises:
        IndexError: the bytes end before it does.
        ValueError: it has more than 32 bits.
    """
    value = data[position]
    if value < 0x80:
        return value, position + 1
    value = 0
    for shift in range(0, 35, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 1 << 32:
                break
            return value, position
    raise ValueError("a variable-length integer is longer than 32 bits")


def read_length(body: memoryview, at: int, fixed: struct.Struct = _INT32, *, flexible: bool) -> tuple[int, int]:
    """Read a length or a count, -1 for null; return it and the position after it.

    Raises:
        struct.error, IndexError, ValueError: the bytes end before it does, or it is no length.
    """
    if flexible:
        value = body[at]
        if value < 0x80:
            return value - 1, at + 1
        value, at = read_unsigned_varint(body, at)
        return value - 1, at
    (value,) = fixed.unpack_from(body, at)
    if value < -1:
        raise ValueError(f"a length of {value}")
    return value, at + fixed.size


def read_text(body: memoryview, at: int, *, flexible: bool) -> tuple[str | None, int]:
    """Read a text, None for null; return it and the position after it.

    Raises:
        struct.error, IndexError, ValueError: the bytes end before it does, or are no text.
    """
    length, at = read_length(body, at, _INT16, flexible=flexible)
    if length < 0:
        return None, at
    if length > len(body) - at:
        raise ValueError(f"a text of {length} bytes, with {len(body) - at} left")
    return str(body[at : at + length], "utf-8"), at + length


def skip_tagged_fields(data: memoryview, position: int) -> int:
    """Return the position after a block of tagged fields.

    Raises:
        IndexError: the bytes end before it does.
        ValueError: a length does not fit.
    """
    count, position = read_unsigned_varint(data, position)
    for _ in range(count):
        _, position = read_unsigned_varint(data, position)
        size, position = read_unsigned_varint(data, position)
        if size > len(data) - position:
            raise ValueError(f"a tagged field of {size} bytes, with {len(data) - position} left")
        position += size
    return position


def parse_response_header(frame: memoryview, *, flexible: bool, address: str) -> tuple[int, int]:
    """Return the correlation id of a frame and where its body begins.

    Raises:
        ProtocolError: the header is cut off or malformed.
    """
    (correlation_id,) = _INT32.unpack_from(frame, 0)
    if not flexible:
        return correlation_id, HEADER_BYTES
    if len(frame) > HEADER_BYTES and frame[HEADER_BYTES] == 0:
        return correlation_id, HEADER_BYTES + 1  # no tagged fields, as is usual
    try:
        return correlation_id, skip_tagged_fields(frame, HEADER_BYTES)
    except (IndexError, ValueError) as error:
        raise ProtocolError(
            f"The header of a response of {address} is malformed: {error}.",
            condition="RESPONSE_HEADER_INVALID",
            parameters={"broker": address},
        ) from error
