"""A token, and what errors say of it. Pure: no sockets, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.login.mechanism import shown
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka.errors import AccessError

if TYPE_CHECKING:
    from pyspark_kafka._client.options import Secret


@dataclass(frozen=True, slots=True)
class Claims:
    """A token's claims; times are seconds since 1970.

    Attributes:
        subject: the user; None if that is not said.
        issuer: who made it.
        audience: whom it is for.
        scopes: what it allows.
        issued_at: when it was made.
        not_before: from when it counts.
        expires_at: until when it counts.
    """

    subject: str | None = None
    issuer: str | None = None
    audience: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    issued_at: float | None = None
    not_before: float | None = None
    expires_at: float | None = None

    def described(self, now: float) -> str:
        """Return sentences on the token, with the time of this machine; nothing of its signature."""
        parts = [
            f"for user '{shown(self.subject)}'" if self.subject else "",
            f"of issuer '{shown(self.issuer)}'" if self.issuer else "of no issuer",
            f"for audience '{shown(', '.join(self.audience))}'" if self.audience else "for no audience",
            f"with scope '{shown(' '.join(self.scopes))}'" if self.scopes else "without scope",
            f"issued at {as_time(self.issued_at)}" if self.issued_at is not None else "",
            f"valid from {as_time(self.not_before)}" if self.not_before is not None else "",
            f"valid until {as_time(self.expires_at)}" if self.expires_at is not None else "",
        ]
        said = ", ".join(part for part in parts if part)
        return f"The token is {said}; the clock of this machine says {as_time(now)}."


@dataclass(frozen=True, slots=True)
class Token:
    """A token and until when it is used.

    Attributes:
        value: what the broker gets.
        received_at: seconds since 1970.
        expires_at: likewise; None if that is not known: it is used once.
        claims: the content of the token; None if it is not a JSON Web Token.
    """

    value: Secret
    received_at: float
    expires_at: float | None = None
    claims: Claims | None = field(default=None)


def as_time(seconds: float) -> str:
    """Return a time in UTC, as errors say it; a number if no calendar has it.

    Example:
        >>> as_time(0)
        '1970-01-01 00:00:00 UTC'
    """
    try:
        return f"{datetime.fromtimestamp(int(seconds), timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return f"{seconds:g} s after 1970"


def token_invalid(where: str, reason: str, hint: str) -> AccessError:
    """Build the error for a token that no broker would accept.

    Args:
        where: where it came from: "The token of the file '/t'".
        reason: what is wrong with it, as a clause that repeats nothing secret.
        hint: what to do.
    """
    return AccessError(
        f"{where} {reason}. It was not sent to a broker.",
        # There is no code of its own; a broker would return this one.
        code=ErrorCode.SASL_AUTHENTICATION_FAILED,
        condition="TOKEN_INVALID",
        hint=hint,
        parameters={"token": where},
    )
