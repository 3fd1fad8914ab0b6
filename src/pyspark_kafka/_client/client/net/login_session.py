"""For how long a login counts: brokers may want the credentials again (KIP-368), or close the connection.

No sockets.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka.errors import AccessError, ConnectorError

# Renewed after this share of the lifetime, at random within, so that the connections of many tasks do not log in at the
# same moment. Earlier than Java's 85 to 95 %: a request in flight when it is time has to be read by the broker as well.
_SHARE_FROM, _SHARE_TO = 0.75, 0.85
# A broker reads a request when it has responded to the requests before it, and closes the connection if the session has
# ended by then: enough is left for a broker that pauses, of a short lifetime the half.
_LEFT_S = 5.0
_SHARE_LEAST = 0.5
_KEPT_LOGINS = 64
_OF_CREDENTIALS = (ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.DELEGATION_TOKEN_EXPIRED)
# Brokers refuse to renew a session that began less than a second ago (KafkaChannel.MIN_REAUTH_INTERVAL).
_LEAST_AGE_S = 1.1


@dataclass(frozen=True, slots=True)
class LoginSession:
    """An accepted login's lifetime, from the broker's response; times are seconds of `time.monotonic`.

    Lifetimes are durations, so the clocks of broker and client may differ.

    Attributes:
        began_at: when the login began; the broker counts from a later moment.
        renew_at: from when on the login is repeated before anything else is sent.
        ends_at: from when on the broker closes the connection at any other request.
    """

    began_at: float
    renew_at: float
    ends_at: float

    @classmethod
    def of(cls, lifetime_ms: int, began_at: float, rng: Callable[[], float] = random.random) -> LoginSession | None:
        """Return the session of a login; None if it does not end.

        Args:
            lifetime_ms: as the broker says it; 0 if the session does not end.
            began_at: when the login began.
            rng: uniform numbers in [0, 1); tests pass their own.

        Source: KIP-368; Java `SaslClientAuthenticator.ReauthInfo`.
        """
        if lifetime_ms <= 0:
            return None
        lifetime_s = lifetime_ms / 1000
        share_s = lifetime_s * (_SHARE_FROM + (_SHARE_TO - _SHARE_FROM) * rng())
        # Not before a second login on the same connection is accepted, if the lifetime leaves that choice.
        age_s = max(lifetime_s * _SHARE_LEAST, min(share_s, lifetime_s - _LEFT_S), min(share_s, _LEAST_AGE_S))
        return cls(began_at, began_at + age_s, began_at + lifetime_s)

    def is_old(self, now: float) -> bool:
        """Return whether the login is to be repeated before any other request."""
        return now >= self.renew_at

    def has_ended(self, now: float) -> bool:
        """Return whether the broker closes the connection at the next request that does not belong to a login."""
        return now >= self.ends_at

    def may_renew(self, now: float) -> bool:
        """Return whether the broker accepts a login on the same connection; otherwise a new one is needed."""
        return now >= self.began_at + _LEAST_AGE_S


class AcceptedLogins:
    """The times of the last accepted logins, so that a refusal says whether the same login was good before.

    Runs on: driver and executor; any thread.

    Args:
        clock: monotonic seconds; tests pass their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._accepted_at: dict[Hashable, float] = {}

    def note(self, login: Hashable) -> None:
        """Record an accepted login."""
        self._accepted_at.pop(login, None)
        # A copy: another thread may note one meanwhile.
        for oldest in list(self._accepted_at)[: 1 - _KEPT_LOGINS or None]:
            self._accepted_at.pop(oldest, None)
        self._accepted_at[login] = self._clock()

    def explain(self, login: Hashable, error: ConnectorError) -> ConnectorError:
        """Return the error of a login; for one that was accepted before and is refused, the error says so."""
        accepted_at = self._accepted_at.get(login)
        # A listener with other mechanisms, or without SASL, says nothing about the credentials.
        if accepted_at is None or not isinstance(error, AccessError) or error.code not in _OF_CREDENTIALS:
            return error
        ago_s = max(0.0, self._clock() - accepted_at)
        return error.located(
            f"The same login was accepted {ago_s:.0f} s ago and is refused now, so its password, token or user has "
            "changed or expired"
        )
