"""OAUTHBEARER: what is sent, and what a refusal says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyspark_kafka._client.client.login.errors import credentials_refused
from pyspark_kafka._client.client.login.mechanism import ExchangeError
from pyspark_kafka._client.client.login.oauth import OAuthMechanism
from pyspark_kafka._client.client.login.tokens.token import Claims, Token
from pyspark_kafka._client.options import Secret

NOW = 1_800_000_000.0
CLAIMS = Claims("ann", "https://issuer", ("kafka",), ("read", "write"), NOW - 60, None, NOW + 600)


def machine(claims: Claims | None = CLAIMS, **changes: Any) -> OAuthMechanism:
    return OAuthMechanism(Token(Secret("a.b.c"), NOW, NOW + 600, claims), clock=lambda: NOW, **changes)


def test_a_token_is_sent_with_its_extensions() -> None:
    made = machine(extensions=(("logicalCluster", "lkc-1"), ("identityPoolId", "pool-2")))
    assert made.auth_bytes() == (b"n,,\x01auth=Bearer a.b.c\x01logicalCluster=lkc-1\x01identityPoolId=pool-2\x01\x01")
    made.receive(b"")
    assert made.is_done()
    assert made.is_authenticated()


def test_a_token_without_extensions_ends_with_two_separators() -> None:
    assert machine().auth_bytes() == b"n,,\x01auth=Bearer a.b.c\x01\x01"


def test_a_refusal_is_ended_and_the_token_forgotten() -> None:
    forgotten: list[int] = []
    made = machine(forget=lambda: forgotten.append(1), was_kept=True)
    made.receive(b'{"status":"invalid_token"}')
    assert made.auth_bytes() == b"\x01"
    assert not made.is_done()
    refusal = made.refusal()
    assert forgotten == [1]
    assert refusal.is_retriable
    assert refusal.known == (
        "Its error: status 'invalid_token'. The token is for user 'ann', of issuer 'https://issuer', for audience "
        "'kafka', with scope 'read write', issued at 2027-01-15 07:59:00 UTC, valid until 2027-01-15 08:10:00 UTC; the "
        "clock of this machine says 2027-01-15 08:00:00 UTC."
    )
    assert "sasl.oauthbearer.expected.issuer" in refusal.hint
    with pytest.raises(ExchangeError) as caught:
        made.receive(b"")
    assert caught.value.is_refusal


@pytest.mark.parametrize(
    ("claims", "said", "hint"),
    [
        (CLAIMS, {"status": "insufficient_scope", "scope": "admin"}, "Set kafka.sasl.oauthbearer.scope to 'admin'"),
        (Claims("ann", expires_at=NOW - 1), {}, "has expired meanwhile"),
        (Claims("ann", issued_at=NOW + 60, expires_at=NOW + 600), {}, "The clocks differ"),
        (Claims("ann", not_before=NOW + 60, expires_at=NOW + 600), {}, "The clocks differ"),
        (Claims("ann", issued_at=NOW + 1, expires_at=NOW + 600), {}, "Compare issuer, audience and scope"),
        (None, {}, "accept tokens of this kind"),
    ],
)
def test_a_refusal_has_a_guess(claims: Claims | None, said: dict[str, str], hint: str) -> None:
    made = machine(claims)
    made.receive(json.dumps({"status": "invalid_token", **said}).encode())
    assert hint in made.refusal().hint


@pytest.mark.parametrize(
    "message",
    [
        b"[" * 10_000,
        b"\xff\xfe{}",
        b'{"status":' + b"9" * 5000 + b"}",
        b'{"status":["x"],"scope":{"a":1}}',
        b'{"status":"\\u001b[2J' + b"x" * 3000 + b'"}',
        b"x" * 100_000,
        b"null",
    ],
)
def test_an_error_of_a_hostile_server_is_short_and_printable(message: bytes) -> None:
    made = machine()
    made.receive(message)
    known = made.refusal().known
    assert known.isprintable()
    assert len(known) < 1_000
    assert not made.is_authenticated()


def test_a_server_that_repeats_the_token_does_not_bring_it_into_the_error() -> None:
    token = "header.claims.Pl4nted"  # noqa: S105 - of this test
    made = OAuthMechanism(Token(Secret(token), NOW, NOW + 600, CLAIMS), clock=lambda: NOW)
    made.receive(json.dumps({"status": f"no {token}"}).encode())
    error = credentials_refused(58, "SASL", made, f"bad {token}", broker="b:1")
    assert "Pl4nted" not in str(error)
    assert "status 'no ***'" in str(error)
