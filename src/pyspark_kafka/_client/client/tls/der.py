"""Reading DER, as far as certificates and key stores need it. Pure: no sockets, no clock.

Names the errors of what cannot be loaded, and bounds the work that bytes may cause: nothing is trusted because it was
read here; OpenSSL verifies. Source: ITU-T X.690.
"""

from __future__ import annotations

from collections.abc import Iterator

INTEGER, OCTET_STRING, OBJECT_ID, SEQUENCE = 0x02, 0x04, 0x06, 0x30
_CONSTRUCTED = 0x20
# Stores nest some ten levels deep.
_MAX_LEVELS = 40


class DerError(ValueError):
    """Bytes that are not DER, or not of the expected form."""


def read_element(data: memoryview, position: int = 0) -> tuple[int, memoryview, int]:
    """Read one element.

    Returns:
        Its tag, its content, and the position behind it.

    Raises:
        DerError: the bytes are not a whole element.
    """
    if len(data) - position < 2:
        raise DerError("cut off")
    tag, size = data[position], data[position + 1]
    position += 2
    if tag & 0x1F == 0x1F:
        raise DerError("a tag of several bytes")
    if size & 0x80:
        count = size & 0x7F
        if not 1 <= count <= 4 or len(data) - position < count:
            raise DerError("a length that is not possible")
        size = int.from_bytes(data[position : position + count], "big")
        position += count
    if size > len(data) - position:
        raise DerError("cut off")
    return tag, data[position : position + size], position + size


def iter_elements(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Return tag and content of each element of a sequence's content.

    Raises:
        DerError: the bytes are not whole elements.
    """
    position = 0
    while position < len(data):
        tag, content, position = read_element(data, position)
        yield tag, content


def read_sequence(data: memoryview) -> list[tuple[int, memoryview]]:
    """Return what a sequence holds; bytes behind it are left alone.

    Raises:
        DerError: the bytes are not a sequence.
    """
    tag, content, _ = read_element(data)
    if tag != SEQUENCE:
        raise DerError("not a sequence")
    return list(iter_elements(content))


def max_iterations(data: bytes) -> int:
    """Return the highest count of iterations that a PKCS#8 key or a PKCS#12 store requires; 0 without any.

    It is the integer that follows a salt (an OCTET STRING) in the parameters of PBKDF2, of PBES1 and of the MAC of a
    store. Octet strings that begin with a sequence are looked into; others are salts, digests or encrypted bytes, which
    read as an integer now and then. Elements may have no length (BER): some Java tools write such stores.
    """
    highest = 0
    pending = [(memoryview(data), 0)]
    while pending:
        view, level = pending.pop()
        position = before = 0
        while position < len(view):
            if view[position] & _CONSTRUCTED and bytes(view[position + 1 : position + 2]) == b"\x80":
                # What it holds follows, and then an end mark, which reads as an empty element.
                position, before = position + 2, 0
                continue
            try:
                tag, content, position = read_element(view, position)
            except DerError:
                break
            if tag == INTEGER and before == OCTET_STRING and len(content):
                highest = max(highest, int.from_bytes(content[:9], "big"))
            if level < _MAX_LEVELS and (tag & _CONSTRUCTED or (tag == OCTET_STRING and _begins_sequence(content))):
                pending.append((content, level + 1))
            before = tag
    return highest


def _begins_sequence(data: memoryview) -> bool:
    try:
        return bytes(data[:2]) == b"\x30\x80" or read_element(data)[0] == SEQUENCE
    except DerError:
        return False
