"""Tokens that are kept: when they are replaced, by whom, and what a failure or a fork leaves."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka._client.client.login.tokens.cache import TokenCache
from pyspark_kafka._client.client.login.tokens.token import Token
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import Secret, TokenRenewal
from pyspark_kafka.errors import DeadlineError, TransportError

PLAIN = TokenRenewal(window_factor=0.8, window_jitter=0.0, min_period_s=0, buffer_s=0)


class Issuer:
    """Makes tokens that live for some seconds, on a clock that the test sets."""

    def __init__(self, lifetime_s: float | None = 1000.0) -> None:
        self.now = 1_000_000.0
        self.lifetime_s = lifetime_s
        self.made = 0
        self.failure: Exception | None = None
        self.process_id = 1
        self.cache = TokenCache(clock=lambda: self.now, rng=lambda: 1.0, process_id=lambda: self.process_id)

    def fetch(self) -> Token:
        if self.failure is not None:
            raise self.failure
        self.made += 1
        expires_at = None if self.lifetime_s is None else self.now + self.lifetime_s
        return Token(Secret(f"token-{self.made}"), self.now, expires_at)

    def get(
        self,
        renewal: TokenRenewal | None = PLAIN,
        fetch: Callable[[], Token] | None = None,
        login: str = "login",
        timeout_ms: float = 5_000,
    ) -> str:
        return self.cache.get(login, renewal, fetch or self.fetch, Deadline(timeout_ms))[0].value.reveal()


def down() -> TransportError:
    return TransportError("no endpoint", condition="TOKEN_UNAVAILABLE", retriable=True)


@pytest.mark.parametrize(
    ("renewal", "lifetime_s", "kept_s"),
    [
        (PLAIN, 1000, 800),
        (TokenRenewal(), 10_000, 8_500),
        # The buffer before the end: 300 s.
        (TokenRenewal(), 1000, 700),
        (TokenRenewal(min_period_s=900, buffer_s=0), 1000, 900),
        # It lives too shortly for the least period and the buffer together.
        (TokenRenewal(), 360, 306),
    ],
)
def test_a_token_is_replaced_when_it_is_time(renewal: TokenRenewal, lifetime_s: float, kept_s: float) -> None:
    issuer = Issuer(lifetime_s)
    assert issuer.get(renewal) == "token-1"
    issuer.now += kept_s - 1
    assert issuer.get(renewal) == "token-1"
    issuer.now += 1.1
    assert issuer.get(renewal) == "token-2"


def test_a_token_without_an_end_is_used_once() -> None:
    issuer = Issuer(None)
    assert [issuer.get(), issuer.get()] == ["token-1", "token-2"]


def test_a_token_of_a_file_is_read_each_time_and_kept_for_a_failure() -> None:
    issuer = Issuer()
    assert [issuer.get(None), issuer.get(None)] == ["token-1", "token-2"]
    issuer.failure = down()
    assert issuer.get(None) == "token-2"


def test_logins_have_tokens_of_their_own() -> None:
    issuer = Issuer()
    assert [issuer.get(), issuer.get(login="other"), issuer.get()] == ["token-1", "token-2", "token-1"]


def test_a_failed_renewal_leaves_the_old_token_while_it_is_good(caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer()
    issuer.get()
    issuer.failure = down()
    issuer.now += 900
    with caplog.at_level(logging.WARNING):
        assert issuer.get() == "token-1"
        assert issuer.get() == "token-1"
    # It is not asked for again at once.
    assert len(caplog.records) == 1
    assert "The former token is still used." in caplog.text
    issuer.now += 98.5
    with pytest.raises(TransportError):
        issuer.get()


def test_a_first_failure_is_raised() -> None:
    issuer = Issuer()
    issuer.failure = down()
    with pytest.raises(TransportError):
        issuer.get()
    issuer.failure = None
    assert issuer.get() == "token-1"


def test_a_refused_token_is_forgotten_but_not_its_successor() -> None:
    issuer = Issuer()
    old, was_kept = issuer.cache.get("login", PLAIN, issuer.fetch, Deadline(1000))
    assert not was_kept
    assert issuer.cache.get("login", PLAIN, issuer.fetch, Deadline(1000)) == (old, True)
    issuer.cache.discard("login", old)
    assert issuer.get() == "token-2"
    issuer.cache.discard("login", old)
    assert issuer.get() == "token-2"


def test_threads_share_one_request() -> None:
    issuer = Issuer()
    begun, release = threading.Event(), threading.Event()

    def slow() -> Token:
        begun.set()
        assert release.wait(PATIENCE_S)
        return issuer.fetch()

    got: list[str] = []
    first = threading.Thread(target=lambda: got.append(issuer.get(fetch=slow)))
    first.start()
    assert begun.wait(PATIENCE_S)
    others = [threading.Thread(target=lambda: got.append(issuer.get(timeout_ms=30_000))) for _ in range(5)]
    for each in others:
        each.start()
    # One whose time is over does not wait for the others.
    with pytest.raises(DeadlineError, match="Waiting for a token that another thread asks for"):
        issuer.get(timeout_ms=1)
    release.set()
    for each in (first, *others):
        each.join(PATIENCE_S)
    assert got == ["token-1"] * 6
    assert issuer.made == 1


def test_other_threads_use_the_old_token_while_one_renews() -> None:
    issuer = Issuer()
    issuer.get()
    issuer.now += 900

    def slow() -> Token:
        # A second user, in the middle of the renewal.
        assert issuer.get() == "token-1"
        return issuer.fetch()

    assert issuer.get(fetch=slow) == "token-2"


def test_a_child_keeps_tokens_and_has_locks_of_its_own() -> None:
    issuer = Issuer()
    issuer.get()

    def in_child() -> Token:
        # The lock of the entry is held here, as by a thread of the parent when it forks.
        issuer.process_id = 2
        assert issuer.get() == "token-2"
        return issuer.fetch()

    issuer.now += 999
    issuer.get(fetch=in_child)
    assert issuer.made == 3


def test_tokens_of_few_logins_are_kept() -> None:
    issuer = Issuer()
    for number in range(200):
        issuer.get(login=str(number))
    assert len(issuer.cache._kept) <= 64
