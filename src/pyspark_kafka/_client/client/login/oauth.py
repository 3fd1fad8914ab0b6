"""SASL OAUTHBEARER: a token, and what the server says if it refuses it.

Source: RFC 7628, KIP-255, KIP-342; Java's `OAuthBearerSaslClient`.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.login.mechanism import ExchangeError, Refusal, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._client.client.login.tokens.token import Token

# A status, a scope and a URL.
_MAX_ERROR = 1 << 14
# Kafka's brokers allow no skew by default; tokens are made before they are sent, so this much is a clock that differs.
_SKEW_S = 5.0


class OAuthMechanism:
    """One exchange of OAUTHBEARER.

    Args:
        token: what is sent.
        extensions: name and value of each SASL extension.
        forget: called if the server refuses the token.
        was_kept: whether an earlier login has used the token: then a new one may be accepted.
        clock: seconds since 1970; tests pass their own.
    """

    name = "OAUTHBEARER"

    def __init__(
        self,
        token: Token,
        *,
        extensions: tuple[tuple[str, str], ...] = (),
        forget: Callable[[], None] = lambda: None,
        was_kept: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._token = token
        self._extensions = extensions
        self._forget = forget
        self._was_kept = was_kept
        self._clock = clock
        self._refused = False
        self._said: dict[str, str] = {}
        self._is_done = False

    def auth_bytes(self) -> bytes:
        """Return the token with its extensions, or the end of an exchange that failed."""
        if self._refused:
            # RFC 7628, chapter 3.2.3: the server sends its final refusal after this.
            return b"\x01"
        pairs = "".join(f"{name}={value}\x01" for name, value in self._extensions)
        return f"n,,\x01auth=Bearer {self._token.value.reveal()}\x01{pairs}\x01".encode()

    def receive(self, auth_bytes: bytes) -> None:
        """Take the server's response: nothing, or a JSON object that says why it refuses.

        Raises:
            ExchangeError: the server refused, and its final message is not a refusal.
        """
        if self._refused:
            raise ExchangeError("the server refused the token", is_refusal=True)
        if not auth_bytes:
            self._is_done = True
            return
        self._refused = True
        self._said = {name: shown(self._token.value.hidden_in(text)) for name, text in _error_of(auth_bytes).items()}

    def is_done(self) -> bool:
        """Return whether the server accepted the token."""
        return self._is_done

    def is_authenticated(self) -> bool:
        """Return whether the server accepted the token."""
        return self._is_done

    def refusal(self) -> Refusal:
        """Return what the token says beside what the server said, with a guess; the token is not used again.

        A login that may succeed with a new token is one to be repeated.
        """
        self._forget()
        claims, now = self._token.claims, self._clock()
        said = ", ".join(f"{name} {value!r}" for name, value in self._said.items())
        known = f"Its error: {said}. " if said else ""
        if claims is not None:
            known += claims.described(now)
        return Refusal(known.strip(), self._hint(now), is_retriable=self._was_kept, sent=self._token.value)

    def _hint(self, now: float) -> str:
        claims = self._token.claims
        wanted = self._said.get("scope")
        if wanted or self._said.get("status") == "insufficient_scope":
            scope = f" to '{wanted}'" if wanted else ""
            return f"Set kafka.sasl.oauthbearer.scope{scope}, or have the scope granted to the client."
        if claims is None:
            return "Check that the brokers accept tokens of this kind, and that the token's owner may connect."
        if claims.expires_at is not None and now >= claims.expires_at:
            return "The token has expired meanwhile: get a new one, or one that lives longer."
        begins = max(claims.issued_at or 0.0, claims.not_before or 0.0)
        if begins > now + _SKEW_S:
            return (
                "The clocks differ: the token counts from a time that this machine has not reached. Correct the clocks "
                "of this machine, of the brokers and of the OAuth server (NTP)."
            )
        return (
            "Compare issuer, audience and scope with what the brokers expect (sasl.oauthbearer.expected.issuer and "
            "expected.audience), check that they use the keys of the issuer (sasl.oauthbearer.jwks.endpoint.url), and "
            "that the clocks agree; the brokers' log has the reason."
        )


def _error_of(message: bytes) -> dict[str, str]:
    """Return status, scope and configuration of a server's error.

    Source: RFC 7628, chapter 3.2.2.
    """
    if len(message) > _MAX_ERROR:
        return {"status": f"a message of {len(message)} bytes"}
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return {"status": message.decode("utf-8", "replace")}
    names = ("status", "scope", "openid-configuration")
    return {name: found[name] for name in names if isinstance(found.get(name), str) and found[name]}
