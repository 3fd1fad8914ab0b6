"""The four requests about delegation tokens (KIP-48), in version 1, which kafka-python does not have.

Version 1 is what Kafka 2.0 to 4.3 have in common. Pure: no sockets, no clock.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark_kafka._client.client.wire.framed_request import FramedRequest

_VERSION = 1
_HEADER = struct.Struct(">hhi")
_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A delegation token as a response has it; times are milliseconds since 1970-01-01 UTC by the broker's clock.

    Attributes:
        owner: principal type and name, such as `("User", "alice")`.
        hmac: the key; empty in descriptions for those who may not see it.
        renewers: principals, besides the owner, that may renew it.
    """

    owner: tuple[str, str]
    issued_at_ms: int
    expires_at_ms: int
    ends_at_ms: int
    token_id: str
    hmac: bytes
    renewers: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"TokenEntry({self.token_id}, owner={':'.join(self.owner)})"


@dataclass(frozen=True, slots=True)
class TokenCreated:
    """The response to `CreateTokenRequest`; `token` has no meaning with an error."""

    error_code: int
    token: TokenEntry

    @classmethod
    def decode(cls, data: memoryview) -> TokenCreated:
        """Read the body of the response."""
        body = _Body(data)
        code, owner = body.int16(), (body.text(), body.text())
        token = TokenEntry(owner, body.int64(), body.int64(), body.int64(), body.text(), body.data())
        return cls(code, token)


@dataclass(frozen=True, slots=True)
class TokenChanged:
    """The response to `RenewTokenRequest` and `ExpireTokenRequest`."""

    error_code: int
    expires_at_ms: int

    @classmethod
    def decode(cls, data: memoryview) -> TokenChanged:
        """Read the body of the response."""
        body = _Body(data)
        return cls(body.int16(), body.int64())


@dataclass(frozen=True, slots=True)
class TokensDescribed:
    """The response to `DescribeTokensRequest`."""

    error_code: int
    tokens: tuple[TokenEntry, ...]

    @classmethod
    def decode(cls, data: memoryview) -> TokensDescribed:
        """Read the body of the response."""
        body = _Body(data)
        code, tokens = body.int16(), []
        for _ in range(body.count()):
            owner = (body.text(), body.text())
            times = (body.int64(), body.int64(), body.int64())
            token_id, hmac = body.text(), body.data()
            renewers = tuple((body.text(), body.text()) for _ in range(body.count()))
            tokens.append(TokenEntry(owner, *times, token_id, hmac, renewers))
        return cls(code, tuple(tokens))


class _TokenRequest(FramedRequest):
    """A request of which `_body` is the body."""

    valid_versions = (_VERSION, _VERSION)
    first_flexible_version = _VERSION + 1

    def __init__(self, body: bytes) -> None:
        self._body = body

    def build(self, version: int, correlation_id: int, client_id: str) -> Sequence[bytes]:
        """Return the whole frame."""
        frame = _HEADER.pack(self.API_KEY, version, correlation_id) + _text(client_id) + self._body
        return [_INT32.pack(len(frame)) + frame]


class CreateTokenRequest(_TokenRequest):
    """Request a new token for the connection's user; the connection itself must not use a token.

    Args:
        renewers: principals that may renew it, besides the owner.
        lifetime_ms: for how long it can be renewed; -1 takes the brokers' bound (`delegation.token.max.lifetime.ms`).
    """

    API_KEY = 38
    name = "CreateDelegationTokenRequest"

    def __init__(self, renewers: Sequence[tuple[str, str]], lifetime_ms: int) -> None:
        super().__init__(_principals(renewers) + _INT64.pack(lifetime_ms))

    @staticmethod
    def decode_response(body: memoryview, version: int) -> Any:  # noqa: ARG004 - there is one version
        """Return the class that decodes the response."""
        return TokenCreated.decode(body)


class RenewTokenRequest(_TokenRequest):
    """Request that a token expires `period_ms` from now; -1 takes the brokers' `delegation.token.expiry.time.ms`."""

    API_KEY = 39
    name = "RenewDelegationTokenRequest"

    def __init__(self, hmac: bytes, period_ms: int) -> None:
        super().__init__(_INT32.pack(len(hmac)) + hmac + _INT64.pack(period_ms))

    @staticmethod
    def decode_response(body: memoryview, version: int) -> Any:  # noqa: ARG004 - there is one version
        """Return the class that decodes the response."""
        return TokenChanged.decode(body)


class ExpireTokenRequest(RenewTokenRequest):
    """Request that a token expires `period_ms` from now, or immediately with -1; in the form of a renewal."""

    API_KEY = 40
    name = "ExpireDelegationTokenRequest"


class DescribeTokensRequest(_TokenRequest):
    """Request the tokens of some owners, or with None all tokens that the user may see."""

    API_KEY = 41
    name = "DescribeDelegationTokenRequest"

    def __init__(self, owners: Sequence[tuple[str, str]] | None) -> None:
        super().__init__(_INT32.pack(-1) if owners is None else _principals(owners))

    @staticmethod
    def decode_response(body: memoryview, version: int) -> Any:  # noqa: ARG004 - there is one version
        """Return the class that decodes the response."""
        return TokensDescribed.decode(body)


def _principals(principals: Sequence[tuple[str, str]]) -> bytes:
    return _INT32.pack(len(principals)) + b"".join(_text(kind) + _text(name) for kind, name in principals)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


class _Body:
    """Reads a body from its beginning; ValueError or struct.error if it is too short."""

    def __init__(self, data: memoryview) -> None:
        self._bytes = data
        self._at = 0

    def int16(self) -> int:
        return self._number(_INT16)

    def int64(self) -> int:
        return self._number(_INT64)

    def count(self) -> int:
        """Read the length of an array; each entry takes at least 4 bytes, so the length is bounded by what is there."""
        count = self._number(_INT32)
        if count > (len(self._bytes) - self._at) // 4:
            raise ValueError(f"an array of {count} entries in {len(self._bytes) - self._at} bytes")
        return max(0, count)

    def text(self) -> str:
        return self._take(self._number(_INT16)).decode()

    def data(self) -> bytes:
        return self._take(self._number(_INT32))

    def _number(self, form: struct.Struct) -> int:
        (value,) = form.unpack_from(self._bytes, self._at)
        self._at += form.size
        return int(value)

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._bytes) - self._at:
            raise ValueError(f"{size} bytes where {len(self._bytes) - self._at} are left")
        taken = bytes(self._bytes[self._at : self._at + size])
        self._at += size
        return taken
