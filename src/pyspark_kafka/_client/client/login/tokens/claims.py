"""Read the claims of a JSON Web Token. Its signature is the broker's to check.

Java's clients check the same. An error here names the problem, where a broker refuses without a reason. Pure: no
sockets, no clock. Source: RFC 7519, RFC 6750; Java's `ClientJwtValidator`.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from typing import Any

from pyspark_kafka._client.client.login.tokens.token import Claims

# Brokers take messages of at most 512 KiB (sasl.server.max.receive.size); real tokens have 1 or 2 KiB.
MAX_TOKEN_LENGTH = 1 << 16
_MAX_NAMES = 100
# RFC 6750, chapter 2.1: what a bearer token may have in it.
_BEARER = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*={0,2}")


def check_bearer(token: str) -> None:
    """Check that a text can be a bearer token.

    Raises:
        ValueError: with a clause that repeats nothing of it.
    """
    if not token:
        raise ValueError("is empty")
    if len(token) > MAX_TOKEN_LENGTH:
        raise ValueError(f"has {len(token)} characters, more than {MAX_TOKEN_LENGTH}")
    if _BEARER.fullmatch(token) is None:
        raise ValueError("has characters that no token has, such as blanks or quotation marks")


def parse_claims(token: str, *, scope_claim: str = "scope", sub_claim: str = "sub") -> Claims:
    """Return what a JSON Web Token says.

    Args:
        token: three parts of base64url, separated by dots.
        scope_claim: the name of the claim with the scopes.
        sub_claim: the name of the claim with the user.

    Raises:
        ValueError: it is not such a token, or lacks a claim that Kafka needs; a clause that repeats nothing of it.
    """
    check_bearer(token)
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError(f"is not a JSON Web Token, which has 3 parts separated by dots; it has {len(parts)}")
    _parsed(parts[0], "header")
    payload = _parsed(parts[1], "claims")
    expires_at = _time(payload, "exp")
    if expires_at is None:
        raise ValueError("has no claim 'exp', the time at which it expires")
    subject = payload.get(sub_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise ValueError(f"has no claim {sub_claim!r}, the user, or it is not a text")
    issuer = payload.get("iss")
    return Claims(
        subject=subject,
        issuer=issuer if isinstance(issuer, str) else None,
        audience=_names(payload.get("aud"), "aud"),
        scopes=tuple(" ".join(_names(payload.get(scope_claim), scope_claim)).split()),
        issued_at=_time(payload, "iat"),
        not_before=_time(payload, "nbf"),
        expires_at=expires_at,
    )


def _parsed(part: str, called: str) -> dict[str, Any]:
    if _BASE64URL.fullmatch(part) is None:
        raise ValueError(f"has a {called} part that is not base64url")
    try:
        found = json.loads(base64.urlsafe_b64decode(part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        # Not its cause, which has the text.
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"has a {called} part that is not a JSON object")  # noqa: TRY004 - the caller's error
    return found


def _time(payload: dict[str, Any], name: str) -> float | None:
    value = payload.get(name)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value < 1e12
        or not math.isfinite(value)
    ):
        raise ValueError(f"has a claim '{name}' that is not a time in seconds since 1970")
    return float(value)


def _names(value: Any, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or len(names) > _MAX_NAMES or not all(isinstance(each, str) for each in names):
        raise ValueError(f"has a claim {name!r} that is neither a text nor a list of at most {_MAX_NAMES} texts")
    return tuple(names)
