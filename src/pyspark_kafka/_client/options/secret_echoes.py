"""A secret in the words of a server, as it was sent or in another encoding. Pure.

A server that is hostile, or that logs too much, repeats what it got: the password, or the header or message that it was
sent in, which is base64 and URL-encoding of it.
"""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

# A shorter piece of base64 is in texts by chance.
_MIN_PIECE = 6
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")


def without_echoes(text: str, value: str, stars: str) -> str:
    """Return a text with stars where it repeats a value: as it is, quoted, URL-encoded, in hex, or in base64.

    Args:
        text: of a server. It takes the time of a few searches.
        value: the secret, of 4 characters at least.
        stars: the text in its place.
    """
    data = value.encode("utf-8", "surrogatepass")
    plain = {value, value.strip(), str.__repr__(value)[1:-1], json.dumps(value)[1:-1], repr(data)[2:-1]}
    sent = {quote(data, safe=""), quote_plus(data)}
    forms = plain | sent | {_lower_escapes(each) for each in sent} | {data.hex(), data.hex().upper()}
    for form in sorted(filter(None, forms), key=len, reverse=True):
        text = text.replace(form, stars)
    for each in {data, *(form.encode() for form in sent)}:
        for piece in _pieces(each):
            text = _without_run(text, piece, stars)
    return text


def _lower_escapes(encoded: str) -> str:
    first, *others = encoded.split("%")
    return "".join((first, *(f"%{each[:2].lower()}{each[2:]}" for each in others)))


def _pieces(data: bytes) -> set[str]:
    """Return the data's traces in the base64 of a longer text, at each of the three positions in a group."""
    pieces = set()
    for shift in range(3):
        encoded = base64.b64encode(b"x" * shift + data).decode().rstrip("=")
        # The first and the last characters depend on the text before and after.
        piece = encoded[(0, 2, 3)[shift] : (shift + len(data)) * 8 // 6]
        pieces |= {piece, piece.translate(str.maketrans("+/", "-_"))}
    return {piece for piece in pieces if len(piece) >= _MIN_PIECE}


def _without_run(text: str, piece: str, stars: str) -> str:
    """Replace the whole base64 around a piece: its ends hold the ends of the secret."""
    parts = []
    begin = 0
    found = text.find(piece)
    while found >= 0:
        start, end = found, found + len(piece)
        while start > begin and text[start - 1] in _BASE64:
            start -= 1
        while end < len(text) and text[end] in _BASE64:
            end += 1
        parts += [text[begin:start], stars]
        begin = end
        found = text.find(piece, begin)
    return "".join((*parts, text[begin:]))
