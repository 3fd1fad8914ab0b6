"""The content of a certificate: its subject, its issuer and its validity. Pure: no sockets, no clock.

For errors, warnings and `pyspark-kafka check`. Whether a certificate is to be trusted is decided by OpenSSL alone.
Source: RFC 5280.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark_kafka._client.client.tls.der import (
    OBJECT_ID,
    OCTET_STRING,
    SEQUENCE,
    DerError,
    iter_elements,
    read_element,
    read_sequence,
)

_NAMES = {
    b"\x55\x04\x03": "CN",
    b"\x55\x04\x06": "C",
    b"\x55\x04\x07": "L",
    b"\x55\x04\x08": "ST",
    b"\x55\x04\x0a": "O",
    b"\x55\x04\x0b": "OU",
    b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x19": "DC",
}
_BASIC_CONSTRAINTS, _ALTERNATIVE_NAMES = b"\x55\x1d\x13", b"\x55\x1d\x11"
_EXPLICIT_0, _EXPLICIT_3, _DNS_NAME, _IP_ADDRESS = 0xA0, 0xA3, 0x82, 0x87
_UTC_TIME, _GENERALIZED_TIME, _BMP_STRING = 0x17, 0x18, 0x1E
_MAX_NAMES = 100
# As much of a name as errors show; a real one has some 100 characters.
_SHOWN_NAME = 400
# What separates the parts of a name, and would forge one (RFC 4514, 2.4).
_SPECIAL, _ESCAPED = re.compile(r'[,+"\\<>;=]'), r"\\\g<0>"
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ParsedCertificate:
    """The content of one certificate.

    Attributes:
        subject: whose it is, such as `CN=broker-1,O=Example`.
        issuer: who signed it.
        names: host names and IP addresses that it is for.
        not_before: valid from, UTC.
        not_after: valid until, UTC.
        is_authority: whether it may sign others.
        der: its bytes.
    """

    subject: str
    issuer: str
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    is_authority: bool
    der: bytes

    @property
    def is_self_signed(self) -> bool:
        """Whether it names itself as its issuer."""
        return self.subject == self.issuer

    def lifetime_problem(self, now: datetime) -> str:
        """Return why it is not valid at a time, as the end of a sentence; empty if it is."""
        if now > self.not_after:
            return f"expired on {shown_time(self.not_after)}"
        if now < self.not_before:
            return f"is not valid before {shown_time(self.not_before)}"
        return ""


def parse_certificate(der: bytes | memoryview) -> ParsedCertificate:
    """Read what a certificate says.

    Args:
        der: the certificate; bytes after it are left alone.

    Raises:
        DerError: the bytes are not a certificate.
    """
    view = memoryview(der)
    parts = read_sequence(view)
    if len(parts) != 3 or parts[0][0] != SEQUENCE:
        raise DerError("not a certificate")
    fields = list(iter_elements(parts[0][1]))
    if fields and fields[0][0] == _EXPLICIT_0:  # the version
        fields.pop(0)
    # serialNumber, signature, issuer, validity, subject, subjectPublicKeyInfo, …
    if len(fields) < 6 or [tag for tag, _ in fields[1:6]] != [SEQUENCE] * 5:
        raise DerError("not a certificate")
    times = [_time(tag, content) for tag, content in iter_elements(fields[3][1])]
    if len(times) != 2:
        raise DerError("a validity without two times")
    names, is_authority = _extensions([content for tag, content in fields[6:] if tag == _EXPLICIT_3])
    _, _, size = read_element(view)
    return ParsedCertificate(
        subject=_name(fields[4][1]),
        issuer=_name(fields[2][1]),
        names=names,
        not_before=times[0],
        not_after=times[1],
        is_authority=is_authority,
        der=bytes(view[:size]),
    )


def shown_time(time: datetime) -> str:
    """Return a time as errors show it."""
    return time.strftime("%Y-%m-%d %H:%M UTC")


def _name(content: memoryview) -> str:
    """Return a distinguished name, the most special part first, as Java and OpenSSL's RFC 2253 form show it."""
    parts: list[str] = []
    for _, group in iter_elements(content):
        for _, pair in iter_elements(group):
            found = list(iter_elements(pair))
            if len(found) != 2 or found[0][0] != OBJECT_ID:
                raise DerError("a name that is none")
            kind = _NAMES.get(bytes(found[0][1]))
            if kind is not None and len(parts) < _MAX_NAMES:
                parts.append(f"{kind}={_SPECIAL.sub(_ESCAPED, _text(*found[1]))}")
    name = ",".join(reversed(parts))
    return name if len(name) <= _SHOWN_NAME else f"{name[:_SHOWN_NAME]}…"


def _text(tag: int, content: memoryview) -> str:
    """Return a text that may be shown: of a hostile certificate, too."""
    text = bytes(content[:_SHOWN]).decode("utf-16-be" if tag == _BMP_STRING else "utf-8", "replace")
    return "".join(each if each.isprintable() else "?" for each in text)


def _time(tag: int, content: memoryview) -> datetime:
    if tag not in (_UTC_TIME, _GENERALIZED_TIME):
        raise DerError("a time that is none")
    text = bytes(content[:20]).decode("ascii", "replace")
    if tag == _UTC_TIME:
        # Two digits of a year: 50 to 99 are of the last century (RFC 5280, 4.1.2.5.1).
        text = ("19" if text >= "5" else "20") + text
    try:
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        raise DerError("a time that is none") from None


def _extensions(found: list[memoryview]) -> tuple[tuple[str, ...], bool]:
    """Return the names that a certificate is for, and whether it may sign others."""
    names: tuple[str, ...] = ()
    is_authority = False
    for wrapped in found:
        for _, extension in read_sequence(wrapped):
            parts = list(iter_elements(extension))
            if len(parts) < 2 or parts[0][0] != OBJECT_ID or parts[-1][0] != OCTET_STRING:
                raise DerError("an extension that is none")
            kind, value = bytes(parts[0][1]), parts[-1][1]
            if kind == _ALTERNATIVE_NAMES:
                listed = (_alternative_name(tag, content) for tag, content in read_sequence(value))
                names = tuple(name for name in listed if name)[:_MAX_NAMES]
            elif kind == _BASIC_CONSTRAINTS:
                constraints = read_sequence(value)
                is_authority = bool(constraints) and constraints[0][0] == 0x01 and bytes(constraints[0][1]) != b"\0"
    return names, is_authority


def _alternative_name(tag: int, content: memoryview) -> str:
    if tag == _DNS_NAME:
        return _text(tag, content)
    if tag == _IP_ADDRESS and len(content) in (4, 16):
        return str(ipaddress.ip_address(bytes(content)))
    return ""
