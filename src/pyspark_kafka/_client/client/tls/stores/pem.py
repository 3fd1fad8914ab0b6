r"""PEM: texts between BEGIN and END lines. Pure: no sockets, no clock.

Java's clients take certificates and keys as PEM in a file or in an option (KIP-651). A text that went through a
properties file, JSON or a shell may have lost its line ends, or has `\n` in their place; it is still read.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from itertools import pairwise

# One line, and never what is between two: a text of many BEGIN lines without END is then read once, not once for each.
_LINE = re.compile(r"-----(BEGIN|END) ([A-Z0-9 ]{1,40})-----")
# "Proc-Type: 4,ENCRYPTED" and "DEK-Info: …", of keys that OpenSSL encrypted in its old form (RFC 1421).
_HEADER = re.compile(r"[A-Za-z-]+: [^\n]*\n")
_CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
_MAX_BLOCKS = 10_000


@dataclass(frozen=True, slots=True)
class PemBlock:
    """One text between BEGIN and END.

    Attributes:
        label: what the BEGIN line says, such as `CERTIFICATE`.
        headers: lines before the content; empty nearly always.
        content: the bytes.
    """

    label: str
    headers: str
    # It may be a private key.
    content: bytes = field(repr=False)

    @property
    def is_certificate(self) -> bool:
        """Whether it is a certificate."""
        return self.label in _CERTIFICATES

    @property
    def is_key(self) -> bool:
        """Whether it is a private key."""
        return self.label.endswith("PRIVATE KEY")

    @property
    def is_encrypted(self) -> bool:
        """Whether it is a private key that needs a password."""
        return self.is_key and (self.label.startswith("ENCRYPTED") or "ENCRYPTED" in self.headers)

    def text(self) -> bytes:
        """Return it as PEM, with lines of 64 characters."""
        return build_pem(self.label, self.content, self.headers)


def build_pem(label: str, content: bytes, headers: str = "") -> bytes:
    """Return bytes as PEM."""
    encoded = base64.b64encode(content).decode("ascii")
    lines = [encoded[start : start + 64] for start in range(0, len(encoded), 64)]
    head = f"{headers}\n" if headers else ""
    return f"-----BEGIN {label}-----\n{head}{chr(10).join(lines)}\n-----END {label}-----\n".encode("ascii", "replace")


def parse_pem(text: str) -> list[PemBlock]:
    """Return the blocks of a text, in order; the text between them is left alone.

    Raises:
        ValueError: the content of a block is not base64, or a block does not end. The text says which block.
    """
    text = text.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\r\n", "\n")
    blocks: list[PemBlock] = []
    lines = list(_LINE.finditer(text))
    for begin, end in pairwise(lines):
        label = begin[2]
        if begin[1] != "BEGIN" or end[1] != "END" or end[2] != label:
            continue
        body = text[begin.end() : end.start()]
        headers = "".join(_HEADER.findall(body))
        body = _HEADER.sub("", body)
        try:
            content = base64.b64decode("".join(body.split()), validate=True)
        except (binascii.Error, ValueError):
            raise ValueError(f"its {_ordinal(len(blocks) + 1)} block ({label}) is not base64") from None
        blocks.append(PemBlock(label, headers, content))
        if len(blocks) > _MAX_BLOCKS:
            raise ValueError(f"it has more than {_MAX_BLOCKS} blocks")
    begun = text.count("-----BEGIN ")
    if begun != len(blocks):
        raise ValueError(f"it has {begun} BEGIN lines, but only {len(blocks)} whole blocks: it is cut off or damaged")
    return blocks


def _ordinal(number: int) -> str:
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number if number < 20 else number % 10, 'th') }"
