"""Tokens that a process keeps: one for each login, replaced before it expires.

Nothing runs in the background: who needs a token replaces it when it is time.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pyspark_kafka._client.client.login.tokens.token import Token
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import TokenRenewal

_LOG = logging.getLogger(__name__)

_KEPT = 64
# After a renewal that failed, while the token is still good: as often as Java's clients try again.
_AGAIN_S = 10.0
# Less is left to the way of a token that is about to expire.
_MIN_LEFT_S = 2.0


@dataclass(slots=True)
class _KeptToken:
    token: Token | None = None
    renew_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class TokenCache:
    """The tokens of a process by login.

    Invariants:

    - One request for a token of a login at a time: other threads use the token that is still good, or wait for the new
      one.
    - Fork safety: a child keeps the tokens, which are data, and has locks of its own.
    - A token is never returned after its end.

    Runs on: driver and executor; any thread. Blocks while a token is fetched.

    Args:
        clock: seconds since 1970; tests pass their own.
        rng: uniform numbers in [0, 1); tests pass their own.
        process_id: the id of this process; tests pass their own, in place of a fork.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
        process_id: Callable[[], int] = os.getpid,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._current_process = process_id
        self._process_id = process_id()
        self._lock = threading.Lock()
        self._kept: dict[Hashable, _KeptToken] = {}

    def get(
        self, login: Hashable, renewal: TokenRenewal | None, fetch: Callable[[], Token], deadline: Deadline
    ) -> tuple[Token, bool]:
        """Return a token that is good, and whether it was there before.

        If a new one cannot be had while the old one is good, the old one is returned, with a warning in the log.

        Args:
            login: whose token.
            renewal: when it is replaced; None requests a new one each time, and keeps the old one for when that fails.
            fetch: gets a new one.
            deadline: for the wait for another thread that fetches.

        Raises:
            ConnectorError: whatever `fetch` raises.
            DeadlineError: another thread did not get one in time.
        """
        kept = self._entry(login)
        token = self._usable(kept)
        if token is not None and self._clock() < kept.renew_at:
            return token, True
        if not kept.lock.acquire(timeout=0 if token is not None else max(0.0, deadline.remaining_s())):
            if token is not None:
                return token, True
            raise deadline.error("Waiting for a token that another thread asks for")
        try:
            token = self._usable(kept)
            if token is not None and self._clock() < kept.renew_at:
                return token, True
            try:
                new = fetch()
            except ConnectorError as error:
                if token is None:
                    raise
                kept.renew_at = self._clock() + _AGAIN_S
                _LOG.warning("%s The former token is still used.", error)
                return token, True
            kept.token, kept.renew_at = new, self._renew_at(new, renewal)
            return new, False
        finally:
            kept.lock.release()

    def discard(self, login: Hashable, token: Token) -> None:
        """Forget a token that a broker refused, unless it was replaced in the meantime."""
        kept = self._entry(login)
        if kept.token is token:
            kept.token = None

    def _entry(self, login: Hashable) -> _KeptToken:
        if self._process_id != self._current_process():
            # A thread of the parent may have held them.
            self._lock = threading.Lock()
            self._kept = {login: _KeptToken(kept.token, kept.renew_at) for login, kept in self._kept.items()}
            self._process_id = self._current_process()
        with self._lock:
            kept = self._kept.get(login)
            if kept is None:
                if len(self._kept) >= _KEPT:
                    del self._kept[next(iter(self._kept))]
                kept = self._kept[login] = _KeptToken()
            return kept

    def _usable(self, kept: _KeptToken) -> Token | None:
        token = kept.token
        if token is None or token.expires_at is None or self._clock() >= token.expires_at - _MIN_LEFT_S:
            return None
        return token

    def _renew_at(self, token: Token, renewal: TokenRenewal | None) -> float:
        """Return when to replace a token. Source: Java's `ExpiringCredentialRefreshingLogin.refreshMs`."""
        if token.expires_at is None or renewal is None:
            return token.received_at
        began, ends = token.received_at, token.expires_at
        share = renewal.window_factor + renewal.window_jitter * self._rng()
        at = began + (ends - began) * min(share, 1.0)
        if ends - began <= renewal.min_period_s + renewal.buffer_s:
            return at
        return max(min(at, ends - renewal.buffer_s), began + renewal.min_period_s)
